"""How a command starts: Hydra composes the config, and a user's mistake ends as one message instead of a traceback."""

import functools
import os
import sys
import traceback
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import hydra
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf

from seq2seq.cli import settings
from seq2seq.cli.command import leave_output, leave_to_signals, unwritable
from seq2seq.cli.messages import user_message
from seq2seq.cli.sweep import Cells, SweepReport, cell_name
from seq2seq.errors import ConfigError

FULL_ERROR = "HYDRA_FULL_ERROR"
OURS = "SEQ2SEQ_FULL_ERROR_IS_OURS"
"""Tells the processes that this one starts that nobody asked for tracebacks."""
RUNS = Path("runs")
RANKS = ("RANK", "LOCAL_RANK", "SLURM_PROCID")
"""Where those that start several processes leave the number of each."""


def entry(config_folder: Path, config_name: str) -> Callable[[Callable[[DictConfig], float]], Callable[[], None]]:
    """Turns a function of a config into a command.

    Args:
        config_folder: where the config files lie.
        config_name: the file to start from.
    """
    settings.register()

    def decorate(task: Callable[[DictConfig], float]) -> Callable[[], None]:
        hydra_main = hydra.main(version_base="1.3", config_path=str(config_folder.resolve()), config_name=config_name)

        def main() -> None:
            register_resolvers()
            kept = _Kept(task)
            command = hydra_main(kept)
            traceback_wanted = os.environ.get(FULL_ERROR) == "1" and OURS not in os.environ
            # Without it Hydra prints exceptions and exits by itself; here they have to come through.
            if not traceback_wanted:
                os.environ[FULL_ERROR] = os.environ[OURS] = "1"
            try:
                command()
                if kept.failures:
                    raise kept.failures[0]
            except SystemExit:
                leave_to_signals()
                raise
            except BrokenPipeError as error:
                leave_output(error)
            except (Exception, KeyboardInterrupt) as error:
                if isinstance(error, KeyboardInterrupt):
                    leave_to_signals()
                message = user_message(error, composing=not kept.begun)
                if traceback_wanted or message is None:
                    traceback.print_exc()
                else:
                    print(f"error: {message}", file=sys.stderr)
                sys.exit(130 if isinstance(error, KeyboardInterrupt) else 1)
            # Cells that ran in processes of their own have left no more than their folders.
            failed = sorted({folder.name for folder in (*kept.cells.failed, *SweepReport.failed)})
            if failed:
                print(f"error: cells that failed: {', '.join(failed)}", file=sys.stderr)
                sys.exit(1)

        return main

    return decorate


class _Kept:
    """A task as Hydra calls it, here or, after a journey, in a process of a launcher: what it raises is kept.

    What passes through Hydra, Hydra announces with a line of its own.
    """

    def __init__(self, task: Callable[[DictConfig], float]):
        functools.update_wrapper(self, task)
        self.__code__ = task.__code__  # where Hydra looks for the script
        self.cells = Cells(task)
        self.failures: list[Exception] = []
        self.begun = False

    def __call__(self, config: DictConfig) -> float:
        self.begun = True
        try:
            return self.cells(config)
        except Exception as error:
            self.failures.append(error)
            return float("nan")

    def __getstate__(self) -> dict[str, Any]:
        return {"task": self.cells.task, "folders": dict(_folders)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["task"])
        register_resolvers(state["folders"])


_folders: dict[str | None, str] = {}
"""The run folder that was chosen for each value of ``resume``."""


def register_resolvers(folders: Mapping[str | None, str] | None = None) -> None:
    """Makes known what the config files write as ``${run_folder:...}`` and the like, anew for every command.

    Args:
        folders: the run folders that another process of the same command has chosen.
    """
    _folders.clear()
    _folders.update(folders or {})
    OmegaConf.register_new_resolver(last_run_or_new.__name__, _chosen_folder, replace=True)
    for resolver in (run_folder, name_of, cell_name, fused):
        OmegaConf.register_new_resolver(resolver.__name__, resolver, replace=True)


def _chosen_folder(resume: str | None) -> str:
    """Hydra and every cell of a sweep ask for the run folder again and again; all have to hear of the same one."""
    if resume not in _folders:
        _folders[resume] = last_run_or_new(resume)
    return _folders[resume]


def run_folder(wanted: str, resume: str | None) -> str:
    """A run's folder, after a look whether a run may be written there; Hydra creates it right after.

    Raises:
        ConfigError: it cannot be written, or holds another run.
    """
    if not wanted.strip():
        raise ConfigError("run_dir is empty: name a folder, or leave it out for a dated one")
    folder = Path(wanted)
    if (place := unwritable(folder)) is not None:
        raise ConfigError(f"run_dir={wanted} cannot be written: {place} is no writable folder; choose another run_dir")
    # Where several processes share a folder, the first of them looks.
    if (
        first_process()
        and resume is None
        and any((folder / name).exists() for name in ("scores.json", "checkpoints", "metrics.csv"))
    ):
        raise ConfigError(
            f"run_dir={wanted} already holds a run: choose another run_dir, or continue that one with resume=last"
        )
    return wanted


def first_process() -> bool:
    """Whether this is a training's only process, or the first of several."""
    return all(int(os.environ.get(name, 0)) == 0 for name in RANKS)


def last_run_or_new(resume: str | None) -> str:
    """A new dated folder; with ``resume=last``, the newest one that holds a checkpoint to resume.

    Raises:
        ConfigError: there is none to resume, or several processes would each make a folder of their own.
    """
    if resume == "last":
        checkpoints = sorted(RUNS.glob("*/checkpoints/last.ckpt"), key=lambda path: path.stat().st_mtime)
        if not checkpoints:
            raise ConfigError(f"resume=last found no {RUNS}/*/checkpoints/last.ckpt: name the run with run_dir=DIR")
        return str(checkpoints[-1].parent.parent)
    if "TORCHELASTIC_RUN_ID" in os.environ or int(os.environ.get("SLURM_NTASKS", 1)) > 1:
        raise ConfigError(
            "processes that torchrun or SLURM start cannot agree on a dated folder: name the run's own with run_dir=DIR"
        )
    return str(RUNS / f"{datetime.now():%Y-%m-%d_%H-%M-%S}")


def fused(precision: str) -> bool:
    """Whether the optimizer runs as one kernel: not under mixed precision, where Lightning then clips no gradients."""
    return "mixed" not in str(precision)


def name_of(group: str) -> str:
    """The name of the config chosen for a group, such as ``scaled`` for ``attention``."""
    choice = HydraConfig.get().runtime.choices.get(group)
    if not isinstance(choice, str):
        raise ConfigError(f"{group} takes one name, as in {group}=NAME: `python train.py --help` lists them")
    return choice
