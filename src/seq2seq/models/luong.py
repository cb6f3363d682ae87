"""The decoder of Luong et al.: the recurrent stack first, then attention, then a layer over both.

Source: Luong et al. 2015, arXiv:1508.04025, section 3: ``h~ = tanh(W_c [c; h])`` with the query ``h`` of the same step, and
input feeding (section 3.3), where ``h~`` is read together with the next word.
Differs: ``h~`` has size ``E`` instead of ``D``, so that the output layer can share the embedding's weights.
Without input feeding no step needs the attention of the one before, and teacher forcing takes one call of each part.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from seq2seq.attention.base import build_attention
from seq2seq.dropout import Dropout
from seq2seq.models.bridge import Bridge
from seq2seq.models.decoder import Decoder
from seq2seq.models.recurrent import Recurrent
from seq2seq.types import Builder, Decoded, Memory, State


class LuongDecoder(Decoder):
    """Recurrent stack, attention, attentional layer.

    Args:
        embedding: of target tokens, shared with the model.
        embedding_size: ``E``.
        memory_size: ``C``, told by the encoder.
        attention: waits for ``query_size`` and ``memory_size``.
        cell: ``gru``, ``lstm`` or ``rnn``.
        hidden_size: ``D``.
        layers: ``L``.
        dropout: on contexts and states, on the attentional vector, and between layers; words have theirs already.
        residual: from the second layer of a stack on, its input is added to its output.
        input_feeding: whether the stack reads the attentional vector of the step before.
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
        input_feeding: bool = True,
    ):
        super().__init__()
        self.embedding = embedding
        self.fed = embedding_size if input_feeding else 0
        self.stack = Recurrent(cell, embedding_size + self.fed, hidden_size, layers, dropout, residual)
        self.attention = build_attention(attention, hidden_size, memory_size)
        self.bridge = Bridge(memory_size, self.stack)
        self.attentional = nn.Linear(memory_size + hidden_size, embedding_size)
        self.dropout = Dropout(dropout)

    def start(self, memory: Memory) -> State:
        # Before the first word nothing was attended to.
        fed = memory.final.new_zeros(memory.final.shape[0], 1, self.fed)
        return State((self.bridge(memory.final), fed), self.attention.bind(memory))

    def step(self, tokens: Int[Tensor, "B"], state: State) -> tuple[Decoded, State]:
        decoded, state = self._advance(self.embedding(tokens.unsqueeze(1)), state)
        return Decoded(self.dropout(decoded.features), decoded.weights), state

    def forward(self, tokens: Int[Tensor, "B T"], memory: Memory) -> Decoded:
        embedded, state = self.embedding(tokens), self.start(memory)
        if not self.fed:
            decoded, _ = self._advance(embedded, state)
        else:
            found = []
            for word in embedded.split(1, dim=1):
                one, state = self._advance(word, state)
                found.append(one)
            decoded = Decoded(*(torch.cat(parts, dim=1) for parts in zip(*found, strict=True)))
        return Decoded(self.dropout(decoded.features), decoded.weights)

    def _advance(self, embedded: Float[Tensor, "B T E"], state: State) -> tuple[Decoded, State]:
        recurrent, fed = state.recurrent
        inputs = torch.cat((embedded, self.dropout(fed)), dim=-1) if self.fed else embedded
        outputs, recurrent = self.stack(inputs, recurrent)
        context, weights = self.attention(outputs, state.bound)
        features = self.attentional(self.dropout(torch.cat((context, outputs), dim=-1))).tanh()
        return Decoded(features, weights), State((recurrent, features if self.fed else fed), state.bound)
