"""The limit holds every product and recurrent call of a model once: counted by hand for each decoder."""

import pytest
import torch

from seq2seq.probes import cost
from tests.tiny import ATTENTIONS, MODELS, batch_of, tiny_model

BATCH = batch_of([[5, 6, 7], [8, 9]], [[10, 11], [12, 13, 14]])  # B 2, S 4, T 4, 7 target tokens
ENCODER = [("gru", 4, 4), ("gru", 4, 4)]


def batched(left, columns, device, of_left=True):
    return lambda: ("batched" if of_left else "batched, two products", *left, columns)


@pytest.fixture
def counted(monkeypatch):
    """The parts of a limit as plain tuples."""
    monkeypatch.setattr(cost, "_product", lambda rows, weight: lambda: ("product", rows, *weight.shape))
    monkeypatch.setattr(cost, "_batched_product", batched)
    monkeypatch.setattr(cost, "_recurrent", lambda rnn, shape: lambda: ("gru", shape[1], rnn.hidden_size))
    return lambda model: sorted(work() for work in cost.limit_of(model, BATCH))


def test_parallel_with_scaled_attention(counted):
    expected = [
        *ENCODER,
        ("gru", 4, 8),
        ("gru", 4, 8),
        ("product", 2, 8, 8),  # bridges
        ("product", 2, 8, 8),
        ("product", 8, 8, 8),  # queries
        ("product", 8, 8, 8),  # keys
        ("batched", 2, 4, 8, 4),  # scores
        ("batched", 2, 4, 4, 8),  # contexts
        ("product", 8, 6, 16),  # readout
        ("product", 7, 20, 6),  # output layer, on real tokens
    ]
    assert counted(tiny_model()) == sorted(expected)


def test_additive_attention_has_no_product_over_all_pairs(counted):
    """Of 2 sentences, 4 target and 4 source tokens: the energies are sums that need no matrix of 32 rows."""
    found = counted(tiny_model("additive"))
    assert not [part for part in found if part[:2] == ("product", 32)]
    assert found.count(("batched", 2, 4, 4, 8)) == 1


def test_concat_has_a_product_for_either_half_of_its_matrix(counted):
    found, additive = counted(tiny_model("concat")), counted(tiny_model("additive"))
    assert found == additive


def test_heads_share_the_products(counted):
    found = counted(tiny_model("multihead"))
    assert ("batched", 8, 4, 2, 4) in found
    assert ("batched", 8, 4, 4, 2) in found


def test_no_attention_has_no_products(counted):
    assert [part for part in counted(tiny_model("none")) if part[0] == "batched"] == []


def test_equal_weights_have_no_gradient(counted):
    """A mean has its product and the memory's gradient, two products instead of three."""
    found = [part for part in counted(tiny_model("uniform")) if part[0].startswith("batched")]
    assert found == [("batched, two products", 2, 4, 4, 8)]


@pytest.mark.parametrize(("of_left", "products"), [(True, 3), (False, 2)])
def test_a_factor_without_gradient_saves_a_product(of_left, products):
    work = cost._batched_product((2, 3, 4), 5, torch.device("cpu"), of_left)
    with torch.profiler.profile() as profile:
        work()
    assert {event.key: event.count for event in profile.key_averages()}["aten::bmm"] == products


def test_a_decoder_of_single_steps_calls_its_parts_once_a_step(counted):
    found = counted(tiny_model(model="bahdanau", layers=1))
    assert found.count(("gru", 1, 8)) == 4
    assert found.count(("batched", 2, 1, 8, 4)) == 4
    assert found.count(("product", 2, 8, 8)) == 4 + 1  # queries, bridge


@pytest.mark.parametrize("attention", ATTENTIONS)
@pytest.mark.parametrize("model", MODELS)
def test_every_limit_runs(model, attention):
    limit = cost.limit_of(tiny_model(attention, model=model), BATCH)
    assert len(limit) > 5
    for work in limit:
        work()
