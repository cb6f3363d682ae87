"""What every attention has in common: bind once per batch, score, normalise over real tokens, read.

A member of the family writes ``score`` and, where its keys are not the memory states themselves, ``project_keys``.
The masked softmax and the weighted sum are written once, here. Nothing is cached in ``self``, so one module may serve
several batches at once, and training (all queries) runs the same code as decoding (one query).
"""

import re

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from seq2seq.dropout import Dropout
from seq2seq.errors import ConfigError
from seq2seq.parts import complete
from seq2seq.types import Attended, Bound, Builder, Memory


class Attention(nn.Module):
    """Reads a memory with queries.

    Args:
        query_size: ``D``, told by the decoder.
        memory_size: ``C``, told by the encoder.
        dropout: probability with which a weight is set to zero while training, the others scaled up.

    Attributes:
        max_positions: source tokens that it can tell apart, ``EOS`` included; None for any number.
    """

    max_positions: int | None = None

    def __init__(self, query_size: int, memory_size: int, dropout: float = 0.0):
        super().__init__()
        self.query_size = query_size
        self.memory_size = memory_size
        self.dropout = Dropout(dropout, "attention.dropout")

    def bind(self, memory: Memory) -> Bound:
        """Everything that depends on the memory alone, computed once per batch."""
        return Bound(self.project_keys(memory.states), memory.states, memory.is_token)

    def project_keys(self, states: Float[Tensor, "B S C"]) -> Float[Tensor, "B S A"]:
        """What the queries are compared with."""
        return states

    def score(self, queries: Float[Tensor, "B T D"], keys: Float[Tensor, "B S A"]) -> Float[Tensor, "B T S"]:
        """How well each query matches each key; any real number."""
        raise NotImplementedError

    def forward(self, queries: Float[Tensor, "B T D"], bound: Bound) -> Attended:
        """The weighted mean of the values, and the weights before dropout."""
        weights = masked_softmax(self.score(queries, bound.keys), bound.is_token)
        return Attended(self.dropout(weights) @ bound.values, weights)


def compared_size(attention_size: int | None, query_size: int) -> int:
    """The size in which queries and keys are compared: what was asked for, the query's own if nothing was.

    Raises:
        ConfigError: it is not positive.
    """
    if attention_size is not None and attention_size < 1:
        raise ConfigError(f"attention.attention_size must be at least 1, or null, found {attention_size}")
    return query_size if attention_size is None else attention_size


def masked_softmax(scores: Float[Tensor, "B T S"], is_token: Bool[Tensor, "B S"]) -> Float[Tensor, "B T S"]:
    """Softmax over the real tokens; exactly 0 on padding.

    A row without any real token comes out as zeros with finite gradients: the lowest finite number in place of
    minus infinity keeps the softmax defined, and the second mask removes what it gives to padding.
    """
    is_padding = ~is_token.unsqueeze(1)  # [B, 1, S]
    lowest = torch.finfo(scores.dtype).min
    return scores.masked_fill(is_padding, lowest).softmax(dim=-1).masked_fill(is_padding, 0.0)


def too_long(max_positions: int, length: int) -> str:
    """What to say of a source that an attention cannot read."""
    return (
        f"the attention knows max_positions={max_positions} positions, and a source has {length} tokens: set "
        f"attention.max_positions={length} or more and train anew, or leave such sources out"
    )


def reach(model: nn.Module) -> int | None:
    """Source tokens, ``EOS`` included, that every attention in a model can tell apart; None for any number."""
    limits = [part.max_positions for part in model.modules() if isinstance(part, Attention)]
    return min((limit for limit in limits if limit is not None), default=None)


def placed(key: str, message: str) -> str:
    """What an attention says of its settings, with the place where a user finds them.

    Args:
        key: ``attention``, or ``encoder.attention``.
        message: in which they are called ``attention.scale`` and so on.
    """
    return re.sub(r"(?<![\w.])attention\.", f"{key}.", message)


def build_attention(builder: Builder, query_size: int, memory_size: int, key: str = "attention") -> Attention:
    """Gives an attention the two sizes it waits for.

    Args:
        builder: the attention, waiting.
        query_size: ``D``.
        memory_size: ``C``.
        key: what a user calls it.

    Raises:
        ConfigError: it does not take them, what was built is no ``Attention``, or its scores have another shape than needed.
    """
    try:
        attention = complete(builder, key, query_size=query_size, memory_size=memory_size)
    except ConfigError as error:
        raise ConfigError(placed(key, str(error))) from error
    name = f"{type(attention).__module__}.{type(attention).__qualname__}"
    if not isinstance(attention, Attention):
        raise ConfigError(f"{key}._target_ must name a subclass of seq2seq.attention.base.Attention, found {name}")
    if type(attention).forward is Attention.forward:
        _check_scores(attention, f"{key}._target_ {name}")
    return attention


@torch.no_grad()
def _check_scores(attention: Attention, name: str) -> None:
    """Two queries and one key have a score each, whatever the formula."""
    keys = attention.project_keys(torch.zeros(1, 1, attention.memory_size))
    try:
        found = tuple(attention.score(torch.zeros(1, 2, attention.query_size), keys).shape)
    except NotImplementedError as error:
        raise ConfigError(f"{name} does not say how it scores: write its score(queries, keys)") from error
    if found != (1, 2, 1):
        raise ConfigError(
            f"{name}: score must return one number a query and key, [B, T, S]; of 1 sentence, 2 queries and 1 key it "
            f"returned {list(found)}"
        )
