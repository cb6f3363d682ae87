"""Learning curves: the validations of every run over what it had seen by then."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from seq2seq.report.grid import Grid
from seq2seq.report.systems import System

AXES = {"train/tokens_seen": "target tokens seen", "train/minutes": "minutes of training"}
STEPS = "training steps"
UNITS = {"target tokens seen": "tokens", "minutes of training": "minutes", STEPS: "steps"}


class Curve(NamedTuple):
    """One run's validations, ``[V]`` each: BLEU 0 to 100, loss in nats per target token."""

    system: str
    seed: int
    along: np.ndarray
    bleu: np.ndarray
    loss: np.ndarray


def curves(systems: Sequence[System], column: str) -> tuple[str, list[Curve]]:
    """What the curves run along, and the curve of every run that logged its validations.

    Args:
        systems: all of them.
        column: one of ``AXES``; where a run does not have it, all go along training steps.
    """
    logged = [(system, run) for system in systems for run in system.runs if len(run.progress.get("valid/bleu", ()))]
    everywhere = all(column in run.progress and not np.isnan(run.progress[column]).any() for _, run in logged)
    name = column if everywhere else "step"
    found = [
        Curve(
            system.name,
            run.seed,
            run.progress[name],
            run.progress["valid/bleu"],
            run.progress.get("valid/loss", np.full(len(run.progress["step"]), np.nan)),
        )
        for system, run in logged
    ]
    return (AXES[column] if everywhere else STEPS), found


def unlogged(systems: Sequence[System]) -> list[str]:
    """Folders of the runs without a curve."""
    return [str(run.folder) for system in systems for run in system.runs if not len(run.progress.get("valid/bleu", ()))]


def progress_grid(systems: Sequence[System]) -> Grid:
    """One row a validation."""
    columns = ["step", *AXES, "valid/bleu", "valid/loss"]
    rows = []
    for system in systems:
        for run in system.runs:
            values = [run.progress.get(name) for name in columns]
            for place in range(len(run.progress.get("step", ()))):
                cells = ["" if value is None or np.isnan(value[place]) else f"{value[place]:.6g}" for value in values]
                rows.append([system.name, str(run.seed), *cells])
    headers = ["system", "seed", "step", "target tokens seen", "minutes", "validation BLEU", "validation loss"]
    return Grid("learning", "Validations during training", headers, rows)
