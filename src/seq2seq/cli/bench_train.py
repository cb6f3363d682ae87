"""``seq2seq-bench train``: steps beside the limit of their shapes, by parts, and beside the same step under the Trainer."""

import argparse
import copy
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from functools import partial
from pathlib import Path
from typing import Any

import torch
from lightning import Callback, LightningModule, Trainer
from lightning.pytorch.callbacks import Checkpoint, EarlyStopping
from torch.utils.data import DataLoader

from seq2seq.cli.benching import Figure, begin, finish, print_columns
from seq2seq.cli.building import build_listed
from seq2seq.cli.memory import forget_peak
from seq2seq.cli.run import build_trainer, quieten
from seq2seq.cli.subject import Subject, stepping, subjects_of
from seq2seq.models.seq2seq import Seq2Seq
from seq2seq.probes.cost import Work, limit_of, machine, measure
from seq2seq.probes.parts import PARTS, shares_of_parts
from seq2seq.training.environment import peak_mib
from seq2seq.types import PAD, Batch


def bench_train(options: argparse.Namespace) -> None:
    """Times one step and its limit for each decoder and attention, in turn; then each by parts and under the Trainer.

    Raises:
        ConfigError: a setting does not exist, or there is nothing to measure.
    """
    begin(options, "train", "batches", "repetitions")
    quieten()
    with tempfile.TemporaryDirectory() as folder:
        subjects, peaks = [], []
        for subject in subjects_of(options, Path(folder)):
            subjects.append(subject)
            peaks.append(_peak(subject))
        works = [
            (_steps(subject), [part for batch in subject.batches for part in limit_of(subject.task.model, batch)])
            for subject in subjects
        ]
        measured = measure(works, options.repetitions)
        of = machine()
        rows = [
            _row(subject, whole, limit, peak, options.repetitions)
            for subject, (whole, limit), peak in zip(subjects, measured, peaks, strict=True)
        ]
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


def _steps(subject: Subject) -> list[Work]:
    """One of each batch, on a copy of the model."""
    step = stepping(copy.deepcopy(subject.task), subject.config)
    return [partial(step, batch) for batch in subject.batches]


def _peak(subject: Subject) -> float | None:
    """Of the process while it trains, before there is anything else to measure in it."""
    forget_peak()
    for step in _steps(subject):
        step()
    return peak_mib()


def _shares(subject: Subject) -> dict[str, float]:
    """Of a usual batch alone: a decoder of single steps has thousands of operators in each."""
    task = copy.deepcopy(subject.task)
    # The compiler leaves no parts to look at.
    task.learning_forward = Seq2Seq.__call__
    step = stepping(task, subject.config)
    usual = sorted(subject.batches, key=lambda batch: batch.targets.numel())[len(subject.batches) // 2]
    step(usual)
    return shares_of_parts(lambda: step(usual), task.model)


def _row(
    subject: Subject, whole: list[float], limit: list[float], peak: float | None, repetitions: int
) -> dict[str, Any]:
    tokens, count = sum(int((batch.targets != PAD).sum()) for batch in subject.batches), len(subject.batches)
    shares = _shares(subject)
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
    # Nothing is validated, and nothing kept.
    callbacks = [each for each in build_listed(config.callbacks) if not isinstance(each, Checkpoint | EarlyStopping)]
    precision = torch.get_float32_matmul_precision()
    with redirect_stdout(sys.stderr):
        trainer = build_trainer(
            config,
            [*callbacks, beside],
            build_listed(config.logger),
            max_epochs=repetitions + 1,
            max_steps=-1,
            fast_dev_run=False,
            limit_train_batches=1.0,
            limit_val_batches=0,
            log_every_n_steps=min(config.trainer.log_every_n_steps, len(subject.batches)),
        )
        trainer.fit(subject.task, data)
    # Which training leaves at its end.
    torch.set_float32_matmul_precision(precision)
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
