"""A few out of many, spread evenly."""

from collections.abc import Iterable, Sequence
from typing import TypeVar

Item = TypeVar("Item")


def evenly(count: int, most: int) -> Sequence[int]:
    """``most`` of ``count`` positions at even steps from the first to the last, or all if there are no more."""
    if count <= most:
        return range(count)
    return [round(place * (count - 1) / max(most - 1, 1)) for place in range(most)]


def thinned(items: Iterable[Item], most: int) -> list[Item]:
    """All items if there are no more than ``most``, or else every second, fourth, eighth ... of them.

    Those are at least half of ``most``. It reads once and never holds more than ``most``.

    Args:
        items: of unknown number.
        most: at least 2.
    """
    kept: list[Item] = []
    step = 1
    for number, item in enumerate(items):
        if number % step == 0 and len(kept) == most:
            kept, step = kept[::2], 2 * step
        if number % step == 0:
            kept.append(item)
    return kept
