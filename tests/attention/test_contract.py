"""What every attention of ``conf/attention`` has to keep, found by globbing, so that a new one is held to it at once."""

import functools
from pathlib import Path

import pytest
import torch
import yaml

from seq2seq.attention.base import Attention, build_attention, masked_softmax
from seq2seq.attention.multihead import MultiHeadAttention
from seq2seq.attention.none import NoAttention
from seq2seq.attention.uniform import UniformAttention
from seq2seq.errors import ConfigError
from seq2seq.models.recipe import build
from seq2seq.types import Memory

CONFIGS = sorted((Path(__file__).parents[2] / "conf" / "attention").glob("*.yaml"))
B, T, S, D, C = 3, 4, 6, 8, 10
LENGTHS = torch.tensor([6, 3, 1])


@pytest.fixture(params=[torch.float32, torch.bfloat16], ids=["fp32", "bf16"])
def dtype(request):
    return request.param


@pytest.fixture(params=CONFIGS, ids=lambda path: path.stem)
def attention(request, dtype):
    torch.manual_seed(1)
    recipe = yaml.safe_load(request.param.read_text())
    return build_attention(build(recipe, key="attention"), query_size=D, memory_size=C).to(dtype).eval()


@pytest.fixture
def queries(dtype):
    torch.manual_seed(2)
    return torch.randn(B, T, D).to(dtype)


@pytest.fixture
def memory(dtype):
    torch.manual_seed(3)
    states, final = torch.randn(B, S, C).to(dtype), torch.randn(B, C).to(dtype)
    return Memory(states, torch.arange(S) < LENGTHS.unsqueeze(1), final)


def reads_tokens(attention):
    return not isinstance(attention, NoAttention)


def test_rows_sum_to_one_and_padding_weighs_exactly_nothing(attention, queries, memory):
    weights = attention(queries, attention.bind(memory)).weights
    assert weights.shape == (B, T, S)
    assert (weights.masked_select(~memory.is_token.unsqueeze(1)) == 0).all()
    if reads_tokens(attention):
        # Three places of bfloat16 in a sum of six.
        tolerance = 1e-6 if weights.dtype == torch.float32 else 1e-2
        torch.testing.assert_close(weights.float().sum(-1), torch.ones(B, T), rtol=0, atol=tolerance)


def test_what_stands_in_padding_does_not_matter(attention, queries, memory):
    expected = attention(queries, attention.bind(memory))
    loud = memory._replace(states=memory.states.masked_fill(~memory.is_token.unsqueeze(-1), 1e4))
    found = attention(queries, attention.bind(loud))
    torch.testing.assert_close(found.context, expected.context, rtol=0, atol=0)


def test_more_padding_changes_nothing(attention, queries, memory):
    wider = Memory(
        torch.cat((memory.states, torch.full((B, 5, C), 7.0).to(memory.states)), dim=1),
        torch.cat((memory.is_token, torch.zeros(B, 5, dtype=torch.bool)), dim=1),
        memory.final,
    )
    expected = attention(queries, attention.bind(memory))
    found = attention(queries, attention.bind(wider))
    torch.testing.assert_close(found.context, expected.context)
    torch.testing.assert_close(found.weights[..., :S], expected.weights)


def test_all_queries_at_once_equal_one_at_a_time(attention, queries, memory):
    bound = attention.bind(memory)
    expected = attention(queries, bound)
    for step in range(T):
        found = attention(queries[:, step : step + 1], bound)
        torch.testing.assert_close(found.context[:, 0], expected.context[:, step])
        torch.testing.assert_close(found.weights[:, 0], expected.weights[:, step])


def test_binding_is_pure(attention, queries, memory):
    first, second = attention.bind(memory), attention.bind(memory)
    attention(queries, first)
    attention.bind(memory._replace(states=memory.states + 1, final=memory.final + 1))
    for one, other in zip(first, second, strict=True):
        assert torch.equal(one, other)
    assert torch.equal(attention(queries, first).context, attention(queries, second).context)


