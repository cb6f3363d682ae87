"""What a training step costs, beside the bare calls of torch that it is made of.

The limit of a batch is the time of torch's own matrix products and recurrent networks on its shapes, forward and backward,
with nothing between them: no embedding, activation, softmax, loss, dropout, clipping or optimizer. Elementwise work, such
as the additive attention's over all pairs of positions, is not in it. Only a faster product or recurrence can pass it.
"""

import time
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from seq2seq.models.parallel import ParallelDecoder
from seq2seq.models.recurrent import Recurrent
from seq2seq.models.seq2seq import Seq2Seq
from seq2seq.types import PAD, Batch

Work = Callable[[], None]


def measure(
    works: Sequence[tuple[Sequence[Work], Sequence[Work]]], repetitions: int
) -> list[tuple[list[float], list[float]]]:
    """Times pairs of (whole, limit) in turn, so that a drift of the machine's speed meets all of them.

    Args:
        works: for each subject, its steps and its limits, one entry a batch.
        repetitions: how often each is run after a first, uncounted one.
    """
    times: list[tuple[list[float], list[float]]] = [([], []) for _ in works]
    for repetition in range(repetitions + 1):
        for subject, pair in enumerate(works):
            for kind, work in enumerate(pair):
                seconds = _seconds(work)
                if repetition > 0:
                    times[subject][kind].append(seconds)
    return times


def limit_of(model: Seq2Seq, batch: Batch) -> Work:
    """The unavoidable work of one training step on ``batch``: every product and recurrent call of ``model`` once.

    Raises:
        NotImplementedError: the model has another decoder than the parallel one.
    """
    decoder, encoder = model.decoder, model.encoder
    if not isinstance(decoder, ParallelDecoder):
        raise NotImplementedError(f"no limit is known for {type(decoder).__name__}")
    rows, source_length = batch.source.shape
    target_length = batch.targets.shape[1]
    device = batch.source.device
    tokens = int((batch.targets != PAD).sum())
    memory_size, hidden_size = encoder.memory_size, decoder.bottom.hidden_size
    parts = [
        *(_recurrent(stack, rows, source_length, device) for stacks in encoder.directions for stack in stacks),
        _recurrent(decoder.bottom, rows, target_length, device),
        _recurrent(decoder.upper, rows, target_length, device),
        _product(rows * target_length, decoder.readout, device),
        _product(tokens, model.output, device),
    ]
    parts += [_product(rows, bridge.linear, device) for bridge in decoder.bridges]
    attention = decoder.attention
    projections = {"query": target_length, "key": source_length, "energy": target_length * source_length}
    for name, length in projections.items():
        if hasattr(attention, name):
            parts.append(_product(rows * length, getattr(attention, name), device))
    if hasattr(attention, "key"):
        parts.append(_batched_product(rows, target_length, source_length, memory_size, device))
        if not hasattr(attention, "energy"):
            parts.append(_batched_product(rows, target_length, hidden_size, source_length, device))
    return lambda: _all(parts)


def _all(parts: Sequence[Work]) -> None:
    for part in parts:
        part()


def _product(rows: int, linear: nn.Linear, device: torch.device) -> Work:
    """``inputs @ weight`` and the two products of its gradients."""
    inputs = torch.randn(rows, linear.in_features, device=device)
    weight = torch.randn(linear.in_features, linear.out_features, device=device)
    return _three_products(inputs, weight)


def _batched_product(batch: int, rows: int, inner: int, columns: int, device: torch.device) -> Work:
    left = torch.randn(batch, rows, inner, device=device)
    right = torch.randn(batch, inner, columns, device=device)
    return _three_products(left, right)


def _three_products(left: Tensor, right: Tensor) -> Work:
    def work() -> None:
        product = left @ right
        product @ right.mT
        left.mT @ product

    return work


def _recurrent(stack: Recurrent, rows: int, length: int, device: torch.device) -> Work:
    """One call of torch's own network over full sequences, forward and backward."""
    inputs = torch.randn(rows, length, stack.rnn.input_size, device=device, requires_grad=True)

    def work() -> None:
        outputs, _ = stack.rnn(inputs)
        gradients = torch.autograd.grad(outputs, [inputs, *stack.rnn.parameters()], torch.ones_like(outputs))
        del gradients

    return work


def _seconds(works: Sequence[Work]) -> float:
    _synchronise()
    start = time.perf_counter()
    for work in works:
        work()
    _synchronise()
    return time.perf_counter() - start


def _synchronise() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()
