"""No attention: every step reads the same fixed vector, the encoder's final state.

Source: Cho et al. 2014, "Learning Phrase Representations using RNN Encoder-Decoder", arXiv:1406.1078, section 2.2,
where the summary ``c`` of the whole source enters every decoder step.
With ``every_step: false`` the vector reaches the decoder through its first state alone, as in Sutskever et al. 2014,
"Sequence to Sequence Learning with Neural Networks", arXiv:1409.3215; the context is then zero.
Differs: it is a member of the family rather than a branch in the decoder, so the baseline runs the same decoder with
the same shapes and only what the context holds changes.
Cost: none; no parameter.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from seq2seq.attention.base import Attention
from seq2seq.types import Attended, Bound, Memory


class NoAttention(Attention):
    """The fixed-vector bottleneck. Its weights are all 0: it looks at no single source token.

    Args:
        every_step: False hands out zeros instead, so that only the decoder's first state knows the source.
    """

    def __init__(self, query_size: int, memory_size: int, every_step: bool = True):
        super().__init__(query_size, memory_size)
        self.every_step = every_step

    def bind(self, memory: Memory) -> Bound:
        final = memory.final if self.every_step else torch.zeros_like(memory.final)
        fixed = final.unsqueeze(1)  # [B, 1, C]
        return Bound(fixed, fixed, memory.is_token)

    def forward(self, queries: Float[Tensor, "B T D"], bound: Bound) -> Attended:
        batch, steps = queries.shape[:2]
        weights = queries.new_zeros(batch, steps, bound.is_token.shape[1])
        return Attended(bound.values.expand(-1, steps, -1), weights)
