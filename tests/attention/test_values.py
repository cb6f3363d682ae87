"""Attention values worked out by hand, before the code ran."""

import math

import pytest
import torch

from seq2seq.attention.additive import AdditiveAttention
from seq2seq.attention.none import NoAttention
from seq2seq.attention.scaled import ScaledDotProductAttention
from seq2seq.attention.uniform import UniformAttention
from seq2seq.types import Memory


def memory_of(states, is_token, final=None):
    states = torch.tensor(states)
    final = torch.zeros(states.shape[0], states.shape[2]) if final is None else torch.tensor(final)
    return Memory(states, torch.tensor(is_token), final)


def set_identity(linear):
    torch.nn.init.eye_(linear.weight)


def test_scaled_reads_two_tokens_in_the_ratio_three_to_one():
    """d = 4, so the root is 2: q . k = 2 ln 3 and 0 give scores ln 3 and 0, weights 3/4 and 1/4."""
    attention = ScaledDotProductAttention(query_size=4, memory_size=4)
    set_identity(attention.query)
    set_identity(attention.key)
    memory = memory_of([[[2 * math.log(3), 0, 0, 0], [0, 8.0, 0, 0], [9.0, 9.0, 9.0, 9.0]]], [[True, True, False]])
    context, weights = attention(torch.tensor([[[1.0, 0, 0, 0]]]), attention.bind(memory))
    assert weights[0, 0].tolist() == pytest.approx([0.75, 0.25, 0.0], abs=1e-6)
    assert context[0, 0].tolist() == pytest.approx([1.5 * math.log(3), 2.0, 0, 0], abs=1e-6)


def test_scaled_projects_before_it_compares():
    """Query 1 -> (1, 2); keys 1 -> (1, 0) and 2 -> (2, 0). Scores 1/sqrt 2 and 2/sqrt 2, so odds e^(1/sqrt 2)."""
    attention = ScaledDotProductAttention(query_size=1, memory_size=1, attention_size=2)
    attention.query.weight.data = torch.tensor([[1.0], [2.0]])
    attention.key.weight.data = torch.tensor([[1.0], [0.0]])
    _, weights = attention(torch.ones(1, 1, 1), attention.bind(memory_of([[[1.0], [2.0]]], [[True, True]])))
    assert (weights[0, 0, 1] / weights[0, 0, 0]).item() == pytest.approx(math.exp(1 / math.sqrt(2)), rel=1e-5)


def test_additive_is_tanh_of_the_sum():
    """W q = 0.5; U k = 0.5 and -0.5; v = 2 / tanh 1: scores 2 and 0, odds e^2."""
    attention = AdditiveAttention(query_size=1, memory_size=1, attention_size=1)
    attention.query.weight.data = torch.tensor([[0.5]])
    attention.key.weight.data = torch.tensor([[1.0]])
    attention.energy.weight.data = torch.tensor([[2 / math.tanh(1.0)]])
    context, weights = attention(torch.ones(1, 1, 1), attention.bind(memory_of([[[0.5], [-0.5]]], [[True, True]])))
    share = math.exp(2) / (math.exp(2) + 1)
    assert weights[0, 0].tolist() == pytest.approx([share, 1 - share], abs=1e-6)
    assert context.item() == pytest.approx(0.5 * share - 0.5 * (1 - share), abs=1e-6)


def test_additive_sums_over_hidden_units():
    """Two units with v = (1, -3): W q = (0, 0), U k = (k, k); score = tanh k - 3 tanh k = -2 tanh k."""
    attention = AdditiveAttention(query_size=2, memory_size=1, attention_size=2)
    torch.nn.init.zeros_(attention.query.weight)
    torch.nn.init.ones_(attention.key.weight)
    attention.energy.weight.data = torch.tensor([[1.0, -3.0]])
    bound = attention.bind(memory_of([[[0.3], [-0.7]]], [[True, True]]))
    scores = attention.score(torch.ones(1, 1, 2), bound.keys)
    assert scores[0, 0].tolist() == pytest.approx([-2 * math.tanh(0.3), 2 * math.tanh(0.7)], abs=1e-6)


