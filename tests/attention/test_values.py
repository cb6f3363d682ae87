"""Attention values worked out by hand, before the code ran."""

import math

import pytest
import torch

from seq2seq.attention import additive as additive_module
from seq2seq.attention.additive import AdditiveAttention, additive_scores
from seq2seq.attention.concat import ConcatAttention
from seq2seq.attention.dot import DotProductAttention
from seq2seq.attention.general import GeneralAttention
from seq2seq.attention.location import LocationAttention
from seq2seq.attention.multihead import MultiHeadAttention
from seq2seq.attention.none import NoAttention
from seq2seq.attention.scaled import ScaledDotProductAttention
from seq2seq.attention.uniform import UniformAttention
from seq2seq.errors import ConfigError
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


def test_a_scale_of_one_leaves_the_root_out():
    """d = 4: the scores are exactly sqrt(4) times as large."""
    torch.manual_seed(0)
    attention, twin = (ScaledDotProductAttention(query_size=4, memory_size=4, scale=scale) for scale in (None, 1.0))
    twin.load_state_dict(attention.state_dict())
    queries, keys = torch.randn(2, 3, 4), torch.randn(2, 5, 4)
    torch.testing.assert_close(twin.score(queries, keys), 2 * attention.score(queries, keys))


def test_scaled_agrees_with_the_attention_of_torch():
    torch.manual_seed(0)
    attention = ScaledDotProductAttention(query_size=6, memory_size=5, attention_size=4)
    memory = memory_of(torch.randn(2, 7, 5).tolist(), (torch.arange(7) < torch.tensor([[7], [3]])).tolist())
    queries = torch.randn(2, 3, 6)
    expected = torch.nn.functional.scaled_dot_product_attention(
        attention.query(queries), attention.key(memory.states), memory.states, attn_mask=memory.is_token.unsqueeze(1)
    )
    torch.testing.assert_close(attention(queries, attention.bind(memory)).context, expected)


def test_multihead_agrees_with_the_attention_of_torch():
    torch.manual_seed(0)
    attention = MultiHeadAttention(query_size=8, memory_size=8, heads=2)
    theirs = torch.nn.MultiheadAttention(8, 2, bias=False, batch_first=True)
    theirs.in_proj_weight.data = torch.cat([part.weight for part in (attention.query, attention.key, attention.value)])
    theirs.out_proj.weight.data = attention.output.weight.data
    memory = memory_of(torch.randn(2, 7, 8).tolist(), (torch.arange(7) < torch.tensor([[7], [3]])).tolist())
    queries, bound = torch.randn(2, 3, 8), attention.bind(memory)
    context, heads = theirs(
        queries, memory.states, memory.states, key_padding_mask=~memory.is_token, average_attn_weights=False
    )
    torch.testing.assert_close(attention(queries, bound).context, context)
    torch.testing.assert_close(attention.head_weights(queries, bound), heads)


def test_general_with_the_identity_is_dot():
    attention, twin = (kind(query_size=3, memory_size=3) for kind in (GeneralAttention, DotProductAttention))
    attention.key.weight.data = 3**0.5 * torch.eye(3)
    memory = memory_of([[[3.0, 0.0, 1.0], [0.0, 1.0, -2.0]]], [[True, True]])
    queries = torch.tensor([[[1.0, 2.0, 0.5]]])
    expected = twin(queries, twin.bind(memory))
    torch.testing.assert_close(attention(queries, attention.bind(memory)), expected)


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


def test_additive_scores_agree_with_finite_differences():
    torch.manual_seed(0)
    sides = [torch.randn(*shape).double().requires_grad_() for shape in ((2, 3, 4), (2, 5, 4), (4,))]
    assert torch.autograd.gradcheck(additive_scores, sides)


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


TWO_KEYS = ([[[3.0, 0.0], [0.0, 1.0]]], [[True, True]])


def test_dot_is_the_inner_product():
    """q = (1, 2), keys (3, 0) and (0, 1): 3 and 2."""
    attention = DotProductAttention(query_size=2, memory_size=2)
    bound = attention.bind(memory_of(*TWO_KEYS))
    assert attention.score(torch.tensor([[[1.0, 2.0]]]), bound.keys)[0, 0].tolist() == [3.0, 2.0]
    assert list(attention.parameters()) == []


def test_dot_projects_states_of_another_size():
    """U = (1, 1; 0, 2): keys (3, 0) and (1, 2); q = (1, 2): 3 and 5."""
    attention = DotProductAttention(query_size=2, memory_size=3)
    attention.key.weight.data = torch.tensor([[1.0, 1.0, 0.0], [0.0, 2.0, 0.0]])
    bound = attention.bind(memory_of([[[3.0, 0.0, 9.0], [0.0, 1.0, 9.0]]], [[True, True]]))
    assert attention.score(torch.tensor([[[1.0, 2.0]]]), bound.keys)[0, 0].tolist() == [3.0, 5.0]


def test_general_is_bilinear():
    """W = (1, 2; 3, 4), q = (1, -1): q W = (-2, -2); keys (3, 0) and (0, 1): -6 and -2."""
    attention = GeneralAttention(query_size=2, memory_size=2)
    attention.key.weight.data = 2**0.5 * torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    bound = attention.bind(memory_of(*TWO_KEYS))
    scores = attention.score(torch.tensor([[[1.0, -1.0]]]), bound.keys)
    torch.testing.assert_close(scores[0, 0], torch.tensor([-6.0, -2.0]))


def test_general_starts_as_the_plain_product_would():
    """From the same random numbers the scores are those of a bilinear map with torch's usual first weights."""
    torch.manual_seed(0)
    attention = GeneralAttention(query_size=4, memory_size=3)
    torch.manual_seed(0)
    plain = torch.nn.Linear(3, 4, bias=False)
    states = torch.randn(1, 5, 3)
    torch.testing.assert_close(attention.project_keys(states), plain(states))


