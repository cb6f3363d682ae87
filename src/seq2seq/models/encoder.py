"""The encoder: a bidirectional recurrent network over the source.

Source: Bahdanau et al. 2014, arXiv:1409.0473, section 3.2 (annotations from both directions, side by side).
"""

from jaxtyping import Bool, Float
from torch import Tensor, nn

from seq2seq.errors import ConfigError
from seq2seq.models.recurrent import Recurrent
from seq2seq.types import Memory


class RecurrentEncoder(nn.Module):
    """Reads embedded sources; padding never enters a state.

    Args:
        input_size: ``E``, told by the embedding.
        cell: ``gru`` or ``lstm``.
        hidden_size: ``C``, size of a memory state and of the fixed vector; each direction has half of it.
        layers: ``L``.
        dropout: between layers.
    """

    def __init__(self, input_size: int, cell: str, hidden_size: int, layers: int = 1, dropout: float = 0.0):
        super().__init__()
        if hidden_size < 2 or hidden_size % 2:
            raise ConfigError(f"hidden_size is shared by two directions and must be even, found {hidden_size}")
        self.memory_size = hidden_size
        self.recurrent = Recurrent(cell, input_size, hidden_size // 2, layers, dropout, bidirectional=True)

    def forward(self, embedded: Float[Tensor, "B S E"], is_token: Bool[Tensor, "B S"]) -> Memory:
        states, final = self.recurrent.read(embedded, is_token.sum(dim=1))
        return Memory(states, is_token, final)
