"""What sets the decoders apart, by hand: maxout, input feeding, and which state asks."""

import pytest
import torch

from seq2seq.errors import ConfigError
from seq2seq.models.encoder import RecurrentEncoder
from seq2seq.models.recurrent import Recurrent
from seq2seq.types import BOS
from tests.tiny import padded, tiny_model, tiny_recipe

SOURCE, INPUTS = [[5, 6, 7, 3], [8, 3]], [[BOS, 9, 10], [BOS, 13, 14]]


def changed(model, **settings):
    recipe = tiny_recipe(model=model)["decoder"]
    return tiny_model(model=model, decoder=recipe | settings)


def test_maxout_takes_the_larger_of_each_pair():
    decoder = changed("bahdanau").decoder
    torch.nn.init.zeros_(decoder.readout.weight)
    decoder.readout.bias.data = torch.tensor([1.0, 2.0, 4.0, 3.0, -6.0, -5.0, 0.0, 0.0, 9.0, -9.0, 0.5, 0.25])
    found = decoder._read_out(torch.randn(1, 1, 8), torch.randn(1, 1, 6), torch.randn(1, 1, 8))
    assert found[0, 0].tolist() == [2.0, 4.0, -5.0, 0.0, 9.0, 0.5]


def test_tanh_output_has_half_the_weights():
    maxout, tanh = changed("bahdanau").decoder, changed("bahdanau", output="tanh").decoder
    assert maxout.readout.weight.shape == (12, 22)
    assert tanh.readout.weight.shape == (6, 22)
    assert (changed("bahdanau", output="tanh")(padded(SOURCE), padded(INPUTS)).features.abs() < 1).all()


def test_another_output_is_refused():
    with pytest.raises(ConfigError, match=r"model\.decoder\.output must be maxout or tanh, found 'relu'"):
        changed("bahdanau", output="relu")


@pytest.mark.parametrize(("model", "asks_before"), [("bahdanau", True), ("luong", False), ("parallel", False)])
def test_which_state_asks(model, asks_before):
    """Bahdanau's first weights do not depend on the first word, as the state before it asks; the others' do."""
    model = tiny_model(model=model)
    state = model.start(padded(SOURCE[:1]))
    first, second = (model.step(torch.tensor([word]), state)[1] for word in (9, 10))
    assert torch.allclose(first, second) == asks_before


@pytest.mark.parametrize("feeding", [True, False])
def test_input_feeding_lets_the_first_reading_reach_the_second_state(feeding):
    model = changed("luong", input_feeding=feeding)
    memory = model.encode(padded(SOURCE[:1]))
    states = memory.states.detach().requires_grad_()
    # What attention reads, apart from the first state, which the fixed vector makes.
    recurrent = []
    state = model.decoder.start(memory._replace(states=states, final=memory.final.detach()))
    for word in (BOS, 9):
        _, state = model.decoder.step(torch.tensor([word]), state)
        recurrent.append(state.recurrent[0])
    (gradient,) = torch.autograd.grad(recurrent[1].sum(), states, allow_unused=True)
    assert (gradient is not None and bool(gradient.any())) == feeding


@pytest.mark.parametrize("cell", ["gru", "lstm", "rnn"])
def test_residual_layers_add_their_input(cell):
    """With zero weights the upper layer says 0 from its zero state, whatever the cell; the sum is the lower layer."""
    torch.manual_seed(0)
    stack, plain = (Recurrent(cell, 4, 6, layers, residual=layers > 1) for layers in (2, 1))
    for weight in stack.rnns[1].parameters():
        torch.nn.init.zeros_(weight)
    plain.rnns[0].load_state_dict(stack.rnns[0].state_dict())
    inputs = torch.randn(2, 5, 4)
    torch.testing.assert_close(stack(inputs)[0], plain(inputs)[0])
    without = Recurrent(cell, 4, 6, 2)
    without.load_state_dict(stack.state_dict())
    assert not without(inputs)[0].any()


def test_an_encoder_adds_what_its_lower_layer_has_read():
    torch.manual_seed(0)
    deep, plain = (RecurrentEncoder(4, "gru", 6, layers, residual=layers > 1) for layers in (2, 1))
    for stacks, only in zip(deep.directions, plain.directions, strict=True):
        for weight in stacks[1].parameters():
            torch.nn.init.zeros_(weight)
        only[0].load_state_dict(stacks[0].state_dict())
    embedded, is_token = torch.randn(2, 5, 4), torch.arange(5) < torch.tensor([[5], [3]])
    for found, expected in zip(deep(embedded, is_token), plain(embedded, is_token), strict=True):
        torch.testing.assert_close(found, expected)
