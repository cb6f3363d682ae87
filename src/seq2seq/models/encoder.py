"""The encoder: a recurrent network over the source, in both directions or in one.

Sources: Bahdanau et al. 2014, arXiv:1409.0473, section 3.2 (annotations from both directions, side by side); Sutskever et
al. 2014, arXiv:1409.3215, section 3.3 (one direction, over the reversed source).
Differs: rows are not packed. Batches are bucketed, so that little is padded, and steps of one and the same shape run
faster than packed ones, whose batch shrinks from step to step.
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from seq2seq.dropout import Dropout
from seq2seq.errors import ConfigError
from seq2seq.models.recurrent import Recurrent
from seq2seq.types import Memory


class RecurrentEncoder(nn.Module):
    """Reads embedded sources; padding never enters a state.

    Args:
        input_size: ``E``, told by the embedding.
        cell: ``gru``, ``lstm`` or ``rnn``.
        hidden_size: ``C``, size of a memory state and of the fixed vector; two directions have half of it each.
        layers: ``L``.
        dropout: between layers.
        residual: from the second layer on, a layer's input is added to its output.
        bidirectional: False reads forwards only.
        reverse: reads the tokens before ``EOS`` from the last to the first. The memory keeps the source's order.
    """

    def __init__(
        self,
        input_size: int,
        cell: str,
        hidden_size: int,
        layers: int = 1,
        dropout: float = 0.0,
        residual: bool = False,
        bidirectional: bool = True,
        reverse: bool = False,
    ):
        super().__init__()
        directions = 2 if bidirectional else 1
        if hidden_size < directions or hidden_size % directions:
            needed = f"must be at least {directions}"
            if bidirectional and hidden_size > 0:
                needed = "is shared by two directions and must be even"
            raise ConfigError(f"hidden_size {needed}, found {hidden_size}")
        if layers < 1:
            raise ConfigError(f"encoder_layers must be at least 1, found {layers}")
        self.memory_size = hidden_size
        self.reverse = reverse
        self.residual = residual
        self.layers = layers
        size = hidden_size // directions
        self.directions = nn.ModuleList(
            nn.ModuleList(
                Recurrent(cell, hidden_size if layer else input_size, size, layers=1) for layer in range(layers)
            )
            for _ in range(directions)
        )
        self.dropout = Dropout(dropout)

    def forward(self, embedded: Float[Tensor, "B S E"], is_token: Bool[Tensor, "B S"]) -> Memory:
        lengths = is_token.sum(dim=1)
        if self.reverse:
            # ``EOS`` keeps its place, as the sign that the source is over.
            embedded = _turned(embedded, lengths - 1)
        states = embedded
        for layer, stacks in enumerate(zip(*self.directions, strict=True)):
            inputs = self.dropout(states) if layer else states
            outputs = [stacks[0](inputs)[0]]
            if len(stacks) == 2:
                # Turned by each row's own length, padding comes last for either direction and no state passes through it.
                outputs.append(_turned(stacks[1](_turned(inputs, lengths))[0], lengths))
            read = torch.cat(outputs, dim=-1) if len(outputs) == 2 else outputs[0]  # [B, S, C]
            states = states + read if layer and self.residual else read
        size = stacks[0].hidden_size
        # Read last: the last token forwards, the first one backwards.
        final = torch.cat((last_of(states, is_token)[:, :size], states[:, 0, size:]), dim=-1)  # [B, C]
        if self.reverse:
            states = _turned(states, lengths - 1)
        return Memory(states * is_token.unsqueeze(-1), is_token, final)

    def distances(self, length: int) -> Int[Tensor, "S"]:
        """Recurrent steps from each of ``length`` tokens, ``EOS`` the last, to the nearest state in the fixed vector."""
        places = torch.arange(length)
        if len(self.directions) == 2:
            return torch.minimum(places, length - 1 - places)
        # Read from the end, token s comes ``s + 1`` steps before ``EOS``.
        return torch.where(places == length - 1, 0, places + 1) if self.reverse else length - 1 - places


def last_of(states: Float[Tensor, "B S N"], is_token: Bool[Tensor, "B S"]) -> Float[Tensor, "B N"]:
    """The state of each row's last token, ``EOS``."""
    lengths = is_token.sum(dim=1)
    return states[torch.arange(lengths.shape[0], device=lengths.device), lengths - 1]


def _turned(inputs: Float[Tensor, "B S N"], counts: Int[Tensor, "B"]) -> Float[Tensor, "B S N"]:
    """The first ``counts`` entries of each row in reversed order, the others where they were. Its own inverse."""
    places = torch.arange(inputs.shape[1], device=inputs.device).expand(counts.shape[0], -1)  # [B, S]
    last = (counts - 1).unsqueeze(1)
    order = torch.where(places <= last, last - places, places)
    return inputs.gather(1, order.unsqueeze(-1).expand_as(inputs))
