"""The bridge: the decoder's first state, made from the encoder's last.

Source: Bahdanau et al. 2014, arXiv:1409.0473, appendix A.2.2 (``s_0 = tanh(W_s h)``). Differs: it reads the last state of
both directions, not of the backward one alone, so that every attention, ``none`` too, starts from the same vector.
"""

from jaxtyping import Float
from torch import Tensor, nn

from seq2seq.models.recurrent import Recurrent


class Bridge(nn.Module):
    """First states for a recurrent stack.

    Args:
        memory_size: ``C``.
        recurrent: the stack whose state it makes.
    """

    def __init__(self, memory_size: int, recurrent: Recurrent):
        super().__init__()
        self.shape = (recurrent.layers, recurrent.state_size)
        self.linear = nn.Linear(memory_size, recurrent.layers * recurrent.state_size)

    def forward(self, final: Float[Tensor, "B C"]) -> Float[Tensor, "B L W"]:
        return self.linear(final).tanh().unflatten(-1, self.shape)
