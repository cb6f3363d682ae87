"""Learning-rate schedules, as factors of the optimizer's own rate.

Source: linear warm-up as in Vaswani et al. 2017, arXiv:1706.03762, section 5.3; cosine decay, Loshchilov & Hutter 2017,
arXiv:1608.03983, without restarts.
"""

import functools
import math

from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR

from seq2seq.errors import ConfigError


def warmup_cosine(optimizer: Optimizer, total_steps: int, warmup_steps: int, final: float = 0.0) -> LambdaLR:
    """Rises linearly for ``warmup_steps`` steps, then falls as half a cosine to ``final`` at ``total_steps``."""
    _check(warmup_steps, final)
    return LambdaLR(optimizer, functools.partial(_cosine_factor, total=total_steps, warmup=warmup_steps, final=final))


def warmup_linear(optimizer: Optimizer, total_steps: int, warmup_steps: int, final: float = 0.0) -> LambdaLR:
    """Rises linearly for ``warmup_steps`` steps, then falls linearly to ``final`` at ``total_steps``."""
    _check(warmup_steps, final)
    return LambdaLR(optimizer, functools.partial(_linear_factor, total=total_steps, warmup=warmup_steps, final=final))


def constant(optimizer: Optimizer, total_steps: int, warmup_steps: int = 0) -> LambdaLR:
    """Rises linearly for ``warmup_steps`` steps, then stays."""
    _check(warmup_steps, 1.0)
    return LambdaLR(optimizer, functools.partial(_linear_factor, total=total_steps, warmup=warmup_steps, final=1.0))


def _check(warmup_steps: int, final: float) -> None:
    if warmup_steps < 0 or not 0 <= final <= 1:
        raise ConfigError(
            "scheduler.warmup_steps must be at least 0 and scheduler.final between 0 and 1, "
            f"found {warmup_steps} and {final}"
        )


def _progress(step: int, total: int, warmup: int) -> float:
    return min(1.0, (step - warmup) / max(1, total - warmup))


def _cosine_factor(step: int, total: int, warmup: int, final: float) -> float:
    if step < warmup:
        return (step + 1) / (warmup + 1)
    return final + (1 - final) * (1 + math.cos(math.pi * _progress(step, total, warmup))) / 2


def _linear_factor(step: int, total: int, warmup: int, final: float) -> float:
    if step < warmup:
        return (step + 1) / (warmup + 1)
    return final + (1 - final) * (1 - _progress(step, total, warmup))
