"""What is measured of training: a model with its data, and one step of it without a Trainer."""

import argparse
import itertools
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import torch
from lightning import seed_everything
from omegaconf import DictConfig
from torch.nn.utils import clip_grad_norm_

from seq2seq.cli.benching import composed, listed
from seq2seq.cli.building import build_data, build_search, build_task
from seq2seq.data.datamodule import TranslationData
from seq2seq.errors import ConfigError
from seq2seq.probes.parts import LOSS, OPTIMIZER, part
from seq2seq.spread import evenly
from seq2seq.training.callbacks.matmul import MatmulPrecision
from seq2seq.training.task import Translation
from seq2seq.types import Batch

MEASURED: dict[str, tuple[Any, ...]] = {
    "accelerator": ("cpu",),
    "devices": (1,),
    "num_nodes": (1,),
    "precision": ("32-true", "32", 32),
    "accumulate_grad_batches": (1,),
    "gradient_clip_algorithm": (None, "norm"),
}
"""Settings of the trainer that a step without a Trainer follows; others would be measured wrongly."""


class Subject(NamedTuple):
    """One model with what it learns from."""

    name: str
    config: DictConfig
    data: TranslationData
    task: Translation
    batches: list[Batch]
    loader_ms: float
    """To load one batch."""


def subjects_of(options: argparse.Namespace, folder: Path) -> Iterator[Subject]:
    """Models and their data, from the settings on the command line.

    Args:
        options: with ``model`` and ``attention``, names of config files; ``overrides``, ``batches`` and ``conf``.
        folder: where run folders may be made.

    Raises:
        ConfigError: a setting does not fit, or cannot be measured.
    """
    for shelf in ("model", "attention"):
        if any(override.startswith(f"{shelf}=") for override in options.overrides):
            raise ConfigError(f"{shelf}=NAME is chosen here with --{shelf} NAME, or several with commas between")
    for decoder, attention in itertools.product(listed(options, "model"), listed(options, "attention")):
        overrides = [*options.overrides, f"model={decoder}", f"attention={attention}"]
        config = composed(options.conf, overrides, folder / f"{decoder}-{attention}")
        for name, possible in MEASURED.items():
            if (found := config.trainer.get(name)) not in possible:
                raise ConfigError(
                    f"trainer.{name}={found} is not measured here, which is one process on the CPU in single precision; a "
                    "GPU is measured by `pytest -m gpu -n 0 -s`"
                )
        # What they say is not part of the table.
        with redirect_stdout(sys.stderr):
            yield _subject(f"{decoder} {attention}", config, options.batches)


def _subject(name: str, config: DictConfig, count: int) -> Subject:
    seed_everything(config.seed, verbose=False)
    data = build_data(config)
    task = build_task(config, data, build_search(config)).train()
    torch.set_float32_matmul_precision(MatmulPrecision(config.matmul_precision).training)
    loader = data.train_dataloader()
    batches_of_epoch = len(loader)  # plans the epoch
    wanted = set(evenly(batches_of_epoch, count))
    begun = time.perf_counter()
    batches = [batch for place, batch in enumerate(loader) if place in wanted]
    loader_ms = 1000 * (time.perf_counter() - begun) / batches_of_epoch
    return Subject(name, config, data, task, batches, loader_ms)


def stepping(task: Translation, config: DictConfig, **clipping: Any) -> Callable[[Batch], None]:
    """A whole training step, without a Trainer around it.

    Args:
        task: learns.
        config: its settings.
        clipping: further arguments of ``clip_grad_norm_``.
    """
    optimizer = task.make_optimizer()
    largest = config.trainer.gradient_clip_val

    def step(batch: Batch) -> None:
        with part(LOSS):
            loss, _ = task.loss(batch)
        loss.backward()
        with part(OPTIMIZER):
            # As Lightning has it, neither null nor 0 clips anything.
            if largest:
                clip_grad_norm_(task.model.parameters(), largest, **clipping)
            optimizer.step()
            optimizer.zero_grad()

    return step
