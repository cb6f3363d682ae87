"""Dropout by bytes: the rate, the mean, the gradient, the seed."""

import pytest
import torch

from seq2seq.dropout import Dropout
from seq2seq.errors import ConfigError


@pytest.mark.parametrize(("rate", "dropped"), [(0.5, 128), (0.25, 64), (0.3, 77), (0.1, 26)])
def test_drops_the_rounded_share_and_keeps_the_mean(rate, dropped):
    torch.manual_seed(0)
    found = Dropout(rate)(torch.ones(1000, 1001))
    share = dropped / 256
    assert (found == 0).float().mean().item() == pytest.approx(share, abs=2e-3)
    torch.testing.assert_close(found[found != 0].unique(), torch.tensor([1 / (1 - share)]))


def test_every_place_is_drawn_on_its_own():
    """Two places of one draw, eight places apart and next to each other, agree as often as chance has it: half the time."""
    torch.manual_seed(0)
    kept = Dropout(0.5)(torch.ones(20_000, 16)) != 0
    for one in range(16):
        for other in range(one):
            assert (kept[:, one] == kept[:, other]).float().mean().item() == pytest.approx(0.5, abs=0.02)


def test_the_gradient_goes_the_way_the_value_went():
    inputs = torch.ones(50, requires_grad=True)
    outputs = Dropout(0.5)(inputs)
    outputs.sum().backward()
    torch.testing.assert_close(inputs.grad, outputs.detach())


def test_the_seed_decides():
    def draw(seed):
        torch.manual_seed(seed)
        return Dropout(0.5)(torch.ones(3, 33))

    assert torch.equal(draw(1), draw(1))
    assert not torch.equal(draw(1), draw(2))


def test_nothing_happens_in_evaluation_or_at_rate_0():
    inputs = torch.randn(5)
    assert Dropout(0.5).eval()(inputs) is inputs
    assert Dropout(0.0)(inputs) is inputs


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_keeps_the_type(dtype):
    assert Dropout(0.5)(torch.ones(7, dtype=dtype)).dtype == dtype


@pytest.mark.parametrize("rate", [-0.1, 1.0, 2.0])
def test_a_rate_out_of_range_is_refused(rate):
    with pytest.raises(ConfigError, match=f"dropout={rate} is not possible"):
        Dropout(rate)
