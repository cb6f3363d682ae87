"""Greedy search: the likeliest token at every step.

A sentence's result does not depend on the batch it stands in: its length cap follows from its own source, and sentences
that are finished leave the batch.
"""

import math
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from seq2seq.decoding.caps import Caps
from seq2seq.errors import CheckpointError
from seq2seq.types import BOS, EOS, PAD, Hypothesis

KEPT_SHARE = 0.75
"""Rows that nobody needs leave the model's state once no more than this share goes on: removing copies the state."""
LOOK_EVERY = {"cpu": 1}
"""Steps, by kind of device, after which the search looks what has ended."""
ELSEWHERE = 8
"""On a device that works by itself a look is a wait, in which it stands still; steps that nobody needs cost less."""


@runtime_checkable
class Searchable(Protocol):
    """What a search needs of a model: a first state and one step after the other. ``Seq2Seq`` has both.

    States move themselves: ``select(index)`` and ``exchange(index)``, as ``types.State`` has them.
    """

    def start(self, source: Int[Tensor, "B S"]) -> Any: ...

    def step(self, tokens: Int[Tensor, "B"], state: Any) -> tuple[Float[Tensor, "B V"], Float[Tensor, "B S"], Any]: ...


@runtime_checkable
class Search(Protocol):
    """What decodes a batch; every class of this folder is one."""

    def __call__(
        self, model: Searchable, source: Int[Tensor, "B S"], with_weights: bool = False
    ) -> list[Hypothesis]: ...


class Greedy:
    """Decodes a batch.

    Args:
        cap_ratio, cap_extra: a hypothesis ends after ``cap_ratio * source tokens + cap_extra`` tokens, ``EOS`` not counted
            on either side.
    """

    def __init__(self, cap_ratio: float = 2.0, cap_extra: int = 10):
        self.caps = Caps(cap_ratio, cap_extra)

    def choose(self, scores: Float[Tensor, "B V"]) -> Int[Tensor, "B"]:
        """The next token of every row."""
        return scores.argmax(dim=-1)

    @torch.inference_mode()
    def __call__(self, model: Searchable, source: Int[Tensor, "B S"], with_weights: bool = False) -> list[Hypothesis]:
        """One hypothesis for each row of ``source``, in order.

        Args:
            model: in evaluation mode.
            source: ends with ``EOS`` in every row, then ``PAD``.
            with_weights: also return the attention weights, cut to the row's own source.
        """
        source_lengths = (source != PAD).sum(dim=1)  # [B]
        caps = self.caps.of(source_lengths - 1)  # [B]
        found = _Found(source_lengths.tolist())
        state = model.start(source)
        alive = torch.arange(source.shape[0], device=source.device)
        tokens = torch.full_like(alive, BOS)
        ended = torch.zeros_like(alive, dtype=torch.bool)
        step, every = 0, LOOK_EVERY.get(source.device.type, ELSEWHERE)
        while alive.numel() > 0:
            logits, weights, state = model.step(tokens, state)
            logits[:, [PAD, BOS]] = -torch.inf
            tokens = self.choose(logits)
            log_probabilities = logits.gather(1, tokens.unsqueeze(1)).squeeze(1) - logits.logsumexp(dim=-1)
            step += 1
            # One token more than the cap allows is the place of EOS.
            at_cap = (step > caps) & (tokens != EOS)
            found.note(~ended, tokens, at_cap, log_probabilities, weights if with_weights else None)
            ended = ended | (tokens == EOS) | at_cap
            if step % every:
                continue
            found.take(alive)
            going = (~ended).nonzero().squeeze(1)
            if going.numel() <= KEPT_SHARE * alive.numel():
                alive, tokens, caps, ended, state = _keep(going, alive, tokens, caps, ended, state)
        return found.hypotheses()


def not_numbers() -> CheckpointError:
    """What to say of a model that says nothing."""
    return CheckpointError("the model's scores are no numbers (nan): its weights are damaged, or its training failed")


class _Found:
    """What was decoded so far, row by row of the original batch."""

    def __init__(self, source_lengths: list[int]):
        self.source_lengths = source_lengths
        rows = len(source_lengths)
        self.tokens: list[list[int]] = [[] for _ in range(rows)]
        self.log_probability = [0.0] * rows
        self.truncated = [False] * rows
        self.weights: list[list[Tensor]] | None = None
        self._noted: list[tuple[Tensor, ...]] = []
        self._noted_weights: list[Tensor] = []

    def note(
        self, counts: Tensor, tokens: Tensor, at_cap: Tensor, log_probabilities: Tensor, weights: Tensor | None
    ) -> None:
        """Keeps one step, on its device, of the rows that ``take`` will name; ``counts`` are those that still count."""
        self._noted.append((counts, tokens, at_cap, log_probabilities))
        if weights is not None:
            self._noted_weights.append(weights)

    def take(self, rows: Tensor) -> None:
        """Takes what was noted since the last time, all in one go."""
        if self._noted_weights and self.weights is None:
            self.weights = [[] for _ in self.tokens]
        names = rows.tolist()
        columns = [torch.stack(column).tolist() for column in zip(*self._noted, strict=True)]
        for step, of_step in enumerate(zip(*columns, strict=True)):
            for place, (row, counted, token, capped, log_probability) in enumerate(zip(names, *of_step, strict=True)):
                if not counted:
                    continue
                if capped:
                    self.truncated[row] = True
                    continue
                if math.isnan(log_probability):
                    raise not_numbers()
                self.log_probability[row] += log_probability
                if token != EOS:
                    self.tokens[row].append(token)
                if self.weights is not None:
                    self.weights[row].append(self._noted_weights[step][place, : self.source_lengths[row]])
        self._noted.clear()
        self._noted_weights.clear()

    def hypotheses(self) -> list[Hypothesis]:
        return [
            Hypothesis(
                tokens,
                self.log_probability[row],
                self.truncated[row],
                torch.stack(self.weights[row]).float().cpu() if self.weights is not None else None,
                self.log_probability[row],
            )
            for row, tokens in enumerate(self.tokens)
        ]


def _keep(going: Tensor, *parts: Any) -> list:
    return [part[going] if isinstance(part, Tensor) else part.select(going) for part in parts]
