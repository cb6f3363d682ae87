"""A stack of recurrent layers whose state is one batch-first tensor, whatever the cell.

Sources: GRU, Cho et al. 2014, arXiv:1406.1078, section 2.3; LSTM, Hochreiter & Schmidhuber 1997, with the forget gate of
Gers et al. 2000; the plain tanh network of Elman 1990, whose gradient vanishes soonest; residual connections between
layers, Wu et al. 2016, arXiv:1609.08144, section 3.1.
A GRU that learns on a CPU runs the layers of ``gru.py``, with the same weights; all else is torch's own network.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from seq2seq.dropout import Dropout
from seq2seq.errors import ConfigError
from seq2seq.models.gru import gru_layer

CELLS: dict[str, type[nn.RNNBase]] = {"gru": nn.GRU, "lstm": nn.LSTM, "rnn": nn.RNN}


class Recurrent(nn.Module):
    """``layers`` recurrent layers, dropout between them.

    Args:
        cell: ``gru``, ``lstm`` or ``rnn``.
        input_size: size of what the first layer reads.
        hidden_size: ``D``, size of one layer's output.
        layers: ``L``.
        dropout: between layers.
        residual: from the second layer on, a layer's input is added to its output.

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
        residual: bool = False,
    ):
        super().__init__()
        if cell not in CELLS:
            raise ConfigError(f"cell must be one of {', '.join(sorted(CELLS))}, found {cell!r}")
        if layers < 1:
            raise ConfigError(f"decoder_layers must be at least 1, found {layers}")
        self.hidden_size = hidden_size
        self.layers = layers
        self.state_size = (2 if cell == "lstm" else 1) * hidden_size
        self.dropout = Dropout(dropout)
        self.residual = residual
        self.rnns = nn.ModuleList(
            CELLS[cell](hidden_size if layer else input_size, hidden_size, batch_first=True) for layer in range(layers)
        )
        for rnn in self.rnns:
            for gate in rnn.weight_hh_l0.data.split(hidden_size):
                nn.init.orthogonal_(gate)

    def forward(
        self, inputs: Float[Tensor, "B T I"], state: Float[Tensor, "B L W"] | None = None
    ) -> tuple[Float[Tensor, "B T D"], Float[Tensor, "B L W"]]:
        """Outputs of the top layer at every position, and the state after the last; from a zero state if none is given."""
        if state is None:
            state = inputs.new_zeros(inputs.shape[0], self.layers, self.state_size)
        last = []
        for layer, rnn in enumerate(self.rnns):
            below = self.dropout(inputs) if layer else inputs
            outputs, end = run_layer(rnn, below, state[:, layer])
            inputs = inputs + outputs if layer and self.residual else outputs
            last.append(end)
        return inputs, torch.stack(last, dim=1)


def run_layer(
    rnn: nn.RNNBase, inputs: Float[Tensor, "B T I"], state: Float[Tensor, "B W"]
) -> tuple[Float[Tensor, "B T D"], Float[Tensor, "B W"]]:
    on_cpu = inputs.device.type == "cpu" and not torch.is_autocast_enabled("cpu")
    # A single step has no products to gather.
    if rnn.mode == "GRU" and on_cpu and torch.is_grad_enabled() and inputs.shape[1] > 1:
        return gru_layer(inputs, state, *rnn.all_weights[0])
    if rnn.mode != "LSTM":
        outputs, last = rnn(inputs, state.unsqueeze(0).contiguous())
        return outputs, last[0]
    hidden, memory_cell = (part.contiguous() for part in state.unsqueeze(0).chunk(2, dim=-1))
    outputs, last = rnn(inputs, (hidden, memory_cell))
    return outputs, torch.cat(last, dim=-1)[0]
