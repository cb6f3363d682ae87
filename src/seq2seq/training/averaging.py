"""A moving average of the weights that forgets its beginning.

Source: Polyak & Juditsky 1992, "Acceleration of stochastic approximation by averaging"; the decay that grows with the steps
is that of TensorFlow's ``ExponentialMovingAverage``. Without it the untrained weights would keep ``decay ^ steps`` of the
average, a third of it after a thousand steps at 0.999.
"""

import functools
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from seq2seq.errors import ConfigError


def moving_average(decay: float) -> Callable[..., None]:
    """What ``torch.optim.swa_utils.AveragedModel`` takes as ``multi_avg_fn``.

    Args:
        decay: what the average keeps of itself at each step, from about the ``9 / (1 - decay)``-th on; before, it keeps
            ``(1 + steps) / (10 + steps)``.

    Raises:
        ConfigError: it is not between 0 and 1.
    """
    if not 0 <= decay < 1:
        raise ConfigError(f"callbacks.ema: decay must be at least 0 and below 1, found {decay}")
    return functools.partial(_update, decay)


@torch.no_grad()
def _update(decay: float, averages: Sequence[Tensor], values: Sequence[Tensor], count: Tensor | int) -> None:
    """Moves every average, in place; ``count`` values are in them already."""
    kept = min(decay, (1 + int(count)) / (10 + int(count)))
    for average, value in zip(averages, values, strict=True):
        average.lerp_(value, 1 - kept)
