"""Where a step's time goes, with parts that are known to take long."""

import time

import pytest
import torch
from torch import nn

from seq2seq.probes.parts import LOSS, OPTIMIZER, PARTS, part, shares_of_parts
from tests.tiny import batch_of, loss_of, tiny_model

SLEEP_S = 0.2


class Slow(torch.autograd.Function):
    @staticmethod
    def forward(ctx, inputs):
        return inputs.clone()

    @staticmethod
    def backward(ctx, grad):
        time.sleep(SLEEP_S)
        return grad


class SlowLinear(nn.Linear):
    """Its gradient takes long."""

    def forward(self, inputs):
        return Slow.apply(super().forward(inputs))


@pytest.fixture
def batch():
    return batch_of([[5, 6, 7]], [[6, 7]])


def test_marks_share_what_is_not_in_a_part_of_the_model(batch):
    def step():
        with part(LOSS):
            time.sleep(SLEEP_S / 4)
        with part(OPTIMIZER):
            time.sleep(SLEEP_S * 3 / 4)

    shares = shares_of_parts(step, tiny_model())
    assert sum(shares.values()) == pytest.approx(1)
    assert shares[LOSS] == pytest.approx(0.25, abs=0.1)
    assert shares[OPTIMIZER] == pytest.approx(0.75, abs=0.1)


@pytest.mark.parametrize(
    ("place", "name"),
    [("decoder.readout", "decoder"), ("decoder.attention.query", "attention"), ("output", LOSS)],
)
@pytest.mark.parametrize("placement", ["parallel", "bahdanau"])
def test_a_backward_operator_belongs_to_the_part_of_its_forward_one(batch, place, name, placement):
    model = tiny_model("scaled", model=placement).train()
    try:
        old = model.get_submodule(place)
    except AttributeError:
        pytest.skip(f"{placement} calls it otherwise")
    slow = SlowLinear(old.in_features, old.out_features, bias=old.bias is not None)
    model.set_submodule(place, slow)

    def step():
        with part(LOSS):
            loss = loss_of(model, batch)
        loss.backward()

    step()
    shares = shares_of_parts(step, model)
    assert set(shares) == set(PARTS)
    assert shares[name] > 0.5, shares
