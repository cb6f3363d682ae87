"""``seq2seq-bench choices``: what each thing that makes a training step fast brings, by what stands in its place."""

import argparse
import copy
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple
from unittest.mock import patch

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from seq2seq.attention import additive
from seq2seq.cli.benching import Figure, begin, finish, print_rows
from seq2seq.cli.run import quieten
from seq2seq.cli.subject import Subject, stepping, subjects_of
from seq2seq.models import recurrent
from seq2seq.models.encoder import RecurrentEncoder
from seq2seq.models.gru import rounds_factors
from seq2seq.models.recurrent import Recurrent
from seq2seq.models.seq2seq import Seq2Seq
from seq2seq.probes.cost import Work, measure
from seq2seq.training.task import Translation
from seq2seq.types import PAD, Batch, Decoded


def bench_choices(options: argparse.Namespace) -> None:
    """Times the same steps as they are and with something else in place of one choice after the other, all in turn.

    Raises:
        ConfigError: a setting does not exist, or there is nothing to measure.
    """
    begin(options, "choices", "batches", "repetitions")
    quieten()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for subject in subjects_of(options, Path(folder)):
            names = ["as it is", *(name for name, choice in CHOICES.items() if choice.used(subject))]
            works = [_steps(subject, CHOICES.get(name, Choice())) for name in names]
            measured = [whole for whole, _ in measure([(work, []) for work in works], options.repetitions)]
            rows += [
                {
                    "name": f"{subject.name}: {name}",
                    "step_ms": Figure.of([1000 * seconds / len(subject.batches) for seconds in whole]),
                    "ratio": Figure.of([other / one for one, other in zip(measured[0], whole, strict=True)], 3),
                }
                for name, whole in zip(names, measured, strict=True)
            ]
    title = (
        f"training steps, {options.threads} threads, median (range) of {options.repetitions} interleaved repetitions"
    )
    print_rows(title, {"name": "decoder, attention: instead", "step_ms": "ms a step", "ratio": "times as long"}, rows)
    finish("choices", rows, options)


@contextmanager
def torch_gru(task: Translation) -> Iterator[None]:
    """torch's own layer, whose gradient takes a product of the weights' size for every position."""

    def layer(inputs: Tensor, state: Tensor, *weights: Tensor) -> tuple[Tensor, Tensor]:
        states, last = torch.gru(inputs, state[None], weights, True, 1, 0.0, True, False, True)
        return states, last[0]

    with patch.object(recurrent, "gru_layer", layer):
        yield


@contextmanager
def packed(task: Translation) -> Iterator[None]:
    """torch's own layer in the encoder, on packed sequences, which have no padding."""
    lengths: list[Tensor] = []

    def forward(self: Recurrent, inputs: Tensor) -> tuple[Tensor, None]:
        (rnn,) = self.rnns
        rows = pack_padded_sequence(inputs, lengths[-1], batch_first=True, enforce_sorted=False)
        return pad_packed_sequence(rnn(rows)[0], batch_first=True, total_length=inputs.shape[1])[0], None

    def note(encoder: nn.Module, arguments: tuple[Tensor, Tensor]) -> None:
        lengths[:] = [arguments[1].sum(dim=1).cpu()]

    stacks = [stack for direction in task.model.encoder.directions for stack in direction]
    handle = task.model.encoder.register_forward_pre_hook(note)
    for stack in stacks:
        stack.forward = partial(forward, stack)
    try:
        yield
    finally:
        handle.remove()
        for stack in stacks:
            del stack.forward


@contextmanager
def all_pairs(task: Translation) -> Iterator[None]:
    """Additive scores with the activations of all pairs of positions in memory."""

    def scores(queries: Tensor, keys: Tensor, weight: Tensor) -> Tensor:
        return torch.tanh(queries.unsqueeze(2) + keys.unsqueeze(1)) @ weight

    with patch.object(additive, "additive_scores", scores):
        yield


@contextmanager
def all_positions(task: Translation) -> Iterator[None]:
    """The output layer on padding as well."""

    def summed(
        batch: Batch, label_smoothing: float = 0.0, forward: Callable[..., Decoded] = Seq2Seq.__call__
    ) -> tuple[Tensor, int]:
        scores = task.model.output(forward(task.model, batch.source, batch.inputs).features).flatten(0, 1)
        targets = batch.targets.flatten()
        loss = F.cross_entropy(scores, targets, ignore_index=PAD, reduction="sum", label_smoothing=label_smoothing)
        return loss, int((targets != PAD).sum())

    with patch.object(task, "_summed_loss", summed):
        yield


@contextmanager
def exact_factors(task: Translation) -> Iterator[None]:
    """Products of training in single precision, ``matmul_precision=highest``."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


NOTHING: Mapping[str, Any] = MappingProxyType({})


def _always(subject: Subject) -> bool:
    return True


class Choice(NamedTuple):
    """How to do without something, and where that is possible."""

    without: Callable[[Translation], AbstractContextManager[None]] = lambda _: nullcontext()
    used: Callable[[Subject], bool] = _always
    optimizer: Mapping[str, Any] = NOTHING
    clipping: Mapping[str, Any] = NOTHING


def _has_gru(subject: Subject) -> bool:
    return subject.config.cell == "gru"


CHOICES = {
    "torch's GRU": Choice(torch_gru, _has_gru),
    "torch's GRU, packed in the encoder": Choice(
        packed, lambda subject: _has_gru(subject) and isinstance(subject.task.model.encoder, RecurrentEncoder)
    ),
    "additive scores of all pairs at once": Choice(
        all_pairs,
        lambda subject: any(isinstance(part, additive.AdditiveAttention) for part in subject.task.model.modules()),
    ),
    "an output layer that sees padding": Choice(all_positions),
    "factors in single precision": Choice(exact_factors, lambda subject: rounds_factors()),
    "an optimizer that is not fused": Choice(
        used=lambda subject: "fused" in subject.config.optimizer, optimizer={"fused": False}
    ),
    "clipping one weight after the other": Choice(
        used=lambda subject: bool(subject.config.trainer.gradient_clip_val), clipping={"foreach": False}
    ),
}


def _steps(subject: Subject, choice: Choice) -> list[Work]:
    task = copy.deepcopy(subject.task)
    task.build_optimizer = partial(task.build_optimizer, **choice.optimizer)
    step = stepping(task, subject.config, **choice.clipping)

    def run(batch: Batch) -> None:
        with choice.without(task):
            step(batch)

    return [partial(run, batch) for batch in subject.batches]
