"""The attention's scores before training: how large they are, how sharp the weights, and what gradient they get."""

from collections.abc import Sequence
from typing import NamedTuple

from seq2seq.report.grid import Grid
from seq2seq.report.systems import System
from seq2seq.report.table import Spread, spread


class Measure(NamedTuple):
    """A statistic in ``scores_at_start`` of ``scores.json``, and what it is in words."""

    key: str
    words: str


MEASURES = (
    Measure("deviation", "standard deviation of the scores"),
    Measure("entropy", "entropy of the weights (share of the largest)"),
    Measure("gradient", "norm of the gradient at the scores"),
)


def at_start(system: System, key: str) -> Spread | None:
    """Over the system's seeds; None if no run measured it."""
    starts = [run.scores.get("scores_at_start") for run in system.runs]
    values = [float(start[key]) for start in starts if start]
    return spread(values) if values else None


def start_grid(systems: Sequence[System]) -> Grid:
    """One row a system that measured them."""
    rows = []
    for system in systems:
        found = [at_start(system, measure.key) for measure in MEASURES]
        if found[0] is not None:
            rows.append([system.name, *(f"{number.mean:.3g}" for number in found if number)])
    title = "Scores of the untrained attention (mean over target tokens and seeds)"
    return Grid("scores_at_start", title, ["system", *(measure.words for measure in MEASURES)], rows)
