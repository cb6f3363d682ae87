"""General, or bilinear, attention: ``score(q, k) = q W k``.

Source: Luong et al. 2015, arXiv:1508.04025, section 3.1, "general".
Cost: one matrix product of B*S*C*D a batch and one of B*T*S*D; D*C parameters. As with ``dot``, the scores' variance grows
with ``D``.
"""

from jaxtyping import Float
from torch import Tensor, nn

from seq2seq.attention.base import Attention


class GeneralAttention(Attention):
    """Compares queries with linearly mapped memory states by their inner product."""

    def __init__(self, query_size: int, memory_size: int, dropout: float = 0.0):
        super().__init__(query_size, memory_size, dropout)
        self.key = nn.Linear(memory_size, query_size, bias=False)

    def project_keys(self, states: Float[Tensor, "B S C"]) -> Float[Tensor, "B S D"]:
        return self.key(states)

    def score(self, queries: Float[Tensor, "B T D"], keys: Float[Tensor, "B S D"]) -> Float[Tensor, "B T S"]:
        return queries @ keys.transpose(1, 2)
