"""``seq2seq-bench train``: steps beside the limit of their shapes, by parts, and beside the same step under the Trainer."""

import argparse
import copy
import itertools
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch
from hydra.utils import instantiate
from lightning import Callback, LightningModule, Trainer, seed_everything
from omegaconf import DictConfig
from torch.nn.utils import clip_grad_norm_
from torch.utils.data import DataLoader

from seq2seq.cli.benching import Figure, begin, composed, finish, print_columns
from seq2seq.cli.building import build_data, build_listed, build_search, build_task
from seq2seq.cli.memory import forget_peak
from seq2seq.cli.run import quieten
from seq2seq.data.datamodule import TranslationData
from seq2seq.probes.cost import limit_of, machine, measure
from seq2seq.probes.parts import LOSS, OPTIMIZER, PARTS, part, shares_of_parts
from seq2seq.spread import evenly
from seq2seq.training.environment import peak_mib
from seq2seq.training.task import Translation
from seq2seq.types import PAD, Batch


class Subject(NamedTuple):
    """One model with what it learns from."""

    name: str
    config: DictConfig
    data: TranslationData
    task: Translation
    batches: list[Batch]
    loader_ms: float
    """To load one batch."""


def bench_train(options: argparse.Namespace) -> None:
    """Times one step and its limit for each decoder and attention, in turn; then each by parts and under the Trainer.

    Raises:
        ConfigError: a setting does not exist, or there is nothing to measure.
    """
    begin(options, "train", "batches", "repetitions")
    quieten()
    with tempfile.TemporaryDirectory() as folder:
        subjects = [
            subject_of(decoder, attention, options, Path(folder))
            for decoder, attention in itertools.product(options.model.split(","), options.attention.split(","))
        ]
        works = []
        for subject in subjects:
            step = stepping(subject.task, subject.config)
            steps = [lambda batch=batch, step=step: step(batch) for batch in subject.batches]
            works.append((steps, [part for batch in subject.batches for part in limit_of(subject.task.model, batch)]))
        measured = measure(works, options.repetitions)
        rows = [
            _row(subject, steps, whole, limit, options.repetitions)
            for subject, (steps, _), (whole, limit) in zip(subjects, works, measured, strict=True)
        ]
    of = machine()
    title = (
        f"training steps, {options.threads} threads, median (range) of {options.repetitions} interleaved repetitions; this "
        f"machine multiplies {of['products_gflops']:,} GFLOP/s and copies {of['copies_gb_s']:,} GB/s"
    )
    lines = {
        "parameters": "parameters",
        "step_ms": "ms a step",
        "tokens_per_s": "target tokens/s",
        "limit_tokens_per_s": "limit, target tokens/s",
        "percent_of_limit": "% of the limit",
        "percent_of_trainer": "% that Lightning adds",
        "peak_mib": "peak MiB",
        **{f"{name} ms": f"ms in {name}" for name in (*PARTS, "loader")},
    }
    print_columns(title, lines, rows)
    finish("train", rows, options, machine=of)


def subject_of(decoder: str, attention: str, options: argparse.Namespace, folder: Path) -> Subject:
    """A model and its data, from the settings on the command line.

    Args:
        decoder, attention: by the names of their config files.
        options: with ``overrides``, ``batches`` and ``conf``.
        folder: where run folders may be made.
    """
    overrides = [*options.overrides, f"model={decoder}", f"attention={attention}"]
    config = composed(options.conf, overrides, folder / f"{decoder}-{attention}")
    seed_everything(config.seed, verbose=False)
    data = build_data(config)
    task = build_task(config, data, build_search(config)).train()
    torch.set_float32_matmul_precision(config.matmul_precision)
    loader = data.train_dataloader()
    len(loader)  # plans the epoch
    begun = time.perf_counter()
    epoch = list(loader)
    loader_ms = 1000 * (time.perf_counter() - begun) / len(epoch)
    batches = [epoch[place] for place in evenly(len(epoch), options.batches)]
    return Subject(f"{decoder} {attention}", config, data, task, batches, loader_ms)