def test_a_row_without_tokens_is_finite_forward_and_backward(attention, queries, memory):
    states, queries = memory.states.requires_grad_(), queries.requires_grad_()
    empty = Memory(states, memory.is_token & torch.tensor([[True], [False], [True]]), memory.final)
    context, weights = attention(queries, attention.bind(empty))
    assert (weights[1] == 0).all()
    if reads_tokens(attention):
        assert (context[1] == 0).all()
        context.sum().backward()
        assert states.grad.isfinite().all()
        assert queries.grad is None or queries.grad.isfinite().all()


def test_gradients_reach_query_and_memory(attention, queries, memory):
    if not reads_tokens(attention):
        pytest.skip("no attention reads neither the query nor the states")
    states, queries = memory.states.requires_grad_(), queries.requires_grad_()
    context = attention(queries, attention.bind(memory)).context
    (context * torch.randn(context.shape).to(context)).sum().backward()
    assert (states.grad.norm(dim=-1)[memory.is_token] > 0).all()
    assert (states.grad[~memory.is_token] == 0).all()
    if isinstance(attention, UniformAttention):
        assert queries.grad is None or not queries.grad.any()
    else:
        # With a single token to read, there is nothing to choose, and so nothing that the query could change.
        assert (queries.grad[:2].norm(dim=-1) > 0).all()


def test_one_token_gets_all_the_weight(attention, queries, memory):
    if not reads_tokens(attention):
        pytest.skip("no attention gives no weight to any token")
    context, weights = attention(queries, attention.bind(memory))
    assert (weights[2, :, 0] == 1).all()
    value = memory.states[2, :1]
    if isinstance(attention, MultiHeadAttention):
        value = attention.output(attention.value(value))
    torch.testing.assert_close(context[2], value.expand(T, C))


@pytest.mark.parametrize(
    "config", [path for path in CONFIGS if "dropout:" in path.read_text()], ids=lambda path: path.stem
)
def test_dropout_acts_in_training_only(config, memory, queries):
    recipe = yaml.safe_load(config.read_text()) | {"dropout": 0.5}
    attention = build_attention(build(recipe), query_size=D, memory_size=C).to(queries.dtype)
    torch.manual_seed(4)
    trained = attention(queries, attention.bind(memory))
    quiet = attention.eval()(queries, attention.bind(memory))
    assert not torch.allclose(trained.context, quiet.context)
    torch.testing.assert_close(trained.weights, quiet.weights)


def test_masked_softmax_by_hand():
    scores = torch.tensor([[[0.0, torch.log(torch.tensor(4.0)).item(), 100.0]]])
    weights = masked_softmax(scores, torch.tensor([[True, True, False]]))
    torch.testing.assert_close(weights, torch.tensor([[[0.2, 0.8, 0.0]]]))


def test_dropout_out_of_range_is_refused():
    with pytest.raises(ConfigError, match=r"attention\.dropout=1\.5 is not possible"):
        UniformAttention(query_size=2, memory_size=2, dropout=1.5)


def test_a_class_that_is_no_attention_is_refused():
    builder = build({"_target_": "torch.nn.Bilinear", "_partial_": True, "in1_features": 1, "in2_features": 1})
    with pytest.raises(ConfigError, match="Attention"):
        build_attention(lambda query_size, memory_size: builder(out_features=1), query_size=1, memory_size=1)


class Summed(Attention):
    def score(self, queries, keys):
        return queries.sum(-1)


class Silent(Attention):
    pass


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (Summed, r"encoder\.attention\._target_ .*Summed: score must return one number .* returned \[1, 2\]"),
        (Silent, r"encoder\.attention\._target_ .*Silent does not say how it scores"),
    ],
)
def test_scores_of_another_shape_are_refused(kind, words):
    with pytest.raises(ConfigError, match=words):
        build_attention(kind, D, C, "encoder.attention")


def test_sizes_that_others_tell_cannot_be_set():
    with pytest.raises(ConfigError, match=r"attention\.query_size is told by another part"):
        build_attention(functools.partial(UniformAttention, query_size=3), D, C)