def test_none_hands_every_step_the_final_state():
    attention = NoAttention(query_size=3, memory_size=2)
    memory = memory_of([[[1.0, 2.0], [3.0, 4.0]]], [[True, True]], final=[[5.0, -6.0]])
    context, weights = attention(torch.randn(1, 4, 3), attention.bind(memory))
    assert context.tolist() == [[[5.0, -6.0]] * 4]
    assert weights.tolist() == [[[0.0, 0.0]] * 4]
    assert sum(parameter.numel() for parameter in attention.parameters()) == 0


def test_none_with_the_first_state_alone_hands_out_zeros():
    attention = NoAttention(query_size=3, memory_size=2, every_step=False)
    memory = memory_of([[[1.0, 2.0], [3.0, 4.0]]], [[True, True]], final=[[5.0, -6.0]])
    assert attention(torch.randn(1, 2, 3), attention.bind(memory)).context.tolist() == [[[0.0, 0.0]] * 2]


def test_uniform_is_the_mean_of_real_tokens():
    attention = UniformAttention(query_size=3, memory_size=2)
    memory = memory_of([[[1.0, 2.0], [3.0, 6.0], [9.0, 9.0]]], [[True, True, False]])
    context, weights = attention(torch.randn(1, 1, 3), attention.bind(memory))
    assert context.tolist() == [[[2.0, 4.0]]]
    assert weights.tolist() == [[[0.5, 0.5, 0.0]]]


def test_scaled_agrees_with_torch():
    torch.manual_seed(0)
    attention = ScaledDotProductAttention(query_size=6, memory_size=8, attention_size=5).double()
    memory = Memory(
        torch.randn(3, 7, 8).double(), torch.arange(7) < torch.tensor([[7], [4], [1]]), torch.zeros(3, 8).double()
    )
    queries = torch.randn(3, 2, 6).double()
    expected = torch.nn.functional.scaled_dot_product_attention(
        attention.query(queries), attention.key(memory.states), memory.states, attn_mask=memory.is_token.unsqueeze(1)
    )
    torch.testing.assert_close(attention(queries, attention.bind(memory)).context, expected, rtol=1e-12, atol=1e-12)


def defined_scores(attention, queries, keys):
    """The definition, with all pairs of positions in memory."""
    hidden = torch.tanh(attention.query(queries).unsqueeze(2) + keys.unsqueeze(1))
    return attention.energy(hidden).squeeze(-1)


def additive():
    torch.manual_seed(0)
    return AdditiveAttention(query_size=4, memory_size=5, attention_size=6).double()


def test_additive_scores_and_gradients_are_those_of_the_definition():
    attention = additive()
    queries, keys = torch.randn(3, 4, 4).double().requires_grad_(), torch.randn(3, 5, 6).double().requires_grad_()
    wanted = [queries, keys, attention.query.weight, attention.energy.weight]
    weights = torch.randn(3, 4, 5).double()
    for found, expected in zip(
        *(
            [scores, *torch.autograd.grad(scores, wanted, weights)]
            for scores in (attention.score(queries, keys), defined_scores(attention, queries, keys))
        ),
        strict=True,
    ):
        torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_additive_scores_stay_finite_and_right_far_from_zero(dtype):
    """Every pair of +-0.01, 5, 30 and 100, beyond what e^2x can hold; the true score is within rounding."""
    attention = additive().to(dtype)
    torch.nn.init.eye_(attention.query.weight)
    values = torch.tensor([sign * size for size in (0.01, 5.0, 30.0, 100.0) for sign in (1, -1)], dtype=dtype)
    queries = values[None, :, None].expand(1, 8, 4).clone().requires_grad_()
    keys = values[None, :, None].expand(1, 8, 6).clone().requires_grad_()
    scores = attention.score(queries, keys)
    torch.testing.assert_close(scores, defined_scores(attention, queries, keys), rtol=0, atol=1e-5)
    assert all(grad.isfinite().all() for grad in torch.autograd.grad(scores.sum(), [queries, keys]))


def test_additive_keeps_no_tensor_of_all_pairs_for_the_gradient():
    attention, kept = additive(), []
    queries, keys = torch.randn(3, 40, 4).double(), torch.randn(3, 50, 6).double()
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: kept.append(tensor.numel()) or tensor, lambda t: t):
        attention.score(queries.requires_grad_(), keys)
    assert kept
    assert max(kept) == keys.numel()
