"""Sweeps: every cell has a folder, finished cells are not run again, failed ones do not stop the others."""

import json
import re
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hydra.core.hydra_config import HydraConfig
from hydra.experimental.callback import Callback
from hydra.types import RunMode
from omegaconf import DictConfig

from seq2seq.cli.messages import user_message

LONGEST_NAME = 100


def in_sweep() -> bool:
    """True in a cell of a sweep."""
    return HydraConfig.initialized() and HydraConfig.get().mode == RunMode.MULTIRUN


def cell_name(number: int, overrides: str) -> str:
    """A folder's name from what a cell changes, in characters that need no quotes on a command line."""
    words = re.sub(r"[^\w.-]+", "-", overrides).strip("-")
    return f"{number}_{words}"[:LONGEST_NAME] if words else str(number)


class Cells:
    """Runs a task as the cells of a sweep, and as it is outside of one.

    Args:
        task: of a config; returns what the sweep maximises.
    """

    def __init__(self, task: Callable[[DictConfig], float]):
        self.task = task
        self.failed: list[Path] = []
        self.count = 0

    def __call__(self, config: DictConfig) -> float:
        if not in_sweep():
            return self.task(config)
        self.count += 1
        folder = Path(HydraConfig.get().runtime.output_dir)
        scores, error_file = folder / "scores.json", folder / "error.txt"
        if scores.is_file():
            print(f"{folder} is finished already and is not run again")
            return float(json.loads(scores.read_text(encoding="utf-8"))["best_valid_bleu"])
        error_file.unlink(missing_ok=True)
        try:
            return self.task(config)
        except Exception as error:
            message = user_message(error) or traceback.format_exc()
            error_file.write_text(message.rstrip() + "\n", encoding="utf-8")
            print(f"error in {folder}, the sweep goes on: {message}", file=sys.stderr)
            self.failed.append(folder)
            return float("nan")


class SweepReport(Callback):
    """Writes the comparison of all cells into ``report/`` of the sweep's folder when the last one is done.

    Args:
        options: how to compare, as ``seq2seq.report.comparison.gather`` takes it.
    """

    def __init__(self, **options: Any):
        self.options = options

    def on_multirun_end(self, config: DictConfig, **kwargs: object) -> None:
        from seq2seq.report.compare import compare

        folder = Path(config.hydra.sweep.dir)
        try:
            page = compare([folder], folder / "report", **self.options)
        except Exception as error:
            # Hydra turns what a callback raises into a warning that is easily missed.
            print(f"error: no report: {user_message(error) or traceback.format_exc()}", file=sys.stderr)
        else:
            print(f"report: {page}")
