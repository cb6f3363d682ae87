"""The parallel decoder: attention between two recurrent stacks, so that all target positions are computed together.

Source: Wu et al. 2016, "Google's Neural Machine Translation System", arXiv:1609.08144, section 3: the bottom decoder
layer's output is the attention's query, and the context goes to the layers above. As no recurrence passes through the
attention, teacher forcing takes one attention call and every matrix product is one large call.
Differs: one bottom layer and ``layers - 1`` upper ones, residual if asked for, and a tanh readout of size ``E``, so that the
output layer can share the embedding's weights (Press & Wolf 2017, arXiv:1608.05859).
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


class ParallelDecoder(Decoder):
    """Bottom layer, attention, upper layers, readout.

    Args:
        embedding: of target tokens, shared with the model.
        embedding_size: ``E``.
        memory_size: ``C``, told by the encoder.
        attention: waits for ``query_size`` and ``memory_size``.
        cell: ``gru``, ``lstm`` or ``rnn``.
        hidden_size: ``D``.
        layers: ``L``, at least 2: one below the attention, the others above.
        dropout: on what the upper layers and the output layer read, and between upper layers.
        residual: from the second layer of a stack on, its input is added to its output.
    """

    def __init__(
        self,
        embedding: nn.Module,
        embedding_size: int,
        memory_size: int,
        attention: Builder,
        cell: str,
        hidden_size: int,
        layers: int = 2,
        dropout: float = 0.0,
        residual: bool = False,
    ):
        super().__init__()
        if layers < 2:
            raise ConfigError(f"the parallel decoder needs decoder_layers of 2 or more, found {layers}")
        self.embedding = embedding
        self.bottom = Recurrent(cell, embedding_size, hidden_size, 1)
        self.attention = build_attention(attention, hidden_size, memory_size)
        self.upper = Recurrent(cell, hidden_size + memory_size, hidden_size, layers - 1, dropout, residual)
        self.bridges = nn.ModuleList(Bridge(memory_size, stack) for stack in (self.bottom, self.upper))
        self.readout = nn.Linear(hidden_size + memory_size, embedding_size)
        self.dropout = Dropout(dropout)

    def start(self, memory: Memory) -> State:
        return State(tuple(bridge(memory.final) for bridge in self.bridges), self.attention.bind(memory))

    def step(self, tokens: Int[Tensor, "B"], state: State) -> tuple[Decoded, State]:
        return self._advance(self.embedding(tokens.unsqueeze(1)), state)

    def forward(self, tokens: Int[Tensor, "B T"], memory: Memory) -> Decoded:
        return self._advance(self.embedding(tokens), self.start(memory))[0]

    def _advance(self, embedded: Float[Tensor, "B T E"], state: State) -> tuple[Decoded, State]:
        bottom_state, upper_state = state.recurrent
        queries, bottom_state = self.bottom(embedded, bottom_state)
        context, weights = self.attention(queries, state.bound)
        upper_inputs = self.dropout(torch.cat((queries, context), dim=-1))  # [B, T, D + C]
        outputs, upper_state = self.upper(upper_inputs, upper_state)
        readout = self.readout(self.dropout(torch.cat((outputs, context), dim=-1))).tanh()  # [B, T, E]
        return Decoded(self.dropout(readout), weights), State((bottom_state, upper_state), state.bound)
