"""Dropout with cheap random numbers.

Source: Srivastava et al. 2014, "Dropout", JMLR 15.
Differs: on a CPU torch draws one number of 53 random bits for every element, in one thread, which took a tenth of a
training step; here every element gets one byte. The rate is therefore a multiple of 1/256, and the scale is that of the
rounded rate, so the expectation is exact.
"""

import torch
from torch import Tensor, nn

from seq2seq.errors import ConfigError

STEPS = 256


class Dropout(nn.Module):
    """Sets elements to zero while training and scales the others up.

    Args:
        rate: probability of a zero, in [0, 1); rounded to a multiple of 1/256.
        name: what a user calls the rate.

    Raises:
        ConfigError: the rate is out of range.
    """

    def __init__(self, rate: float, name: str = "dropout"):
        super().__init__()
        check_rate(rate, name)
        self.dropped = min(round(rate * STEPS), STEPS - 1)

    def forward(self, inputs: Tensor) -> Tensor:
        return inputs * self.mask(inputs) if self.training and self.dropped else inputs

    def mask(self, like: Tensor) -> Tensor:
        """A factor for each element: 0, or what makes the mean 1."""
        draws = torch.empty((like.numel() + 7) // 8, dtype=torch.int64, device=like.device)
        draws.random_(torch.iinfo(torch.int64).min, None)  # all 64 bits, eight elements a draw
        kept = draws.view(torch.uint8)[: like.numel()].view(like.shape) >= self.dropped
        return kept.to(like.dtype).mul_(STEPS / (STEPS - self.dropped))

    def extra_repr(self) -> str:
        return f"rate={self.dropped / STEPS:.4g}"


def check_rate(rate: float, name: str = "dropout") -> None:
    """Refuses what is no probability of a zero.

    Raises:
        ConfigError: the rate is below 0, or 1 or more.
    """
    if not 0 <= rate < 1:
        raise ConfigError(f"{name}={rate} is not possible: give 0 or more, less than 1")
