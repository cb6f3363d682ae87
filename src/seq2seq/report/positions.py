"""Does the model forget? Accuracy by target position, and recall of source items by source position."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from seq2seq.report.grid import Grid
from seq2seq.report.systems import System

FEWEST = 30
"""Positions with fewer tokens or items over all seeds are left out of a curve."""


class Share(NamedTuple):
    """How many of ``count`` things at a position, counted from 1, were right; ``share`` from 0 to 1."""

    position: int
    share: float
    count: int


def accuracy(system: System, fewest: int = FEWEST) -> list[Share]:
    """Teacher-forced top-1 accuracy by target position, over all probed runs of the system."""
    probes = system.probes()
    correct = _added([probe["accuracy_correct"] for probe in probes])
    count = _added([probe["accuracy_count"] for probe in probes])
    return _shares(correct, count, fewest)


def recall(system: System, fewest: int = FEWEST) -> list[Share]:
    """Share of the source items whose translation is in the free hypothesis, by the item's place in its phrase.

    Only phrases with more than half of the largest number of items count: late places exist in long phrases alone, and
    beside the first items of short ones they would look harder than they are.
    """
    probes = [probe for probe in system.probes() if len(probe["item_count"])]
    if not probes:
        return []
    longest = max(int(probe["item_count"].max()) for probe in probes)
    correct, count = np.zeros(longest, dtype=np.int64), np.zeros(longest, dtype=np.int64)
    for probe in probes:
        long = probe["item_count"] * 2 > longest
        places = probe["item_position"][long]
        count += np.bincount(places, minlength=longest)
        correct += np.bincount(places[probe["item_recalled"][long]], minlength=longest)
    return _shares(correct, count, fewest)


def shares_grid(name: str, title: str, by_system: dict[str, list[Share]]) -> Grid:
    """One row a position, one column a system, in percent, with its count."""
    positions = sorted({share.position for shares in by_system.values() for share in shares})
    cells = {
        (system, share.position): f"{100 * share.share:.2f} (n={share.count})"
        for system, shares in by_system.items()
        for share in shares
    }
    rows = [[str(place), *(cells.get((system, place), "") for system in by_system)] for place in positions]
    return Grid(name, title, ["position", *by_system], rows)


def _added(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Counts by position, added up although the longest sentence may differ."""
    total = np.zeros(max(map(len, parts), default=0), dtype=np.int64)
    for part in parts:
        total[: len(part)] += part
    return total


def _shares(correct: np.ndarray, count: np.ndarray, fewest: int) -> list[Share]:
    return [
        Share(place + 1, right / total, total)
        for place, (right, total) in enumerate(zip(correct.tolist(), count.tolist(), strict=True))
        if total >= max(fewest, 1)
    ]
