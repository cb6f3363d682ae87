"""The loss in pieces against the loss in one piece, in double precision."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from seq2seq.models import loss
from seq2seq.models.loss import summed_loss


@pytest.fixture(params=[1, 3, 7, 100], ids="{} rows".format)
def pieces(request, monkeypatch):
    """So many rows of a vocabulary of 11 at once; 7 rows in all are one piece with the last two."""
    monkeypatch.setattr(loss, "LARGEST", 11 * request.param)
    return request.param


def parts(dtype=torch.float64):
    torch.manual_seed(1)
    output = nn.Linear(5, 11).to(dtype)
    return output, torch.randn(7, 5, dtype=dtype, requires_grad=True), torch.tensor([3, 0, 10, 3, 4, 7, 1])


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_value_and_gradients_are_those_of_one_piece(pieces, smoothing):
    output, features, targets = parts()
    whole = F.cross_entropy(output(features), targets, reduction="sum", label_smoothing=smoothing)
    found = summed_loss(output, features, targets, smoothing)
    assert abs(found - whole) < 1e-9
    inputs = (features, output.weight, output.bias)
    for one, other in zip(torch.autograd.grad(3 * found, inputs), torch.autograd.grad(3 * whole, inputs), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-9)


def test_gradients_are_right_by_differences(monkeypatch):
    monkeypatch.setattr(loss, "LARGEST", 11 * 2)
    output, features, targets = parts()
    weight, bias = (part.detach().clone().requires_grad_() for part in (output.weight, output.bias))
    assert torch.autograd.gradcheck(
        lambda f, w, b: loss._Summed.apply(f, w, b, targets, 0.1, 2), (features, weight, bias)
    )


def test_a_weight_that_does_not_learn_has_no_gradient(monkeypatch):
    monkeypatch.setattr(loss, "LARGEST", 11)
    output, features, targets = parts()
    output.requires_grad_(False)
    summed_loss(output, features, targets).backward()
    assert output.weight.grad is None
    assert features.grad is not None
    with torch.no_grad():
        assert summed_loss(output, features, targets).item() == pytest.approx(
            F.cross_entropy(output(features), targets, reduction="sum").item()
        )


def test_half_precision_adds_up_in_single(monkeypatch):
    monkeypatch.setattr(loss, "LARGEST", 11)
    output, features, targets = parts(torch.bfloat16)
    found = summed_loss(output, features, targets, 0.1)
    whole = F.cross_entropy(output(features).float(), targets, reduction="sum", label_smoothing=0.1)
    assert found.dtype == torch.float32
    assert found.item() == pytest.approx(whole.item(), rel=1e-5)
    found.backward()
    assert (features.grad.dtype, output.weight.grad.dtype) == (torch.bfloat16, torch.bfloat16)


def test_mixed_precision(monkeypatch):
    monkeypatch.setattr(loss, "LARGEST", 11 * 2)
    output, features, targets = parts(torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        found = summed_loss(output, features, targets, 0.1)
        monkeypatch.setattr(loss, "LARGEST", 11 * 7)
        whole = summed_loss(output, features, targets, 0.1)
    inputs = (features, output.weight, output.bias)
    for one, other in zip(torch.autograd.grad(found, inputs), torch.autograd.grad(whole, inputs), strict=True):
        assert one.dtype == torch.float32
        torch.testing.assert_close(one, other, rtol=0.02, atol=0.02)
