"""Every decoder against its paper's equations, written out step by step with torch's own cells, in double precision."""

import pytest
import torch

from tests.tiny import padded, tiny_model, tiny_recipe

CELLS = {"gru": torch.nn.GRUCell, "lstm": torch.nn.LSTMCell, "rnn": torch.nn.RNNCell}
SOURCE, INPUTS = padded([[5, 6, 7, 3], [8, 3]]), padded([[2, 9, 10, 11], [2, 13, 14]])
LAYERS = 3


class Stack:
    """The layers of a ``Recurrent`` as single cells, and their states after ``tanh(W h)`` of the fixed vector."""

    def __init__(self, recurrent, bridge, final, cell, residual):
        self.cells, self.residual = [], residual
        for rnn in recurrent.rnns:
            one = CELLS[cell](rnn.input_size, rnn.hidden_size).double()
            one.load_state_dict({name.removesuffix("_l0"): weight for name, weight in rnn.state_dict().items()})
            self.cells.append(one)
        first = torch.tanh(final @ bridge.linear.weight.T + bridge.linear.bias)
        self.states = list(first.split(recurrent.state_size, dim=1))
        assert len(self.states) == len(self.cells)

    @property
    def top(self):
        """The hidden state of the top layer."""
        return self.states[-1][:, : self.cells[-1].hidden_size]

    def step(self, inputs):
        for layer, cell in enumerate(self.cells):
            state = self.states[layer]
            if isinstance(cell, torch.nn.LSTMCell):
                hidden, memory = cell(inputs, tuple(state.chunk(2, dim=1)))
                self.states[layer] = torch.cat((hidden, memory), dim=1)
            else:
                hidden = self.states[layer] = cell(inputs, state)
            inputs = inputs + hidden if layer and self.residual else hidden
        return inputs


def read(scores, memory):
    weights = scores.masked_fill(~memory.is_token, -torch.inf).softmax(dim=1)
    return torch.einsum("bs,bsc->bc", weights, memory.states)


def given(model, attention, cell, residual, **settings):
    decoder = tiny_recipe(attention, model=model, cell=cell, layers=LAYERS)["decoder"]
    whole = tiny_model(attention, model=model, cell=cell, decoder=decoder | {"residual": residual} | settings).double()
    return whole, whole.decoder, whole.encode(SOURCE), whole.target_embedding(INPUTS)


@pytest.mark.parametrize("residual", [False, True])
@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("output", ["maxout", "tanh"])
def test_bahdanau(cell, residual, output):
    """``c_i`` from ``s_(i-1)``; ``s_i = f(s_(i-1), y_(i-1), c_i)``; maxout or tanh of ``s_i``, ``y_(i-1)`` and ``c_i``."""
    model, decoder, memory, words = given("bahdanau", "additive", cell, residual, output=output)
    stack, attention, found = Stack(decoder.stack, decoder.bridge, memory.final, cell, residual), decoder.attention, []
    for word in words.unbind(1):
        asked = torch.tanh(attention.query(stack.top).unsqueeze(1) + attention.key(memory.states))
        context = read(asked @ attention.energy.weight[0], memory)
        state = stack.step(torch.cat((word, context), dim=1))
        deep = decoder.readout(torch.cat((state, word, context), dim=1))
        found.append(torch.maximum(deep[:, 0::2], deep[:, 1::2]) if output == "maxout" else torch.tanh(deep))
    torch.testing.assert_close(model(SOURCE, INPUTS).features, torch.stack(found, dim=1))


@pytest.mark.parametrize("residual", [False, True])
@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("feeding", [False, True])
def test_luong(cell, residual, feeding):
    """``h_t`` first, then ``h~_t = tanh(W [c_t; h_t])``, which with input feeding is read beside the next word."""
    model, decoder, memory, words = given("luong", "general", cell, residual, input_feeding=feeding)
    stack, found = Stack(decoder.stack, decoder.bridge, memory.final, cell, residual), []
    fed = torch.zeros(2, 6 if feeding else 0, dtype=torch.float64)
    for word in words.unbind(1):
        state = stack.step(torch.cat((word, fed), dim=1))
        weight = decoder.attention.key.weight / 8**0.5
        context = read(torch.einsum("bd,dc,bsc->bs", state, weight, memory.states), memory)
        found.append(torch.tanh(decoder.attentional(torch.cat((context, state), dim=1))))
        fed = found[-1] if feeding else fed
    torch.testing.assert_close(model(SOURCE, INPUTS).features, torch.stack(found, dim=1))


@pytest.mark.parametrize("residual", [False, True])
@pytest.mark.parametrize("cell", CELLS)
def test_parallel(cell, residual):
    """The bottom layer asks; the upper layers read its output and the context, the readout their output and the context."""
    model, decoder, memory, words = given("parallel", "scaled", cell, residual)
    bottom = Stack(decoder.bottom, decoder.bridges[0], memory.final, cell, False)
    upper = Stack(decoder.upper, decoder.bridges[1], memory.final, cell, residual)
    attention, found = decoder.attention, []
    for word in words.unbind(1):
        query = bottom.step(word)
        keys = attention.key(memory.states)
        context = read(torch.einsum("ba,bsa->bs", attention.query(query), keys) / 8**0.5, memory)
        state = upper.step(torch.cat((query, context), dim=1))
        found.append(torch.tanh(decoder.readout(torch.cat((state, context), dim=1))))
    torch.testing.assert_close(model(SOURCE, INPUTS).features, torch.stack(found, dim=1))
