"""What is looked at before anything is built, and what of Lightning's own complaints is meant for the user."""

import os
import re
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lightning
from filelock import FileLock, Timeout
from omegaconf import DictConfig

from seq2seq.cli.command import MOST_A_CORE
from seq2seq.cli.entry import first_process
from seq2seq.errors import ConfigError
from seq2seq.types import is_whole

LIGHTNING = str(Path(lightning.__file__).parent)


def _whole(least: int) -> Callable[[Any], bool]:
    return lambda value: is_whole(value, least)


def _rate(value: Any) -> bool:
    return value is None or (
        isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < float("inf")
    )


RULES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "seed": (lambda value: _whole(0)(value) and value < 2**32, "a whole number from 0 to 4294967295"),
    "max_epochs": (_whole(1), "a whole number of at least 1"),
    "trainer.accumulate_grad_batches": (_whole(1), "a whole number of at least 1"),
    "trainer.log_every_n_steps": (_whole(1), "a whole number of at least 1"),
    "trainer.gradient_clip_val": (_rate, "a number of at least 0, or null for none"),
    "trainer.num_nodes": (_whole(1), "a whole number of at least 1"),
    "trainer.check_val_every_n_epoch": (
        lambda value: value is None or _whole(1)(value),
        "a whole number of at least 1",
    ),
    "tokenizer.joint": (lambda value: isinstance(value, bool), "true or false"),
    "callbacks.samples.count": (_whole(0), "a whole number of at least 0"),
    "callbacks.results.sentences": (_whole(0), "a whole number of at least 0"),
    "callbacks.start.sentences": (_whole(0), "a whole number of at least 0"),
    "callbacks.early_stopping.patience": (_whole(0), "a whole number of at least 0"),
}
"""What a setting that is there must be, and how to say it."""


def check_settings(config: DictConfig) -> None:
    """Numbers that would do harm, or nothing, far from where they were given.

    Raises:
        ConfigError: one is out of range; names the setting.
    """
    for name, (fits, wanted) in RULES.items():
        value = config
        for key in name.split("."):
            if not isinstance(value, DictConfig) or key not in value:
                break
            value = value[key]
        else:
            if not fits(value):
                raise ConfigError(f"{name}={value} is not possible: give {wanted}")
    for shelf in ("callbacks", "logger"):
        for name, part in (config[shelf] or {}).items():
            if part is not None and not (isinstance(part, DictConfig) and "_target_" in part):
                raise ConfigError(
                    f"{shelf}.{name}={part} is no part of a training: give null, or settings with a _target_"
                )
    devices, cores = config.trainer.get("devices"), os.cpu_count() or 1
    if config.trainer.get("accelerator") == "cpu" and isinstance(devices, int) and devices > MOST_A_CORE * cores:
        raise ConfigError(
            f"trainer.devices={devices} are as many processes, and this machine has {cores} cores: give fewer"
        )


_claims: list[FileLock] = []
"""Of this process, which has one run at a time."""


def claim(folder: Path) -> None:
    """Keeps a run's folder for this run until the next one or the program's end, so that no two write into one.

    Raises:
        ConfigError: another run is at work in it, or it cannot be written.
    """
    while _claims:
        _claims.pop().release()
    if not first_process():
        return
    lock = FileLock(folder / ".lock")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock.acquire(timeout=0)
    except Timeout as error:
        raise ConfigError(
            f"another run is at work in {folder}: wait for its end, or choose another run_dir (without one, runs that are "
            "started in the same second meet in one folder)"
        ) from error
    except OSError as error:
        raise ConfigError(f"{folder} cannot be written: {error}; choose another run_dir") from error
    _claims.append(lock)


def lightning_message(error: BaseException) -> ConfigError | None:
    """What Lightning itself says of the settings that it was given; None for what was raised elsewhere."""
    frames = traceback.extract_tb(error.__traceback__)
    if not frames or not frames[-1].filename.startswith(LIGHTNING):
        return None
    message = re.sub(r"\s+", " ", str(error))
    cure = "; name another one, or set callbacks.early_stopping=null" if message.startswith("Early stopping") else ""
    return ConfigError(f"the training cannot go on as configured: {message}{cure}")
