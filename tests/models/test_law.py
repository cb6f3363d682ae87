"""The law of decoders and what the whole model has to keep, for every attention and cell."""

import pytest
import torch

from seq2seq.decoding.greedy import Greedy
from seq2seq.errors import ConfigError
from seq2seq.models.recipe import build
from seq2seq.types import BOS
from tests.tiny import ATTENTIONS, MODELS, VOCABULARY, batch_of, loss_of, padded, tiny_model, tiny_recipe

CELLS = ["gru", "lstm", "rnn"]


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("attention", ATTENTIONS)
@pytest.mark.parametrize("model", MODELS)
def test_forward_equals_folded_steps(model, attention, cell):
    model = tiny_model(attention, cell=cell, layers=3, model=model)
    source = padded([[5, 6, 7, 3], [8, 3], [3]])
    inputs = padded([[BOS, 9, 10, 11, 12], [BOS, 13, 14], [BOS, 15, 16, 17]])
    expected = model(source, inputs)
    state = model.start(source)
    for step in range(inputs.shape[1]):
        logits, weights, state = model.step(inputs[:, step], state)
        torch.testing.assert_close(logits, model.output(expected.features[:, step]))
        torch.testing.assert_close(weights, expected.weights[:, step])


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("attention", ATTENTIONS)
@pytest.mark.parametrize("model", MODELS)
def test_select_commutes_with_step(model, attention, cell):
    model = tiny_model(attention, cell=cell, model=model)
    state = model.start(padded([[5, 6, 7, 3], [8, 3], [9, 4, 3]]))
    order = torch.tensor([2, 0, 0])
    tokens = torch.tensor([10, 11, 12])
    logits, _, after = model.step(tokens, state)
    selected_logits, _, selected_after = model.step(tokens[order], state.select(order))
    torch.testing.assert_close(selected_logits, logits[order])
    for one, other in zip(after.select(order).recurrent, selected_after.recurrent, strict=True):
        torch.testing.assert_close(other, one)


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("attention", ATTENTIONS)
@pytest.mark.parametrize("model", MODELS)
def test_padding_and_neighbours_change_nothing(model, attention, cell):
    model = tiny_model(attention, cell=cell, model=model)
    source, inputs = padded([[5, 6, 3], [8, 9, 10, 11, 12, 3]]), padded([[BOS, 9], [BOS, 9, 10, 11]])
    together = model(source, inputs)
    alone = model(source[:1, :3], inputs[:1, :2])
    torch.testing.assert_close(together.features[:1, :2], alone.features)
    torch.testing.assert_close(together.weights[:1, :2, :3], alone.weights)


def test_the_fixed_vector_is_the_last_state_of_either_direction():
    """Forward: the state after the last real token; backward: the state at the first, having read from the last."""
    model = tiny_model(cell="gru")
    source = padded([[5, 6, 7, 3], [8, 3]])
    memory = model.encode(source)
    assert torch.equal(memory.final[0], torch.cat((memory.states[0, 3, :4], memory.states[0, 0, 4:])))
    assert torch.equal(memory.final[1], torch.cat((memory.states[1, 1, :4], memory.states[1, 0, 4:])))
    assert (memory.states[1, 2:] == 0).all()


def test_none_sees_the_source_through_the_fixed_vector_alone():
    model = tiny_model("none")
    memory = model.encode(padded([[5, 6, 7, 3]]))
    other = memory._replace(states=torch.randn_like(memory.states))
    inputs = torch.tensor([[BOS, 9, 10]])
    assert torch.equal(model.decoder(inputs, memory).features, model.decoder(inputs, other).features)


@pytest.mark.parametrize(("tying", "tables"), [("none", 3), ("target", 2), ("all", 1)])
def test_tying_shares_tables(tying, tables):
    model = tiny_model(tying=tying)
    weights = (model.source_embedding.table.weight, model.target_embedding.table.weight, model.output.weight)
    assert len({id(weight) for weight in weights}) == tables
    sizes = [parameter.numel() for parameter in model.parameters()]
    assert sizes.count(VOCABULARY * 6) == tables
    assert model.parameter_counts()["total"] == sum(sizes)


