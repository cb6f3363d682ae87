"""Scaled dot-product attention: ``score(q, k) = (W q) . (U k) / sqrt(A)``.

Source: Vaswani et al. 2017, "Attention Is All You Need", arXiv:1706.03762, section 3.2.1, equation 1, with one head:
queries and keys are projected to a common size ``A`` (their d_k), and the root keeps the scores' variance near 1.
Differs: values are the memory states themselves, unprojected, as for every other member of the family; and "scaled"
never means a learned factor.
Cost: one matrix product of B*T*S*A.
"""

import math

from jaxtyping import Float
from torch import Tensor, nn

from seq2seq.attention.base import Attention, compared_size
from seq2seq.errors import ConfigError


class ScaledDotProductAttention(Attention):
    """Compares projected queries with projected keys by their inner product over the root of its length.

    Args:
        attention_size: ``A``, size in which they are compared; the query's size if not given.
        scale: what the products are multiplied with; ``1 / sqrt(A)`` if not given, 1 for the plain product of projections.

    Raises:
        ConfigError: a size or the scale is not positive, or the scale not finite.
    """

    def __init__(
        self,
        query_size: int,
        memory_size: int,
        attention_size: int | None = None,
        scale: float | None = None,
        dropout: float = 0.0,
    ):
        super().__init__(query_size, memory_size, dropout)
        attention_size = compared_size(attention_size, query_size)
        if scale is not None and not 0 < scale < math.inf:
            raise ConfigError(
                f"attention.scale must be a number above 0, or null for 1/sqrt(attention_size), found {scale}"
            )
        self.scale = attention_size**-0.5 if scale is None else scale
        self.query = nn.Linear(query_size, attention_size, bias=False)
        self.key = nn.Linear(memory_size, attention_size, bias=False)

    def project_keys(self, states: Float[Tensor, "B S C"]) -> Float[Tensor, "B S A"]:
        return self.key(states)

    def score(self, queries: Float[Tensor, "B T D"], keys: Float[Tensor, "B S A"]) -> Float[Tensor, "B T S"]:
        # The smaller tensor is scaled: [B, T, A] rather than [B, T, S].
        return (self.query(queries) * self.scale) @ keys.transpose(1, 2)
