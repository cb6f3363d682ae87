"""The moving average by hand."""

import pytest
import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel

from seq2seq.errors import ConfigError
from seq2seq.training.averaging import moving_average


def test_keeps_more_of_itself_with_every_step_up_to_its_decay():
    model = nn.Linear(1, 1, bias=False)
    averaged = AveragedModel(model, multi_avg_fn=moving_average(decay=0.2))
    found = []
    for weight in (1.0, 2.0, 4.0, 8.0):
        nn.init.constant_(model.weight, weight)
        averaged.update_parameters(model)
        found.append(averaged.module.weight.item())
    # The first is a copy; then 2/11 and, from then on, 0.2 of the average stay.
    second = 2 / 11 * 1 + 9 / 11 * 2
    third = 0.2 * second + 0.8 * 4
    assert found == pytest.approx([1, second, third, 0.2 * third + 0.8 * 8])


def test_untrained_weights_are_forgotten():
    model = nn.Linear(1, 1, bias=False)
    averaged = AveragedModel(model, multi_avg_fn=moving_average(decay=0.999))
    nn.init.constant_(model.weight, 1000.0)
    averaged.update_parameters(model)
    nn.init.constant_(model.weight, 1.0)
    for _ in range(200):
        averaged.update_parameters(model)
    assert averaged.module.weight.item() == pytest.approx(1, abs=0.01)  # 820 with a decay that does not grow
    assert model.weight.grad is None


@pytest.mark.parametrize("decay", [1.0, -0.1, float("nan")])
def test_a_decay_that_is_none(decay):
    with pytest.raises(ConfigError, match="decay must be"):
        moving_average(decay)
    assert torch.is_grad_enabled()
