"""The decoder of Bahdanau et al.: the previous state looks at the source, and what it reads goes into the next state.

Source: Bahdanau et al. 2014, arXiv:1409.0473, section 3.1 and appendix A.2.2: ``c_i`` is read with the query ``s_(i-1)``,
``s_i = f(s_(i-1), y_(i-1), c_i)``, and the output layer reads state, previous word and context through a maxout layer
(Goodfellow et al. 2013, arXiv:1302.4389).
Differs: the output layer reads ``s_i``, as equation 4 has it, where the appendix writes ``s_(i-1)``; its hidden size is
``E``, so that it can share the embedding's weights; further layers stand on the first, and the top one's state is the query.
Each step needs the one before, so teacher forcing walks through the target.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from seq2seq.attention.base import build_attention
from seq2seq.dropout import Dropout
from seq2seq.errors import ConfigError
from seq2seq.models.bridge import Bridge
from seq2seq.models.decoder import Decoder
from seq2seq.models.recurrent import Recurrent
from seq2seq.types import Builder, Decoded, Memory, State

POOLED = 2
"""Values that one maxout unit chooses from."""


class BahdanauDecoder(Decoder):
    """Attention, recurrent stack, readout; one step after the other.

    Args:
        embedding: of target tokens, shared with the model.
        embedding_size: ``E``.
        memory_size: ``C``, told by the encoder.
        attention: waits for ``query_size`` and ``memory_size``.
        cell: ``gru``, ``lstm`` or ``rnn``.
        hidden_size: ``D``.
        layers: ``L``.
        dropout: on contexts, on states and features that are read out, and between layers; words have theirs already.
        residual: from the second layer of a stack on, its input is added to its output.
        output: ``maxout`` or ``tanh``.

    Raises:
        ConfigError: ``output`` is neither.
    """

    def __init__(
        self,
        embedding: nn.Module,
        embedding_size: int,
        memory_size: int,
        attention: Builder,
        cell: str,
        hidden_size: int,
        layers: int = 1,
        dropout: float = 0.0,
        residual: bool = False,
        output: str = "maxout",
    ):
        super().__init__()
        if output not in ("maxout", "tanh"):
            raise ConfigError(f"model.decoder.output must be maxout or tanh, found {output!r}")
        self.embedding = embedding
        self.attention = build_attention(attention, hidden_size, memory_size)
        self.stack = Recurrent(cell, embedding_size + memory_size, hidden_size, layers, dropout, residual)
        self.bridge = Bridge(memory_size, self.stack)
        self.pooled = POOLED if output == "maxout" else 1
        self.readout = nn.Linear(hidden_size + embedding_size + memory_size, self.pooled * embedding_size)
        self.dropout = Dropout(dropout)

    def start(self, memory: Memory) -> State:
        return State((self.bridge(memory.final),), self.attention.bind(memory))

    def step(self, tokens: Int[Tensor, "B"], state: State) -> tuple[Decoded, State]:
        embedded = self.embedding(tokens.unsqueeze(1))
        output, context, weights, state = self._advance(embedded, state)
        return Decoded(self._read_out(output, embedded, context), weights), state

    def forward(self, tokens: Int[Tensor, "B T"], memory: Memory) -> Decoded:
        embedded, state = self.embedding(tokens), self.start(memory)
        found = []
        for word in embedded.split(1, dim=1):
            *parts, state = self._advance(word, state)
            found.append(parts)
        output, context, weights = (torch.cat(parts, dim=1) for parts in zip(*found, strict=True))
        return Decoded(self._read_out(output, embedded, context), weights)

    def _advance(
        self, word: Float[Tensor, "B 1 E"], state: State
    ) -> tuple[Float[Tensor, "B 1 D"], Float[Tensor, "B 1 C"], Float[Tensor, "B 1 S"], State]:
        (recurrent,) = state.recurrent
        query = recurrent[:, -1:, : self.stack.hidden_size]  # of an LSTM the hidden state, not the cell
        context, weights = self.attention(query, state.bound)
        output, recurrent = self.stack(torch.cat((word, self.dropout(context)), dim=-1), recurrent)
        return output, context, weights, State((recurrent,), state.bound)

    def _read_out(
        self, output: Float[Tensor, "B T D"], embedded: Float[Tensor, "B T E"], context: Float[Tensor, "B T C"]
    ) -> Float[Tensor, "B T E"]:
        hidden = self.readout(torch.cat((self.dropout(output), embedded, self.dropout(context)), dim=-1))
        hidden = hidden.unflatten(-1, (-1, self.pooled)).amax(dim=-1) if self.pooled > 1 else hidden.tanh()
        return self.dropout(hidden)