def stepping(task: Translation, config: DictConfig, **clipping: Any) -> Callable[[Batch], None]:
    """A whole training step, without a Trainer around it.

    Args:
        task: learns.
        config: its settings.
        clipping: further arguments of ``clip_grad_norm_``.
    """
    optimizer = task.build_optimizer(task.model.parameters())

    def step(batch: Batch) -> None:
        with part(LOSS):
            loss, _ = task.loss(batch)
        loss.backward()
        with part(OPTIMIZER):
            clip_grad_norm_(task.model.parameters(), config.trainer.gradient_clip_val, **clipping)
            optimizer.step()
            optimizer.zero_grad()

    return step


def _row(
    subject: Subject, steps: list[Callable[[], None]], whole: list[float], limit: list[float], repetitions: int
) -> dict[str, Any]:
    tokens, count = sum(int((batch.targets != PAD).sum()) for batch in subject.batches), len(steps)
    forget_peak()
    for step in steps:
        step()
    peak = peak_mib()
    # Of a usual batch alone: a decoder of single steps has thousands of operators in each.
    usual = sorted(range(count), key=lambda at: subject.batches[at].targets.numel())[count // 2]
    shares = shares_of_parts(steps[usual], subject.task.model)
    step_ms = Figure.of([1000 * seconds / count for seconds in whole])
    return {
        "name": subject.name,
        "parameters": subject.task.model.parameter_counts()["total"],
        "step_ms": step_ms,
        "tokens_per_s": Figure.of([tokens / seconds for seconds in whole], 0),
        "limit_tokens_per_s": Figure.of([tokens / seconds for seconds in limit], 0),
        "percent_of_limit": Figure.of([100 * bare / step for step, bare in zip(whole, limit, strict=True)]),
        "percent_of_trainer": _added_by_trainer(subject, repetitions),
        "peak_mib": peak and round(peak),
        **{f"{name} ms": round(share * step_ms.median, 1) for name, share in shares.items()},
        "loader ms": round(subject.loader_ms, 2),
    }


def _added_by_trainer(subject: Subject, repetitions: int) -> Figure:
    """By how many percent a step takes longer with Lightning's loop and the configured callbacks and loggers around it."""
    # Both begin with the same weights and meet the same batches in turn.
    bare = copy.deepcopy(subject.task)
    beside = _Beside(stepping(bare, subject.config), subject.batches)
    config, data = subject.config, subject.data
    data.train_dataloader = lambda: DataLoader(subject.batches, batch_size=None, collate_fn=lambda batch: batch)
    # Nothing is validated.
    callbacks = [each for each in build_listed(config.callbacks) if getattr(each, "monitor", None) is None]
    trainer: Trainer = instantiate(
        config.trainer,
        callbacks=[*callbacks, beside],
        logger=build_listed(config.logger),
        max_epochs=repetitions + 1,
        log_every_n_steps=min(config.trainer.log_every_n_steps, len(subject.batches)),
        limit_val_batches=0,
    )
    trainer.fit(subject.task, data)
    return Figure.of([100 * (loop / step - 1) for loop, step in zip(beside.loop[1:], beside.bare[1:], strict=True)])


class _Beside(Callback):
    """Times an epoch's steps, and before each epoch the same steps without a Trainer."""

    def __init__(self, step: Callable[[Batch], None], batches: list[Batch]):
        self.step, self.batches = step, batches
        self.bare: list[float] = []
        self.loop: list[float] = []
        self._begun = 0.0

    def on_train_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        begun = time.perf_counter()
        for batch in self.batches:
            self.step(batch)
        self._begun = time.perf_counter()
        self.bare.append(self._begun - begun)

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Batch, batch_idx: int
    ) -> None:
        if batch_idx + 1 == len(self.batches):
            self.loop.append(time.perf_counter() - self._begun)
