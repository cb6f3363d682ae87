"""Additive attention: ``score(q, k) = v . tanh(W q + U k)``.

Source: Bahdanau et al. 2014, "Neural Machine Translation by Jointly Learning to Align and Translate",
arXiv:1409.0473, appendix A.1.2.
Cost: B*T*S*A additions and tanh, against one matrix product for the multiplicative kinds.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from seq2seq.attention.base import Attention


class AdditiveAttention(Attention):
    """A small feed-forward network compares every query with every key.

    Args:
        attention_size: ``A``, hidden units of that network; the query's size if not given.
    """

    def __init__(self, query_size: int, memory_size: int, attention_size: int | None = None, dropout: float = 0.0):
        super().__init__(query_size, memory_size, dropout)
        attention_size = attention_size or query_size
        self.query = nn.Linear(query_size, attention_size, bias=False)
        self.key = nn.Linear(memory_size, attention_size, bias=False)
        self.energy = nn.Linear(attention_size, 1, bias=False)

    def project_keys(self, states: Float[Tensor, "B S C"]) -> Float[Tensor, "B S A"]:
        return self.key(states)

    def score(self, queries: Float[Tensor, "B T D"], keys: Float[Tensor, "B S A"]) -> Float[Tensor, "B T S"]:
        hidden = torch.tanh(self.query(queries).unsqueeze(2) + keys.unsqueeze(1))  # [B, T, S, A]
        return self.energy(hidden).squeeze(-1)
