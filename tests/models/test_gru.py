"""The GRU layer of the CPU, against torch's own, and its gradient against finite differences."""

import pytest
import torch

from seq2seq.models.gru import gru_layer
from seq2seq.models.recurrent import Recurrent


@pytest.fixture
def rnn():
    torch.manual_seed(0)
    return torch.nn.GRU(4, 6, batch_first=True).double()


def random(*shape):
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


@pytest.mark.parametrize("steps", [1, 2, 7])
def test_values_and_gradients_are_those_of_torch(rnn, steps):
    torch.manual_seed(steps)
    inputs, first = random(3, steps, 4), random(3, 6)
    weights = torch.randn(3, steps, 6).double(), torch.randn(3, 6).double()
    outcomes = []
    for states, last in (gru_layer(inputs, first, *rnn.parameters()), rnn(inputs, first[None])):
        loss = (states * weights[0]).sum() + (last.squeeze(0) * weights[1]).sum()
        outcomes.append([states, last.view(3, 6), *torch.autograd.grad(loss, [inputs, first, *rnn.parameters()])])
    for found, expected in zip(*outcomes, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)


def test_agrees_with_finite_differences(rnn):
    torch.manual_seed(1)
    assert torch.autograd.gradcheck(gru_layer, (random(2, 3, 4), random(2, 6), *rnn.parameters()))


def test_inputs_that_need_no_gradient_get_none(rnn):
    states, _ = gru_layer(torch.randn(2, 3, 4).double(), random(2, 6), *rnn.parameters())
    states.sum().backward()
    assert all(parameter.grad.any() for parameter in rnn.parameters())


@pytest.mark.parametrize("layers", [1, 3])
def test_a_stack_is_the_same_whether_it_learns_or_not(layers):
    """With gradients it runs the layers above, without them torch's own network."""
    torch.manual_seed(2)
    stack = Recurrent("gru", 4, 6, layers).double()
    inputs, state = torch.randn(2, 5, 4).double(), torch.randn(2, layers, 6).double()
    learning = stack(inputs, state), stack(inputs)[0]
    with torch.no_grad():
        still = stack(inputs, state), stack(inputs)[0]
    torch.testing.assert_close(learning, still, rtol=1e-12, atol=1e-12)


def test_dropout_stands_between_layers_alone():
    torch.manual_seed(3)
    inputs = torch.randn(2, 5, 4)
    for layers, drops in ((1, False), (2, True)):
        stack = Recurrent("gru", 4, 6, layers, dropout=0.9)
        assert torch.equal(stack(inputs)[0], stack(inputs)[0]) != drops
        assert torch.equal(stack.eval()(inputs)[0], stack(inputs)[0])
