"""Gradient reach: how much of the loss's gradient still arrives at a source token far from where the fixed vector reads.

Norms are taken relative to their own sentence's mean, so that only their profile over the sentence counts, not how large
the loss of the model is. The distance of a source token is the number of recurrent steps to the fixed vector: to the
nearer end of the source for an encoder of two directions.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from seq2seq.report.grid import Grid
from seq2seq.report.systems import System

FEWEST = 10
"""Distances with fewer values are left out."""
FAR = 20
"""The distance at which systems are compared in words."""


class Reach(NamedTuple):
    """Relative gradient norms at one distance: quartiles of ``count`` values, 1 being the sentence's mean."""

    distance: int
    lower: float
    median: float
    upper: float
    count: int


def reach(system: System, fewest: int = FEWEST) -> list[Reach]:
    """By distance, over all probed runs of the system."""
    values: dict[int, list[np.ndarray]] = {}
    for probe in system.probes():
        lengths = probe["gradient_length"].tolist()
        for norms, distances, length in zip(probe["gradient_norm"], probe["gradient_distance"], lengths, strict=True):
            inside = norms[:length].astype(np.float64)
            mean = inside.mean()
            if not np.isfinite(mean) or mean == 0:
                continue
            for distance, relative in zip(distances[:length].tolist(), inside / mean, strict=True):
                values.setdefault(distance, []).append(relative)
    return [
        Reach(distance, *np.percentile(values[distance], [25, 50, 75]).tolist(), len(values[distance]))
        for distance in sorted(values)
        if len(values[distance]) >= fewest
    ]


class Ratio(NamedTuple):
    """Median of a system over median of its baseline at a distance."""

    system: str
    baseline: str
    distance: int
    ratio: float


def ratio(system: str, baseline: str, reaches: Mapping[str, list[Reach]], far: int = FAR) -> Ratio | None:
    """At distance ``far``, or at the largest below it that both reach; None where one of them has no values."""
    medians = [{part.distance: part.median for part in reaches.get(name, [])} for name in (system, baseline)]
    common = [distance for distance in medians[0].keys() & medians[1].keys() if distance <= far]
    if not common or medians[1][max(common)] == 0:
        return None
    distance = max(common)
    return Ratio(system, baseline, distance, medians[0][distance] / medians[1][distance])


def reach_grid(reaches: Mapping[str, list[Reach]]) -> Grid:
    """One row a distance, one column a system: median (quartiles)."""
    distances = sorted({part.distance for parts in reaches.values() for part in parts})
    cells = {
        (name, part.distance): f"{part.median:.3g} ({part.lower:.3g} to {part.upper:.3g}), n={part.count}"
        for name, parts in reaches.items()
        for part in parts
    }
    rows = [[str(distance), *(cells.get((name, distance), "") for name in reaches)] for distance in distances]
    title = "Norm of the loss's gradient by distance, relative to the sentence's mean: median (quartiles)"
    return Grid("gradient_reach", title, ["distance", *reaches], rows)
