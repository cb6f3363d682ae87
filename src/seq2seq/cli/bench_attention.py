"""``seq2seq-bench attention``: each member of the family alone, forward and backward, and what it keeps in between."""

import argparse
import math
import time

import torch
from hydra.utils import instantiate
from torch import Tensor

from seq2seq.attention.base import Attention, build_attention
from seq2seq.cli.benching import Figure, begin, composed, finish, listed, print_rows
from seq2seq.errors import ConfigError
from seq2seq.probes.cost import limit_of_call, measure
from seq2seq.types import Memory

LEAST = 0.1
"""Seconds of calls that are timed as one."""


def bench_attention(options: argparse.Namespace) -> None:
    """Times reading a memory, keys' projection included, and the gradient, for each attention, in turn.

    Raises:
        ConfigError: an attention does not exist or does not fit, or a number is out of range.
    """
    sizes = (options.batch, options.source, options.target, options.size)
    begin(options, "attention", "batch", "source", "target", "size", "repetitions")
    known = sorted(path.stem for path in (options.conf / "attention").glob("*.yaml"))
    names = known if options.attention is None else listed(options, "attention")
    if not names:
        raise ConfigError(f"--conf {options.conf} holds no attention/*.yaml: name the project's folder conf")
    works, saved = [], []
    for name in names:
        torch.manual_seed(1)
        config = composed(options.conf, [f"attention={name}"])
        step = Reading(build_attention(instantiate(config.attention), options.size, options.size), *sizes)
        saved.append(step.saved_bytes())
        torch.set_float32_matmul_precision(config.matmul_precision)
        step()
        begun = time.perf_counter()
        step()
        # A moment by itself is no measure.
        calls = max(1, math.ceil(LEAST / max(time.perf_counter() - begun, 1e-6)))
        works.append(([step] * calls, limit_of_call(step.attention, step.read) * calls))
    rows = []
    measured = measure(works, options.repetitions)
    for name, kept, (calls, parts), (whole, limit) in zip(names, saved, works, measured, strict=True):
        share = Figure.of([100 * bare / step for step, bare in zip(whole, limit, strict=True)]) if parts else None
        rows.append(
            {
                "name": name,
                "ms": Figure.of([1000 * seconds / len(calls) for seconds in whole], 3),
                "percent_of_limit": share,
                "kept_mib": round(kept / 2**20, 3),
            }
        )
    title = (
        f"attention alone, forward and backward, {options.batch} sentences of {options.source} source and {options.target} "
        f"target tokens, size {options.size}, {options.threads} threads, median (range) of {options.repetitions} repetitions"
    )
    columns = {
        "name": "attention",
        "ms": "ms",
        "percent_of_limit": "% of limit",
        "kept_mib": "MiB kept for the gradient",
    }
    print_rows(title, columns, rows)
    facts = dict(zip(("batch", "source", "target", "size"), sizes, strict=True))
    finish("attention", rows, options, **facts)


class Reading:
    """One call of an attention on full sentences and, when it is called itself, its gradient."""

    def __init__(self, attention: Attention, batch: int, source: int, target: int, size: int):
        self.attention = attention.train()
        self.queries, states, final = (
            torch.randn(shape, requires_grad=True)
            for shape in ((batch, target, size), (batch, source, size), (batch, size))
        )
        self.memory = Memory(states, torch.ones(batch, source, dtype=torch.bool), final)
        self.leaves = [self.queries, states, final, *attention.parameters()]

    def read(self) -> Tensor:
        return self.attention(self.queries, self.attention.bind(self.memory)).context

    def __call__(self) -> None:
        context = self.read()
        if context.requires_grad:
            torch.autograd.grad(context, self.leaves, torch.ones_like(context), allow_unused=True)

    def saved_bytes(self) -> int:
        """What is held from the forward to the backward pass, apart from what came in and parameters."""
        sizes: dict[int, int] = {}

        def note(tensor: Tensor) -> Tensor:
            sizes[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
            context = self.read()
        for leaf in (*self.leaves, self.memory.is_token):
            sizes.pop(leaf.untyped_storage().data_ptr(), None)
        del context
        return sum(sizes.values())
