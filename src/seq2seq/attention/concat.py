"""Concat attention: ``score(q, k) = v . tanh(W [q; k])``.

Source: Luong et al. 2015, arXiv:1508.04025, section 3.1, "concat".
The one matrix ``W`` acts on query and key side by side, which is a product with each of its halves: the same function as
additive attention with ``W = [W_q, U]``, so the two differ in how a paper writes them and in the scale of their first
weights, and in nothing that can be learned.
Cost: as additive attention's.
"""

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from seq2seq.attention.additive import additive_scores
from seq2seq.attention.base import Attention, compared_size


class ConcatAttention(Attention):
    """A small feed-forward network reads a query and a key side by side.

    Args:
        attention_size: ``A``, hidden units of that network; the query's size if not given.
    """

    def __init__(self, query_size: int, memory_size: int, attention_size: int | None = None, dropout: float = 0.0):
        super().__init__(query_size, memory_size, dropout)
        attention_size = compared_size(attention_size, query_size)
        self.hidden = nn.Linear(query_size + memory_size, attention_size, bias=False)
        self.energy = nn.Linear(attention_size, 1, bias=False)

    def project_keys(self, states: Float[Tensor, "B S C"]) -> Float[Tensor, "B S A"]:
        return F.linear(states, self.hidden.weight[:, self.query_size :])

    def score(self, queries: Float[Tensor, "B T D"], keys: Float[Tensor, "B S A"]) -> Float[Tensor, "B T S"]:
        return additive_scores(F.linear(queries, self.hidden.weight[:, : self.query_size]), keys, self.energy.weight[0])
