"""Uniform attention: every real token weighs the same, whatever the query.

A control, not a proposal: it reads all encoder states, as attention does, but selects none. What it gains over ``none`` is
the worth of more than one vector to read; what attention gains over it is the worth of choosing.
Cost: one matrix product of B*T*S*C; no parameter.
"""

from jaxtyping import Float
from torch import Tensor

from seq2seq.attention.base import Attention


class UniformAttention(Attention):
    """The mean of the memory states over real tokens."""

    def score(self, queries: Float[Tensor, "B T D"], keys: Float[Tensor, "B S A"]) -> Float[Tensor, "B T S"]:
        return queries.new_zeros(queries.shape[0], queries.shape[1], keys.shape[1])
