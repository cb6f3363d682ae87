"""Multi-head attention: several scaled dot-product attentions side by side, each in a subspace of its own.

Source: Vaswani et al. 2017, arXiv:1706.03762, section 3.2.2, with projections of queries, keys and values and of the
joined outputs, none with a bias.
Differs: the output has the size of a memory state, as every context has.
Cost: as scaled dot-product attention's, and two more projections.
"""

from jaxtyping import Float
from torch import Tensor, nn

from seq2seq.attention.base import Attention, compared_size, masked_softmax
from seq2seq.errors import ConfigError
from seq2seq.types import Attended, Bound, Memory


class MultiHeadAttention(Attention):
    """``heads`` scaled dot-product attentions. The weights it reports are the mean over heads.

    Args:
        heads: how many.
        attention_size: ``A``, size of all heads together; the query's size if not given.

    Raises:
        ConfigError: the size cannot be divided among the heads.
    """

    def __init__(
        self,
        query_size: int,
        memory_size: int,
        heads: int = 4,
        attention_size: int | None = None,
        dropout: float = 0.0,
    ):
        super().__init__(query_size, memory_size, dropout)
        attention_size = compared_size(attention_size, query_size)
        if heads < 1 or attention_size % heads:
            raise ConfigError(
                f"heads={heads} of a multi-head attention must divide the size they share, found {attention_size}: change "
                "attention.heads, attention.attention_size or hidden_size"
            )
        self.heads = heads
        self.scale = (attention_size // heads) ** -0.5
        self.query = nn.Linear(query_size, attention_size, bias=False)
        self.key = nn.Linear(memory_size, attention_size, bias=False)
        self.value = nn.Linear(memory_size, attention_size, bias=False)
        self.output = nn.Linear(attention_size, memory_size, bias=False)

    def bind(self, memory: Memory) -> Bound:
        return Bound(self.key(memory.states), self.value(memory.states), memory.is_token)

    def head_weights(self, queries: Float[Tensor, "B T D"], bound: Bound) -> Float[Tensor, "B H T S"]:
        """The weights of every head."""
        queries = self._split(self.query(queries) * self.scale)
        scores = queries @ self._split(bound.keys).transpose(2, 3)
        masked = masked_softmax(scores.flatten(0, 1), bound.is_token.repeat_interleave(self.heads, dim=0))
        return masked.unflatten(0, (-1, self.heads))

    def forward(self, queries: Float[Tensor, "B T D"], bound: Bound) -> Attended:
        weights = self.head_weights(queries, bound)
        read = self.dropout(weights) @ self._split(bound.values)  # [B, H, T, A / H]
        return Attended(self.output(read.transpose(1, 2).flatten(2)), weights.mean(dim=1))

    def _split(self, joined: Float[Tensor, "B K A"]) -> Float[Tensor, "B H K a"]:
        return joined.unflatten(-1, (self.heads, -1)).transpose(1, 2)
