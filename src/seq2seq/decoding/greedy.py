"""Greedy search: the likeliest token at every step.

A sentence's result does not depend on the batch it stands in: its length cap follows from its own source, and sentences
that are finished leave the batch.
"""

import torch
from jaxtyping import Int
from torch import Tensor

from seq2seq.errors import ConfigError
from seq2seq.models.seq2seq import Seq2Seq
from seq2seq.types import BOS, EOS, PAD, Hypothesis, State

KEPT_SHARE = 0.75
"""Finished sentences are removed once no more than this share of the batch goes on: removing copies the state."""


class Greedy:
    """Decodes a batch.

    Args:
        cap_ratio, cap_extra: a hypothesis ends after ``cap_ratio * source tokens + cap_extra`` tokens, ``EOS`` not counted
            on either side.
    """

    def __init__(self, cap_ratio: float = 2.0, cap_extra: int = 10):
        if cap_ratio < 0 or cap_extra < 1:
            raise ConfigError(
                f"decoding.cap_ratio must be at least 0 and decoding.cap_extra at least 1, found {cap_ratio} and {cap_extra}"
            )
        self.cap_ratio = cap_ratio
        self.cap_extra = cap_extra

    @torch.inference_mode()
    def __call__(self, model: Seq2Seq, source: Int[Tensor, "B S"], with_weights: bool = False) -> list[Hypothesis]:
        """One hypothesis for each row of ``source``, in order.

        Args:
            model: in evaluation mode.
            source: ends with ``EOS`` in every row, then ``PAD``.
            with_weights: also return the attention weights, cut to the row's own source.
        """
        source_lengths = (source != PAD).sum(dim=1)  # [B]
        caps = (self.cap_ratio * (source_lengths - 1)).long() + self.cap_extra  # [B]
        found = _Found(source_lengths.tolist())
        state = model.start(source)
        alive = torch.arange(source.shape[0], device=source.device)
        tokens = torch.full_like(alive, BOS)
        ended = torch.zeros_like(alive, dtype=torch.bool)
        step = 0
        while alive.numel() > 0:
            logits, weights, state = model.step(tokens, state)
            logits[:, [PAD, BOS]] = -torch.inf
            best, tokens = logits.max(dim=-1)
            log_probabilities = best - logits.logsumexp(dim=-1)
            step += 1
            # One token more than the cap allows is the place of EOS.
            at_cap = (step > caps) & (tokens != EOS)
            found.add(alive, ~ended, tokens, at_cap, log_probabilities, weights if with_weights else None)
            ended = ended | (tokens == EOS) | at_cap
            going = (~ended).nonzero().squeeze(1)
            if going.numel() <= KEPT_SHARE * alive.numel():
                alive, tokens, caps, ended, state = _keep(going, alive, tokens, caps, ended, state)
        return found.hypotheses()


class _Found:
    """What was decoded so far, row by row of the original batch."""

    def __init__(self, source_lengths: list[int]):
        self.source_lengths = source_lengths
        rows = len(source_lengths)
        self.tokens: list[list[int]] = [[] for _ in range(rows)]
        self.log_probability = [0.0] * rows
        self.truncated = [False] * rows
        self.weights: list[list[Tensor]] | None = None

    def add(
        self,
        rows: Tensor,
        counts: Tensor,
        tokens: Tensor,
        at_cap: Tensor,
        log_probabilities: Tensor,
        weights: Tensor | None,
    ) -> None:
        """Takes one step of the rows that still count."""
        if weights is not None and self.weights is None:
            self.weights = [[] for _ in self.tokens]
        columns = (rows.tolist(), counts.tolist(), tokens.tolist(), at_cap.tolist(), log_probabilities.tolist())
        for place, (row, counted, token, capped, log_probability) in enumerate(zip(*columns, strict=True)):
            if not counted:
                continue
            if capped:
                self.truncated[row] = True
                continue
            self.log_probability[row] += log_probability
            if token != EOS:
                self.tokens[row].append(token)
            if self.weights is not None and weights is not None:
                self.weights[row].append(weights[place, : self.source_lengths[row]])

    def hypotheses(self) -> list[Hypothesis]:
        return [
            Hypothesis(
                tokens,
                self.log_probability[row],
                self.truncated[row],
                torch.stack(self.weights[row]).float().cpu() if self.weights is not None else None,
            )
            for row, tokens in enumerate(self.tokens)
        ]


def _keep(going: Tensor, *parts: Tensor | State) -> list:
    return [part.select(going) if isinstance(part, State) else part[going] for part in parts]
