"""The shared nouns, and the legend of the dimension letters used in every shape.

========  =========================================================
``B``     sentences in a batch
``S``     source tokens, the end-of-sentence token among them
``T``     target tokens (all of them in training, 1 in decoding)
``E``     size of an embedding
``D``     size of a decoder state, and so of an attention query
``C``     size of a memory state, and so of a context
``A``     size in which an attention compares queries with keys
``L``     layers of a recurrent stack
``W``     width of one layer's state (``D``; twice that for an LSTM)
``V``     vocabulary
``N``     real target tokens of a batch, padding left out
``H``     heads of an attention, each of size ``a = A / H``
``K``     any number of rows: chosen ones, keys of a memory, beams
========  =========================================================

Masks are named by what True means: ``is_token`` is True on real tokens and False on padding.
"""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from jaxtyping import Bool, Float, Int
from torch import Tensor

PAD, UNK, BOS, EOS = 0, 1, 2, 3
"""The ids that every tokenizer of this project gives to its four control symbols."""

Split = Literal["train", "valid", "test"]


class Batch(NamedTuple):
    """Some pairs of a corpus, padded with ``PAD``. Every source and every target ends with ``EOS``."""

    ids: Int[Tensor, "B"]
    """Positions of the pairs in their split."""
    source: Int[Tensor, "B S"]
    inputs: Int[Tensor, "B T"]
    """``BOS`` and the target: what the decoder reads."""
    targets: Int[Tensor, "B T"]
    """The target and ``EOS``: what the decoder is to predict."""
    loss_denominator: Float[Tensor, ""]
    """Divides the summed loss. The plan sets it so that, after gradients are averaged over ranks and accumulated
    batches, every target token of one update weighs the same."""


class Memory(NamedTuple):
    """What the encoder knows of a batch of sources."""

    states: Float[Tensor, "B S C"]
    """A finite number everywhere, padding included, where the encoders here leave zeros."""
    is_token: Bool[Tensor, "B S"]
    final: Float[Tensor, "B C"]
    """The fixed vector: the last state of every direction, or that of ``EOS`` after self-attention."""

    def select(self, index: Int[Tensor, "K"]) -> "Memory":
        """The rows named by ``index``, in that order."""
        return Memory(*(field.index_select(0, index) for field in self))


class Bound(NamedTuple):
    """A memory made ready for one attention: everything that can be computed once per batch."""

    keys: Float[Tensor, "B K A"]
    values: Float[Tensor, "B K ..."]
    is_token: Bool[Tensor, "B S"]

    def select(self, index: Int[Tensor, "K"]) -> "Bound":
        """The rows named by ``index``, in that order."""
        return Bound(*(field.index_select(0, index) for field in self))


class Attended(NamedTuple):
    """What an attention read: one context a query, and the weight it gave to each source token."""

    context: Float[Tensor, "B T C"]
    weights: Float[Tensor, "B T S"]


class State(NamedTuple):
    """Everything a decoder carries from one step to the next: batch-first tensors only, so that search can reorder it."""

    recurrent: tuple[Float[Tensor, "B ..."], ...]
    bound: Bound

    def select(self, index: Int[Tensor, "K"]) -> "State":
        """The rows named by ``index``, in that order: drops finished sentences, reorders beams."""
        return State(tuple(part.index_select(0, index) for part in self.recurrent), self.bound.select(index))

    def exchange(self, index: Int[Tensor, "K"]) -> "State":
        """As ``select``, for as many rows as there are, each taken from a row with the same source: beams trade places.

        What is bound to the source stays where it is, which spares copying the largest part.
        """
        return State(tuple(part.index_select(0, index) for part in self.recurrent), self.bound)


class Decoded(NamedTuple):
    """A decoder's answer for every target position."""

    features: Float[Tensor, "B T E"]
    """Input of the output layer."""
    weights: Float[Tensor, "B T S"]


class Hypothesis(NamedTuple):
    """One translation found by a search."""

    tokens: list[int]
    """Without ``BOS`` and ``EOS``."""
    log_probability: float
    """Of all tokens and of ``EOS``, natural logarithm."""
    truncated: bool
    """True if the search stopped at the length cap, before ``EOS``."""
    weights: Float[Tensor, "T S"] | None
    """Attention weights of every token and of ``EOS``, if they were asked for."""
    score: float
    """What the search ranks by; higher is better."""


Builder = Callable[..., object]
"""A constructor that still waits for the sizes which another part knows."""


def is_whole(value: Any, least: int) -> bool:
    """Whether a setting is a whole number, and no truth value, of at least ``least``."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= least
