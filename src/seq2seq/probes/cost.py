"""What a training step costs, beside the bare calls of torch that it is made of.

The limit of a batch is the time of bare matrix products and recurrent networks on its shapes, forward and backward,
with nothing between them: no embedding, activation, softmax, loss, dropout, clipping or optimizer. Elementwise work, such
as the additive attention's over all pairs of positions, is not in it. Only a faster product or recurrence can pass it.
"""

import re
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.profiler import ProfilerActivity, profile

from seq2seq.attention.additive import AdditiveAttention
from seq2seq.attention.base import Attention
from seq2seq.attention.concat import ConcatAttention
from seq2seq.attention.location import LocationAttention
from seq2seq.attention.none import NoAttention
from seq2seq.attention.uniform import UniformAttention
from seq2seq.models.recurrent import run_layer
from seq2seq.models.seq2seq import Seq2Seq
from seq2seq.types import PAD, Attended, Batch, Bound

Work = Callable[[], object]
PRODUCTS = re.compile(r"mm\b|gemm|matmul|linear|rnn|gru|lstm")
"""Names of operators and kernels that multiply matrices."""


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


def limit_of(model: Seq2Seq, batch: Batch) -> list[Work]:
    """The unavoidable work of one training step on ``batch``: every product and recurrent call of ``model`` once.

    A decoder that walks through the target calls its parts once a position, with the shapes of one position.
    """

    def call() -> None:
        features = model(batch.source, batch.inputs).features
        model.output(features[batch.targets != PAD])

    return limit_of_call(model, call)


def limit_of_call(module: nn.Module, call: Work) -> list[Work]:
    """The same of whatever ``call`` does with ``module``; nothing if that multiplies nothing."""
    parts: list[Work] = []

    def note_linear(linear: nn.Linear, arguments: tuple[Tensor], _: Tensor) -> None:
        parts.append(_product(arguments[0].numel() // linear.in_features, linear.weight))

    def note_recurrent(rnn: nn.RNNBase, arguments: tuple[Tensor, ...], _: object) -> None:
        parts.append(_recurrent(rnn, arguments[0].shape))

    def note_attention(attention: Attention, arguments: tuple[Tensor, Bound], attended: Attended) -> None:
        parts.extend(_of_attention(attention, *arguments, attended))

    kinds: dict[type[nn.Module], Any] = {
        nn.Linear: note_linear,
        nn.RNNBase: note_recurrent,
        Attention: note_attention,
    }
    handles = [
        part.register_forward_hook(note)
        for part in module.modules()
        for kind, note in kinds.items()
        if isinstance(part, kind)
    ]
    try:
        # Without gradients all recurrence goes through torch's own networks.
        with torch.no_grad():
            call()
    finally:
        for handle in handles:
            handle.remove()
    return parts


def machine(size: int = 2048, mebibytes: int = 256, repetitions: int = 5) -> dict[str, float]:
    """What this machine can do at most: a large product in the current precision, and a copy that no cache holds.

    Args:
        size: rows and columns of the factors.
        mebibytes: to copy; they are read once and written once.
        repetitions: the fastest of them counts.
    """
    device = "cuda" if torch.cuda.is_available() else "cpu"
    factor = torch.randn(size, size, device=device)
    values = torch.randn(mebibytes * 2**18, device=device)
    copied = torch.empty_like(values)
    seconds = [
        min(_seconds([work]) for _ in range(repetitions + 1))
        for work in (lambda: factor @ factor, lambda: copied.copy_(values))
    ]
    return {
        "products_gflops": round(2 * size**3 / seconds[0] / 1e9, 1),
        "copies_gb_s": round(2 * values.nbytes / seconds[1] / 1e9, 1),
    }


def share_of_products(work: Work) -> float:
    """The share of all operators' time that goes into matrix products and recurrent networks, 0 to 1.

    By torch's own profiler, on the CPU or, where operators ran there, on the GPU.
    """
    activities = [ProfilerActivity.CPU] + [ProfilerActivity.CUDA] * torch.cuda.is_available()
    with profile(activities=activities) as profiled:
        work()
    events = profiled.key_averages()
    times = {event.key: event.self_device_time_total for event in events}
    if not any(times.values()):
        times = {event.key: event.self_cpu_time_total for event in events}
    return sum(time for name, time in times.items() if PRODUCTS.search(name.lower())) / max(sum(times.values()), 1e-9)


def _of_attention(attention: Attention, queries: Tensor, bound: Bound, attended: Attended) -> Iterator[Work]:
    """Of one call: scores, the weighted sum, and what does not go through a module of its own."""
    if isinstance(attention, NoAttention):
        return
    rows, target_length, source_length = attended.weights.shape
    heads = getattr(attention, "heads", 1)
    device, width = queries.device, bound.values.shape[-1] // heads
    # Equal weights follow from nothing that learns.
    learns = not isinstance(attention, UniformAttention)
    yield _batched_product((rows * heads, target_length, source_length), width, device, of_left=learns)
    if not learns:
        return
    if isinstance(attention, ConcatAttention):
        of_query, of_key = attention.hidden.weight.split((attention.query_size, attention.memory_size), dim=1)
        yield _product(rows * target_length, of_query)
        yield _product(rows * source_length, of_key)
    if isinstance(attention, AdditiveAttention | ConcatAttention):
        # The energy of each pair of positions is a sum, and no product of matrices unless all pairs are held in memory.
        return
    if isinstance(attention, LocationAttention):
        yield _product(rows * target_length, attention.position.weight[:source_length])
    else:
        yield _batched_product((rows * heads, target_length, bound.keys.shape[-1] // heads), source_length, device)


def _product(rows: int, weight: Tensor) -> Work:
    """``inputs @ weight`` and the two products of its gradients."""
    outputs, inputs = weight.shape
    return _products(
        torch.randn(rows, inputs, device=weight.device), torch.randn(inputs, outputs, device=weight.device)
    )


def _batched_product(left: tuple[int, int, int], columns: int, device: torch.device, of_left: bool = True) -> Work:
    batch, _, inner = left
    return _products(torch.randn(left, device=device), torch.randn(batch, inner, columns, device=device), of_left)


def _products(left: Tensor, right: Tensor, of_left: bool = True) -> Work:
    """A product and those of its gradients, that of the left factor only if there is one."""

    def work() -> None:
        product = left @ right
        if of_left:
            product @ right.mT
        left.mT @ product

    return work


def _recurrent(rnn: nn.RNNBase, shape: torch.Size) -> Work:
    """One call over full sequences, forward and backward: torch's own or, of a GRU on a CPU, that of ``gru.py``."""
    inputs = torch.randn(shape, device=rnn.weight_ih_l0.device, requires_grad=True)
    state = inputs.new_zeros(shape[0], rnn.hidden_size * (2 if rnn.mode == "LSTM" else 1))

    def work() -> None:
        outputs, _ = run_layer(rnn, inputs, state)
        gradients = torch.autograd.grad(outputs, [inputs, *rnn.parameters()], torch.ones_like(outputs))
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
