"""A few out of many, spread evenly."""

from collections.abc import Sequence


def evenly(count: int, most: int) -> Sequence[int]:
    """``most`` of ``count`` positions at even steps from the first to the last, or all if there are no more."""
    if count <= most:
        return range(count)
    return [round(place * (count - 1) / max(most - 1, 1)) for place in range(most)]