def test_concat_by_hand_and_as_additive_attention():
    """W = (1, 0.5, -1), v = 2: q = 1 and keys (3, 0), (0, 1): 2 tanh 2.5 and 2 tanh 0."""
    attention = ConcatAttention(query_size=1, memory_size=2, attention_size=1)
    attention.hidden.weight.data = torch.tensor([[1.0, 0.5, -1.0]])
    attention.energy.weight.data = torch.tensor([[2.0]])
    bound = attention.bind(memory_of(*TWO_KEYS))
    scores = attention.score(torch.ones(1, 1, 1), bound.keys)
    assert scores[0, 0].tolist() == pytest.approx([2 * math.tanh(2.5), 0.0], abs=1e-6)
    twin = AdditiveAttention(query_size=1, memory_size=2, attention_size=1)
    twin.query.weight.data, twin.key.weight.data = attention.hidden.weight.data.split((1, 2), dim=1)
    twin.energy.weight.data = attention.energy.weight.data
    assert torch.equal(twin.score(torch.ones(1, 1, 1), twin.bind(memory_of(*TWO_KEYS)).keys), scores)


def test_location_reads_positions_whatever_stands_there():
    """W q = (ln 1, ln 3, ln 100): with two tokens, weights 1/4 and 3/4, for any keys."""
    attention = LocationAttention(query_size=1, memory_size=2, max_positions=3)
    attention.position.weight.data = torch.log(torch.tensor([[1.0], [3.0], [100.0]]))
    for states in ([[1.0, 2.0], [3.0, 4.0]], [[-5.0, 0.0], [0.0, 7.0]]):
        memory = memory_of([[*states, [9.0, 9.0]]], [[True, True, False]])
        weights = attention(torch.ones(1, 1, 1), attention.bind(memory)).weights
        assert weights[0, 0].tolist() == pytest.approx([0.25, 0.75, 0])


def test_location_with_content_adds_what_its_position_makes_of_the_key():
    """Positions map keys by (1, 1) and (0, 2); keys (3, 0) and (0, 1) add 3 and 2 to W q = (5, 7)."""
    attention = LocationAttention(query_size=1, memory_size=2, max_positions=2, content=True)
    attention.position.weight.data = torch.tensor([[5.0], [7.0]])
    attention.key.weight.data = torch.tensor([[1.0, 1.0], [0.0, 2.0]])
    bound = attention.bind(memory_of(*TWO_KEYS))
    assert attention.score(torch.ones(1, 1, 1), bound.keys)[0, 0].tolist() == [8.0, 9.0]


def test_location_refuses_a_source_that_is_too_long():
    attention = LocationAttention(query_size=1, memory_size=2, max_positions=1)
    with pytest.raises(ConfigError, match=r"max_positions=1 positions, and a source has 2 tokens: set"):
        attention.bind(memory_of(*TWO_KEYS))


def multihead(heads):
    attention = MultiHeadAttention(query_size=2, memory_size=2, heads=heads)
    for linear in (attention.query, attention.key, attention.value, attention.output):
        set_identity(linear)
    return attention


def test_one_head_without_projections_is_scaled_attention():
    attention, twin = multihead(1), ScaledDotProductAttention(query_size=2, memory_size=2)
    set_identity(twin.query)
    set_identity(twin.key)
    queries, memory = torch.tensor([[[1.0, 2.0], [0.5, -1.0]]]), memory_of(*TWO_KEYS)
    for found, expected in zip(
        attention(queries, attention.bind(memory)), twin(queries, twin.bind(memory)), strict=True
    ):
        torch.testing.assert_close(found, expected)


def test_each_head_looks_with_its_own_part():
    """q = (ln 3 / 3, 2 ln 2), keys (3, 0), (0, 1), d = 1: scores (ln 3, 0) and (0, ln 4), weights 3/4, 1/4 and 1/5, 4/5."""
    attention, memory = multihead(2), memory_of(*TWO_KEYS)
    queries = torch.tensor([[[math.log(3) / 3, 2 * math.log(2)]]])
    bound = attention.bind(memory)
    heads = attention.head_weights(queries, bound)[0, :, 0]
    torch.testing.assert_close(heads, torch.tensor([[0.75, 0.25], [0.2, 0.8]]))
    context, weights = attention(queries, bound)
    torch.testing.assert_close(weights[0, 0], torch.tensor([0.475, 0.525]))
    # The first head reads the first number of each value, the second the second.
    torch.testing.assert_close(context[0, 0], torch.tensor([0.75 * 3, 0.8]))


def test_heads_must_divide_their_size():
    with pytest.raises(
        ConfigError, match=r"heads=3 .*must divide the size they share, found 8: change attention\.heads"
    ):
        MultiHeadAttention(query_size=8, memory_size=8, heads=3)


def test_additive_keys_are_raised_once_a_search(monkeypatch):
    calls, attention = [], additive()
    real = additive_module._powers
    monkeypatch.setattr(additive_module, "_powers", lambda side: calls.append(side.shape[1]) or real(side))
    queries = torch.randn(3, 4, 4).double()
    with torch.inference_mode():
        keys = attention.project_keys(torch.randn(3, 5, 5).double())
        stepwise = torch.cat([attention.score(queries[:, at : at + 1], keys) for at in range(4)], dim=1)
    assert calls == [1, 5, 1, 1, 1]
    torch.testing.assert_close(stepwise, defined_scores(attention, queries, keys.clone()), rtol=1e-12, atol=1e-12)
