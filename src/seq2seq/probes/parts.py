"""Where the time of a training step goes: to which part of the model its operators belong, backward ones included.

Torch's profiler says when each operator ran and inside of which other, and gives the backward operator the number of the
forward one whose gradient it computes; marks around the parts say the rest.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.autograd.profiler_util import FunctionEvent
from torch.profiler import ProfilerActivity, profile, record_function

from seq2seq.models.seq2seq import Seq2Seq

MARK = "part of the step: "
LOSS, OPTIMIZER, REST = "output and loss", "optimizer", "rest"
PARTS = ("embedding", "encoder", "attention", "decoder", LOSS, OPTIMIZER, REST)
"""``decoder`` is what of it is not attention; ``rest`` is what belongs to no part, such as adding up gradients."""


def part(name: str) -> record_function:
    """Marks what runs inside of ``with part(name)``, apart from what a mark further inside says."""
    return record_function(MARK + name)


def shares_of_parts(step: Callable[[], object], model: Seq2Seq) -> dict[str, float]:
    """Shares of ``PARTS`` in the time of a step, which sum to 1.

    On the CPU, time between operators belongs to the part they stand in. Where a GPU is at work, its time alone counts.

    Args:
        step: forward, inside of ``part(LOSS)``, backward, and update, inside of ``part(OPTIMIZER)``.
        model: that ``step`` trains.
    """
    activities = [ProfilerActivity.CPU] + [ProfilerActivity.CUDA] * torch.cuda.is_available()
    with _marked(model), profile(activities=activities) as profiled, part(REST):
        step()
    events = sorted(profiled.events(), key=lambda event: event.time_range.start)
    on_device = any(event.self_device_time_total for event in events)
    forward: dict[int, str] = {}
    for event in events:
        if event.sequence_nr >= 0 and not any(_backward(each) for each in _around(event)):
            # The last operator with a number is the one that was given it; those before it found it to be the next.
            forward[event.sequence_nr] = _part_of(event, {})
    times: dict[str, float] = defaultdict(float)
    for event in events:
        spent = event.self_device_time_total if on_device else event.self_cpu_time_total
        times[_part_of(event, forward)] += spent
    whole = sum(times[name] for name in PARTS)
    return {name: times[name] / max(whole, 1e-9) for name in PARTS}


@contextmanager
def _marked(model: Seq2Seq) -> Iterator[None]:
    named = [("embedding", model.source_embedding), ("encoder", model.encoder), ("decoder", model.decoder)]
    if model.target_embedding is not model.source_embedding:
        named.append(("embedding", model.target_embedding))
    # Keys are projected outside of the attention's own call.
    named += [("attention", module) for module in model.decoder.attention.modules()]
    handles = []
    for name, module in named:
        open_marks: list[record_function] = []

        def enter(_: nn.Module, __: Any, name: str = name, marks: list[record_function] = open_marks) -> None:
            marks.append(part(name))
            marks[-1].__enter__()

        def leave(_: nn.Module, __: Any, ___: Any, marks: list[record_function] = open_marks) -> None:
            marks.pop().__exit__(None, None, None)

        handles.append(module.register_forward_pre_hook(enter))
        handles.append(module.register_forward_hook(leave))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _backward(event: FunctionEvent) -> bool:
    return event.name.startswith("autograd::engine::evaluate_function")


def _part_of(event: FunctionEvent, forward: dict[int, str]) -> str:
    """The innermost part around an event; outside of the step, none of ``PARTS``."""
    for around in _around(event):
        if around.name.startswith(MARK):
            return around.name.removeprefix(MARK)
        if _backward(around) and around.sequence_nr in forward:
            return forward[around.sequence_nr]
    return ""


def _around(event: FunctionEvent | None) -> Iterator[FunctionEvent]:
    """The event itself, and all that it ran inside of, from the innermost on."""
    while event is not None:
        yield event
        event = event.cpu_parent
