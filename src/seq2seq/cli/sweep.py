"""Sweeps: every cell has a folder, finished cells are not run again, failed ones do not stop the others."""

import json
import logging
import re
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any, ClassVar

from hydra.core.hydra_config import HydraConfig
from hydra.experimental.callback import Callback
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf

from seq2seq.cli.messages import user_message
from seq2seq.errors import ConfigError
from seq2seq.report.settings import PLACES, flat, read_settings

ERROR = "error.txt"
"""In the folder of a cell that failed, with what was wrong."""
LONGEST_NAME = 100
NO_SETTING = re.compile(rf"{PLACES}|callbacks\.(progress|start|results\.facts)\b.*")
"""Where a run reads and writes, what it is called and what it shows meanwhile change no result."""


LATER = re.compile(
    rf"{NO_SETTING.pattern}|max_epochs|datamodule\.workers|(logger|decoding)\b.*|callbacks\.(?!ema\b).*"
    r"|trainer\.(?!precision|gradient_clip_val|accumulate_grad_batches).*"
)
"""What may be another one when a training goes on: how long, where and in how many processes, what it shows and searches."""


def in_sweep() -> bool:
    """True in a cell of a sweep."""
    return HydraConfig.initialized() and HydraConfig.get().mode == RunMode.MULTIRUN


def cell_name(overrides: str) -> str:
    """A folder's name from what a cell changes, in characters that need no quotes on a command line.

    It does not depend on the other cells, so that a larger sweep in the same folder finds what a smaller one has finished.
    """
    words = re.sub(r"[^\w.-]+", "-", overrides).strip("-") or "defaults"
    if len(words) <= LONGEST_NAME:
        return words
    mark = blake2b(overrides.encode(), digest_size=4).hexdigest()
    return f"{words[: LONGEST_NAME - len(mark) - 1]}-{mark}"


class Cells:
    """Runs a task as the cells of a sweep, and as it is outside of one.

    Args:
        task: of a config; returns what the sweep maximises.
    """

    def __init__(self, task: Callable[[DictConfig], float]):
        self.task = task
        self.failed: list[Path] = []
        self._folders: set[Path] = set()

    def __call__(self, config: DictConfig) -> float:
        if not in_sweep():
            return self.task(config)
        folder = Path(HydraConfig.get().runtime.output_dir)
        error_file = folder / ERROR
        error_file.unlink(missing_ok=True)
        try:
            if folder in self._folders:
                raise ConfigError(f"two cells of this sweep would write to {folder}: sweep over another setting")
            self._folders.add(folder)
            if (folder / "scores.json").is_file():
                _check_same_settings(folder, config)
                print(f"{folder} is finished already and is not run again")
                return _finished_score(folder)
            return self.task(config)
        except Exception as error:
            message = user_message(error) or traceback.format_exc()
            error_file.write_text(message.rstrip() + "\n", encoding="utf-8")
            print(f"error in {folder}, the sweep goes on: {message}", file=sys.stderr)
            self.failed.append(folder)
            return float("nan")


def _finished_score(folder: Path) -> float:
    score = json.loads((folder / "scores.json").read_text(encoding="utf-8"))["best_valid_bleu"]
    return float("nan") if score is None else float(score)


def _check_same_settings(folder: Path, config: DictConfig) -> None:
    """Refuses to take a finished run for one with other settings.

    Raises:
        ConfigError: they differ; names the first difference.
    """
    for name, there, here in _different(folder, config, NO_SETTING):
        raise ConfigError(
            f"{folder} holds a finished run with {name}={there}, here it is {here}: choose another run_dir, or remove that "
            "folder"
        )


def check_same_run(checkpoint: Path, config: DictConfig) -> None:
    """Refuses to go on with other settings than a run began with: its files would then tell of a training that never was.

    Args:
        checkpoint: in the folder ``checkpoints`` of the run.
        config: of the run that is to go on.

    Raises:
        ConfigError: they differ; names the first difference.
    """
    folder = checkpoint.absolute().parent.parent
    if not (folder / "config.yaml").is_file():
        return
    for name, there, here in _different(folder, config, LATER):
        raise ConfigError(
            f"{folder} was begun with {name}={there}, here it is {here}: give all the settings it was begun with, which its "
            "config.yaml lists, and resume=last; max_epochs, trainer, callbacks, logger and decoding may change"
        )


def _different(folder: Path, config: DictConfig, left_out: re.Pattern[str]) -> Iterator[tuple[str, str, str]]:
    """Names of settings, the outermost first, with their values in the folder's run and here."""
    begun = read_settings(folder / "config.yaml")
    wanted = flat(OmegaConf.to_container(config, resolve=True))
    for name in sorted(begun.keys() | wanted.keys(), key=lambda name: (name.count("."), name)):
        here, there = wanted.get(name, "null"), begun.get(name, "null")
        if here != there and not left_out.fullmatch(name):
            yield name, there, here


class SweepReport(Callback):
    """Writes the comparison of all cells into ``report/`` of the sweep's folder when the last one is done.

    Args:
        options: how to compare, as ``seq2seq.report.comparison.gather`` takes it.

    Attributes:
        failed: folders of cells that failed in the last sweep of this process, wherever they ran.
    """

    failed: ClassVar[list[Path]] = []

    def __init__(self, **options: Any):
        self.options = options
        self.began = 0.0

    def on_multirun_start(self, config: DictConfig, **kwargs: object) -> None:
        # A file's time may be some milliseconds behind.
        self.began = time.time() - 1
        self.failed.clear()

    def on_multirun_end(self, config: DictConfig, **kwargs: object) -> None:
        from seq2seq.report.compare import compare

        # Hydra shows what sacreBLEU tells of every step of its tests.
        logging.getLogger("sacrebleu").setLevel(logging.WARNING)
        folder = Path(config.hydra.sweep.dir)
        self.failed += [file.parent for file in folder.glob(f"*/{ERROR}") if file.stat().st_mtime >= self.began]
        try:
            page = compare([folder], folder / "report", **self.options)
        except Exception as error:
            # Hydra turns what a callback raises into a warning that is easily missed.
            print(f"error: no report: {user_message(error) or traceback.format_exc()}", file=sys.stderr)
        else:
            print(f"report: {page}")