def test_attentions_differ_in_nothing_but_the_attention():
    counts = {attention: tiny_model(attention).parameter_counts() for attention in ATTENTIONS}
    rest = {
        name: {part: n for part, n in count.items() if part not in ("attention", "total")}
        for name, count in counts.items()
    }
    assert all(parts == rest["none"] for parts in rest.values())
    assert "attention" not in counts["none"]
    # Query and key maps, 8 x 8 each; additive has its vector of 8 on top; multi-head attention maps values and output, too.
    assert counts["scaled"]["attention"] == 128
    assert counts["additive"]["attention"] == counts["concat"]["attention"] == 136
    assert "attention" not in counts["dot"]
    assert counts["general"]["attention"] == 64
    assert counts["multihead"]["attention"] == 256


def test_word_dropout_drops_whole_words_in_training_only():
    model = tiny_model(word_dropout=0.5)
    tokens = torch.arange(4, 20).unsqueeze(0)
    assert (model.source_embedding(tokens) != 0).all()
    torch.manual_seed(0)
    dropped = model.train().source_embedding(tokens)[0]
    gone = (dropped == 0).all(dim=-1)
    assert 0 < gone.sum() < 16
    torch.testing.assert_close(dropped[~gone], 2 * 6**0.5 * model.source_embedding.table.weight[4:20][~gone])


@pytest.mark.parametrize("attention", ATTENTIONS)
@pytest.mark.parametrize("model", MODELS)
def test_every_weight_learns(model, attention):
    model = tiny_model(attention, model=model).train()
    batch = batch_of([[5, 6, 7], [8, 9]], [[10, 11], [12, 13, 14]])
    loss_of(model, batch).backward()
    assert [
        name for name, parameter in model.named_parameters() if parameter.grad is None or not parameter.grad.any()
    ] == []


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("attention", ATTENTIONS)
@pytest.mark.parametrize("model", MODELS)
def test_eight_pairs_are_learned_by_heart(model, attention, cell):
    """A few seconds of teaching, then free decoding gives every target back, to the token."""
    torch.manual_seed(5)
    sources = [torch.randint(4, VOCABULARY, (length,)).tolist() for length in (1, 2, 2, 3, 3, 4, 4, 5)]
    targets = [torch.randint(4, VOCABULARY, (length,)).tolist() for length in (2, 1, 3, 2, 4, 3, 5, 4)]
    batch = batch_of(sources, targets)
    model = tiny_model(attention, cell=cell, model=model, size=32, embedding_size=16).train()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    loss = torch.tensor(torch.inf)
    while loss > 0.02:
        loss = loss_of(model, batch)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
    assert [hypothesis.tokens for hypothesis in Greedy()(model.eval(), batch.source)] == targets


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"cell": "gruu"}, "cell must be one of gru, lstm, rnn, found 'gruu'"),
        ({"layers": 1}, "decoder_layers of 2 or more, found 1"),
        ({"tying": "some"}, "tying must be none, target or all, found 'some'"),
    ],
)
def test_settings_that_do_not_fit_are_refused(changes, words):
    with pytest.raises(ConfigError, match=words):
        tiny_model(**changes)


def test_one_table_for_two_vocabularies_is_refused():
    with pytest.raises(ConfigError, match=r"tokenizer\.joint=true"):
        build(tiny_recipe(), source_vocabulary=10, target_vocabulary=10, joint=False)


def test_an_odd_size_cannot_be_shared_by_two_directions():
    recipe = tiny_recipe()
    recipe["encoder"]["hidden_size"] = 7
    with pytest.raises(ConfigError, match="must be even, found 7"):
        build(recipe, source_vocabulary=10, target_vocabulary=10, joint=True)
