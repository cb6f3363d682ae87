"""Dot-product attention: ``score(q, k) = q . k``.

Source: Luong et al. 2015, "Effective Approaches to Attention-based Neural Machine Translation", arXiv:1508.04025,
section 3.1, "dot".
Differs: where a memory state is not as wide as a query, the states are projected to the query's size; Luong et al. have
equal sizes, and so has the default configuration.
Cost: one matrix product of B*T*S*D; no parameter where the sizes are equal. The scores' variance grows with ``D``.
"""

from jaxtyping import Float
from torch import Tensor, nn

from seq2seq.attention.base import Attention


class DotProductAttention(Attention):
    """Compares queries with memory states by their inner product."""

    def __init__(self, query_size: int, memory_size: int, dropout: float = 0.0):
        super().__init__(query_size, memory_size, dropout)
        equal = query_size == memory_size
        self.key = nn.Identity() if equal else nn.Linear(memory_size, query_size, bias=False)

    def project_keys(self, states: Float[Tensor, "B S C"]) -> Float[Tensor, "B S D"]:
        return self.key(states)

    def score(self, queries: Float[Tensor, "B T D"], keys: Float[Tensor, "B S D"]) -> Float[Tensor, "B T S"]:
        return queries @ keys.transpose(1, 2)
