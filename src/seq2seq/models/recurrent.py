"""A stack of recurrent layers whose state is one batch-first tensor, whatever the cell.

Sources: GRU, Cho et al. 2014, arXiv:1406.1078, section 2.3; LSTM, Hochreiter & Schmidhuber 1997, with the forget gate of
Gers et al. 2000.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from seq2seq.errors import ConfigError

CELLS: dict[str, type[nn.RNNBase]] = {"gru": nn.GRU, "lstm": nn.LSTM}


class Recurrent(nn.Module):
    """``layers`` recurrent layers, dropout between them.

    Args:
        cell: ``gru`` or ``lstm``.
        input_size: size of what the first layer reads.
        hidden_size: ``D``, size of one layer's output in one direction.
        layers: ``L``.
        dropout: between layers.
        bidirectional: a second stack reads backwards; outputs are twice as wide.

    Attributes:
        state_size: ``W``: ``D``, or ``2 D`` for an LSTM, whose hidden state and cell stand side by side.
    """

    def __init__(
        self,
        cell: str,
        input_size: int,
        hidden_size: int,
        layers: int,
        dropout: float = 0.0,
        bidirectional: bool = False,
    ):
        super().__init__()
        if cell not in CELLS:
            raise ConfigError(f"cell must be one of {', '.join(sorted(CELLS))}, found {cell!r}")
        if layers < 1:
            raise ConfigError(f"a recurrent stack needs at least 1 layer, found {layers}")
        self.hidden_size = hidden_size
        self.layers = layers
        self.parts = 2 if cell == "lstm" else 1
        self.state_size = self.parts * hidden_size
        self.rnn = CELLS[cell](
            input_size,
            hidden_size,
            layers,
            batch_first=True,
            # torch warns where there is no gap between layers to drop out in
            dropout=dropout if layers > 1 else 0.0,
            bidirectional=bidirectional,
        )
        for name, parameter in self.rnn.named_parameters():
            if name.startswith("weight_hh"):
                for gate in parameter.data.chunk(parameter.shape[0] // hidden_size):
                    nn.init.orthogonal_(gate)

    def forward(
        self, inputs: Float[Tensor, "B T I"], state: Float[Tensor, "B L W"]
    ) -> tuple[Float[Tensor, "B T D"], Float[Tensor, "B L W"]]:
        """Outputs of the top layer at every position, and the state after the last."""
        first = state.transpose(0, 1).contiguous()  # [L, B, W]
        if self.parts == 1:
            outputs, last = self.rnn(inputs, first)
        else:
            hidden, memory_cell = first.chunk(2, dim=-1)
            outputs, last = self.rnn(inputs, (hidden.contiguous(), memory_cell.contiguous()))
            last = torch.cat(last, dim=-1)
        return outputs, last.transpose(0, 1)

    def read(
        self, inputs: Float[Tensor, "B S I"], lengths: Int[Tensor, "B"]
    ) -> tuple[Float[Tensor, "B S C"], Float[Tensor, "B C"]]:
        """Reads whole sequences of the given lengths from a zero state.

        Returns:
            The top layer's outputs, zero beyond a sequence's end, and its last output in every direction, side by side.
        """
        # Lengths decide the schedule of a packed run and so are wanted on the CPU by torch.
        packed = pack_padded_sequence(inputs, lengths.cpu(), batch_first=True, enforce_sorted=False)
        outputs, last = self.rnn(packed)
        hidden = last[0] if self.parts == 2 else last  # [L * directions, B, D]
        directions = 2 if self.rnn.bidirectional else 1
        states, _ = pad_packed_sequence(outputs, batch_first=True, total_length=inputs.shape[1])
        return states, torch.cat(tuple(hidden[-directions:]), dim=-1)
