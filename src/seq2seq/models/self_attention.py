"""Encoders in which the source looks at itself: self-attention alone, or over the states of a recurrent network.

Source: Vaswani et al. 2017, arXiv:1706.03762, sections 3.1 to 3.5: layers of self-attention and of a feed-forward network,
each with a residual connection and layer normalisation, over embeddings to which sinusoids of the position are added.
Self-attention is any member of the attention family with the same states as queries, keys and values.
Differs: states are normalised before each part and once at the end (Xiong et al. 2020, arXiv:2002.04745), which learns
without a long warm-up.
Cost: as the attention's with ``T = S``; no step waits for another.
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from seq2seq.attention.base import build_attention
from seq2seq.dropout import Dropout
from seq2seq.errors import ConfigError
from seq2seq.models.encoder import last_of
from seq2seq.parts import complete
from seq2seq.types import Builder, Memory

LONGEST_WAVE = 10000.0


class SelfAttentionLayer(nn.Module):
    """Every state reads all states of its sentence, then passes through a feed-forward network.

    Args:
        size: ``C``.
        attention: waits for ``query_size`` and ``memory_size``.
        feed_forward: hidden units of the network, in sizes of a state.
        dropout: on what either part adds.
    """

    def __init__(self, size: int, attention: Builder, feed_forward: int, dropout: float):
        super().__init__()
        if feed_forward < 1:
            raise ConfigError(f"encoder.feed_forward must be at least 1, found {feed_forward}")
        self.attention = build_attention(attention, size, size, "encoder.attention")
        self.feed_forward = nn.Sequential(
            nn.Linear(size, feed_forward * size), nn.ReLU(), nn.Linear(feed_forward * size, size)
        )
        self.norms = nn.ModuleList(nn.LayerNorm(size) for _ in range(2))
        self.dropout = Dropout(dropout)

    def forward(self, states: Float[Tensor, "B S C"], is_token: Bool[Tensor, "B S"]) -> Float[Tensor, "B S C"]:
        read = self.norms[0](states)
        context, _ = self.attention(read, self.attention.bind(Memory(read, is_token, last_of(read, is_token))))
        states = states + self.dropout(context)
        return states + self.dropout(self.feed_forward(self.norms[1](states)))


class SelfAttentionStack(nn.Module):
    """``layers`` of them, and a last normalisation.

    Args:
        size: ``C``.
        attention: waits for ``query_size`` and ``memory_size``.
        layers: ``L``.
        feed_forward: hidden units of each layer's network, in sizes of a state.
        dropout: on what each part adds.
    """

    def __init__(self, size: int, attention: Builder, layers: int, feed_forward: int, dropout: float):
        super().__init__()
        if layers < 1:
            raise ConfigError(f"encoder.layers (encoder_layers) of self-attention must be at least 1, found {layers}")
        self.layers = nn.ModuleList(SelfAttentionLayer(size, attention, feed_forward, dropout) for _ in range(layers))
        self.norm = nn.LayerNorm(size)

    def forward(self, states: Float[Tensor, "B S C"], is_token: Bool[Tensor, "B S"]) -> Memory:
        for layer in self.layers:
            states = layer(states, is_token)
        states = self.norm(states)
        # ``EOS`` has looked at the whole sentence.
        return Memory(states * is_token.unsqueeze(-1), is_token, last_of(states, is_token))


class EncoderToEos(nn.Module):
    """What encoders that end in self-attention share: the fixed vector is the state of ``EOS``."""

    def distances(self, length: int) -> Int[Tensor, "S"]:
        """Tokens from each of ``length`` to ``EOS``, whose state is the fixed vector and has looked at all of them."""
        return length - 1 - torch.arange(length)


class SelfAttentionEncoder(EncoderToEos):
    """Self-attention over embeddings; no recurrence. The fixed vector is the state of ``EOS``.

    Args:
        input_size: ``E``, told by the embedding.
        hidden_size: ``C``, an even number.
        attention: waits for ``query_size`` and ``memory_size``.
        layers: ``L``.
        feed_forward: hidden units of each layer's network, in sizes of a state.
        dropout: on embeddings with their positions, and on what each part adds.

    Raises:
        ConfigError: a size does not fit.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        attention: Builder,
        layers: int = 1,
        feed_forward: int = 4,
        dropout: float = 0.0,
    ):
        super().__init__()
        if hidden_size < 2 or hidden_size % 2:
            raise ConfigError(
                f"hidden_size is shared by sines and cosines of the position and must be even, found {hidden_size}"
            )
        self.memory_size = hidden_size
        self.inputs = nn.Linear(input_size, hidden_size)
        self.stack = SelfAttentionStack(hidden_size, attention, layers, feed_forward, dropout)
        self.dropout = Dropout(dropout)

    def forward(self, embedded: Float[Tensor, "B S E"], is_token: Bool[Tensor, "B S"]) -> Memory:
        states = self.inputs(embedded)
        states = self.dropout(states + sinusoids(states.shape[1], self.memory_size, states.device).to(states.dtype))
        return self.stack(states, is_token)


class SelfAttendedEncoder(EncoderToEos):
    """Self-attention over the states of another encoder. The fixed vector is what has become of the state of ``EOS``.

    Args:
        input_size: ``E``, told by the embedding.
        recurrent: the encoder, which waits for ``input_size``.
        attention: waits for ``query_size`` and ``memory_size``.
        layers: ``L`` of self-attention.
        feed_forward: hidden units of each layer's network, in sizes of a state.
        dropout: on what each part adds.

    Raises:
        ConfigError: a size does not fit.
    """

    def __init__(
        self,
        input_size: int,
        recurrent: Builder,
        attention: Builder,
        layers: int = 1,
        feed_forward: int = 4,
        dropout: float = 0.0,
    ):
        super().__init__()
        self.recurrent = complete(recurrent, "encoder.recurrent", input_size=input_size)
        self.memory_size = self.recurrent.memory_size
        self.stack = SelfAttentionStack(self.memory_size, attention, layers, feed_forward, dropout)

    def forward(self, embedded: Float[Tensor, "B S E"], is_token: Bool[Tensor, "B S"]) -> Memory:
        return self.stack(self.recurrent(embedded, is_token).states, is_token)


def sinusoids(length: int | Int[Tensor, ""], size: int, device: torch.device | None = None) -> Float[Tensor, "S C"]:
    """Sines in the first half and cosines in the second of ``position / 10000^(2 i / size)`` (section 3.5, reordered).

    The length is a tensor while the model is traced.
    """
    # In single precision whatever the model's: in half of it, positions above 256 would coincide.
    kind = {"dtype": torch.float32, "device": device}
    rates = LONGEST_WAVE ** -(torch.arange(0, size, 2, **kind) / size)
    angles = torch.arange(length, **kind).unsqueeze(1) * rates  # [S, C / 2]
    return torch.cat((angles.sin(), angles.cos()), dim=1)
