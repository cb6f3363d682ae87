"""A stack of recurrent layers whose state is one batch-first tensor, whatever the cell.

Sources: GRU, Cho et al. 2014, arXiv:1406.1078, section 2.3; LSTM, Hochreiter & Schmidhuber 1997, with the forget gate of
Gers et al. 2000.
A GRU that learns on a CPU runs the layers of ``gru.py``, with the same weights; all else is torch's own network.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from seq2seq.dropout import Dropout
from seq2seq.errors import ConfigError
from seq2seq.models.gru import gru_layer

CELLS: dict[str, type[nn.RNNBase]] = {"gru": nn.GRU, "lstm": nn.LSTM}


class Recurrent(nn.Module):
    """``layers`` recurrent layers, dropout between them.

    Args:
        cell: ``gru`` or ``lstm``.
        input_size: size of what the first layer reads.
        hidden_size: ``D``, size of one layer's output.
        layers: ``L``.
        dropout: between layers.

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
        self.dropout = Dropout(dropout)
        self.rnn = CELLS[cell](
            input_size,
            hidden_size,
            layers,
            batch_first=True,
            # torch warns where there is no gap between layers to drop out in
            dropout=dropout if layers > 1 else 0.0,
        )
        for name, parameter in self.rnn.named_parameters():
            if name.startswith("weight_hh"):
                for gate in parameter.data.chunk(parameter.shape[0] // hidden_size):
                    nn.init.orthogonal_(gate)

    def forward(
        self, inputs: Float[Tensor, "B T I"], state: Float[Tensor, "B L W"]
    ) -> tuple[Float[Tensor, "B T D"], Float[Tensor, "B L W"]]:
        """Outputs of the top layer at every position, and the state after the last."""
        if self._by_layer(inputs):
            return self._layers(inputs, state)
        first = state.transpose(0, 1).contiguous()  # [L, B, W]
        if self.parts == 1:
            outputs, last = self.rnn(inputs, first)
        else:
            hidden, memory_cell = first.chunk(2, dim=-1)
            outputs, last = self.rnn(inputs, (hidden.contiguous(), memory_cell.contiguous()))
            last = torch.cat(last, dim=-1)
        return outputs, last.transpose(0, 1)

    def read(self, inputs: Float[Tensor, "B S I"]) -> Float[Tensor, "B S D"]:
        """Outputs of the top layer at every position, from a zero state."""
        if self._by_layer(inputs):
            return self._layers(inputs, inputs.new_zeros(len(inputs), self.layers, self.hidden_size))[0]
        return self.rnn(inputs)[0]

    def _by_layer(self, inputs: Tensor) -> bool:
        on_cpu = inputs.device.type == "cpu" and not torch.is_autocast_enabled("cpu")
        return self.rnn.mode == "GRU" and on_cpu and torch.is_grad_enabled()

    def _layers(self, outputs: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        last = []
        for layer, weights in enumerate(self.rnn.all_weights):
            outputs, end = gru_layer(self.dropout(outputs) if layer else outputs, state[:, layer], *weights)
            last.append(end)
        return outputs, torch.stack(last, dim=1)
