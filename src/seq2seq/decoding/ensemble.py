"""Several models that vote: the mean of their distributions at every step (Sutskever et al. 2014, arXiv:1409.3215)."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from seq2seq.decoding.greedy import Searchable
from seq2seq.types import State


class Ensemble:
    """Searched like a single model.

    Args:
        models: in evaluation mode, with the same vocabularies.
    """

    def __init__(self, models: Sequence[Searchable]):
        self.models = list(models)

    def start(self, source: Int[Tensor, "B S"]) -> "States":
        return States(tuple(model.start(source) for model in self.models))

    def step(
        self, tokens: Int[Tensor, "B"], state: "States"
    ) -> tuple[Float[Tensor, "B V"], Float[Tensor, "B S"], "States"]:
        """The logarithm of the mean probability, the mean of the weights, and the states that follow."""
        steps = [model.step(tokens, each) for model, each in zip(self.models, state.states, strict=True)]
        logits, weights, states = zip(*steps, strict=True)
        mean = torch.stack([each.log_softmax(dim=-1) for each in logits]).logsumexp(dim=0) - math.log(len(steps))
        return mean, torch.stack(weights).mean(dim=0), States(states)


class States(NamedTuple):
    """The states of all models, moved together."""

    states: tuple[State, ...]

    def select(self, index: Int[Tensor, "K"]) -> "States":
        return States(tuple(state.select(index) for state in self.states))

    def exchange(self, index: Int[Tensor, "K"]) -> "States":
        return States(tuple(state.exchange(index) for state in self.states))
