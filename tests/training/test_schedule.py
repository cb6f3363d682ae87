"""Learning-rate factors, worked out by hand."""

import pytest
import torch

from seq2seq.errors import ConfigError
from seq2seq.training.schedule import constant, warmup_cosine, warmup_linear


def rates(build, steps, **settings):
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    scheduler = build(optimizer, **settings)
    found = []
    for _ in range(steps):
        found.append(scheduler.get_last_lr()[0])
        optimizer.step()
        scheduler.step()
    return found


def test_cosine():
    """Up by quarters over 3 steps, then from 1 to 0.2 in 4 steps; half-way down it is 0.6."""
    found = rates(warmup_cosine, 8, total_steps=7, warmup_steps=3, final=0.2)
    assert found[:4] == pytest.approx([0.25, 0.5, 0.75, 1.0])
    assert found[5] == pytest.approx(0.6)
    assert found[7] == pytest.approx(0.2)


def test_linear():
    assert rates(warmup_linear, 7, total_steps=6, warmup_steps=1, final=0.0) == pytest.approx(
        [0.5, 1.0, 0.8, 0.6, 0.4, 0.2, 0.0]
    )


def test_constant():
    assert rates(constant, 4, total_steps=100, warmup_steps=1) == pytest.approx([0.5, 1.0, 1.0, 1.0])


@pytest.mark.parametrize("settings", [{"warmup_steps": -1}, {"warmup_steps": 1, "final": 1.5}])
def test_settings_that_do_not_fit_are_refused(settings):
    with pytest.raises(ConfigError, match=r"scheduler\."):
        rates(warmup_cosine, 1, total_steps=10, **settings)
