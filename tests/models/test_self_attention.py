"""Encoders that look at themselves: values by hand, padding, order, and what the decoders need of them."""

import math

import pytest
import torch

from seq2seq.attention.none import NoAttention
from seq2seq.attention.scaled import ScaledDotProductAttention
from seq2seq.attention.uniform import UniformAttention
from seq2seq.errors import ConfigError
from seq2seq.models.recipe import build
from seq2seq.models.self_attention import SelfAttentionEncoder, SelfAttentionLayer, sinusoids
from seq2seq.types import BOS
from tests.tiny import ATTENTIONS, VOCABULARY, padded, tiny_recipe

SELF_ATTENTION = "seq2seq.models.self_attention."
IS_TOKEN = torch.tensor([[True] * 4, [True, True, False, False]])


def recipe_of(encoder, attention="multihead"):
    recipe = tiny_recipe(attention="scaled")
    own = tiny_recipe(attention)["decoder"]["attention"]
    outer = {"_partial_": True, "attention": own, "layers": 2}
    if encoder == "self_attention":
        recipe["encoder"] = outer | {"_target_": SELF_ATTENTION + "SelfAttentionEncoder", "hidden_size": 8}
    else:
        recipe["encoder"] = outer | {
            "_target_": SELF_ATTENTION + "SelfAttendedEncoder",
            "recurrent": recipe["encoder"],
        }
    return recipe


def model_of(encoder, attention="multihead"):
    torch.manual_seed(0)
    return build(
        recipe_of(encoder, attention), source_vocabulary=VOCABULARY, target_vocabulary=VOCABULARY, joint=True
    ).eval()


def test_sinusoids_by_hand():
    """Size 4: rates 1 and 1/100; sines, then cosines."""
    expected = [[0, 0, 1, 1], [math.sin(1), math.sin(0.01), math.cos(1), math.cos(0.01)]]
    torch.testing.assert_close(sinusoids(2, 4), torch.tensor(expected, dtype=torch.float32))


def test_a_layer_adds_what_its_parts_say():
    """Uniform attention over the normalised states (1, -1) and (-1, 1) reads 0; the network's last layer says (5, 7)."""
    layer = SelfAttentionLayer(2, UniformAttention, feed_forward=1, dropout=0.0)
    for linear in (layer.feed_forward[0], layer.feed_forward[2]):
        torch.nn.init.zeros_(linear.weight)
    layer.feed_forward[2].bias.data = torch.tensor([5.0, 7.0])
    states = torch.tensor([[[3.0, 1.0], [2.0, 6.0]]])
    found = layer(states, torch.ones(1, 2, dtype=torch.bool))
    torch.testing.assert_close(found, torch.tensor([[[8.0, 8.0], [7.0, 13.0]]]), rtol=0, atol=1e-4)


@pytest.mark.parametrize("attention", ATTENTIONS)
@pytest.mark.parametrize("encoder", ["self_attention", "rnn_self_attention"])
def test_padding_changes_nothing_and_the_fixed_vector_is_the_state_of_eos(encoder, attention):
    model = model_of(encoder, attention)
    source, inputs = padded([[5, 6, 3], [8, 9, 10, 11, 12, 3]]), padded([[BOS, 9], [BOS, 9, 10, 11]])
    memory = model.encode(source)
    assert (memory.states[0, 3:] == 0).all()
    assert torch.equal(memory.final, torch.stack((memory.states[0, 2], memory.states[1, 5])))
    together, alone = model(source, inputs), model(source[:1, :3], inputs[:1, :2])
    torch.testing.assert_close(together.features[:1, :2], alone.features)


def test_only_the_sinusoids_know_the_order():
    encoder = SelfAttentionEncoder(6, 8, ScaledDotProductAttention)
    torch.manual_seed(1)
    embedded = torch.randn(1, 4, 6)
    everywhere = torch.ones(1, 4, dtype=torch.bool)
    turned = embedded[:, [1, 0, 2, 3]]
    assert not torch.allclose(encoder(embedded, everywhere).final, encoder(turned, everywhere).final, atol=1e-3)
    without = encoder.stack(encoder.inputs(embedded), everywhere).final
    torch.testing.assert_close(encoder.stack(encoder.inputs(turned), everywhere).final, without)


def test_every_token_is_one_step_from_every_other():
    """The gradient of EOS's state reaches all tokens through a single layer; with no attention it reaches none of them."""
    everywhere = torch.ones(1, 5, dtype=torch.bool)
    for attention, reached in ((ScaledDotProductAttention, 5), (NoAttention, 1)):
        torch.manual_seed(0)
        embedded = torch.randn(1, 5, 6, requires_grad=True)
        encoder = SelfAttentionEncoder(6, 8, attention)
        weight = torch.randn(8)
        (gradient,) = torch.autograd.grad((encoder(embedded, everywhere).final * weight).sum(), embedded)
        assert (gradient[0].norm(dim=-1) > 0).sum() == reached
        assert encoder.distances(5).tolist() == [4, 3, 2, 1, 0]


@pytest.mark.parametrize("encoder", ["self_attention", "rnn_self_attention"])
def test_every_weight_learns(encoder):
    model = model_of(encoder).train()
    features = model(padded([[5, 6, 7, 3], [8, 3]]), padded([[BOS, 9, 10], [BOS, 13]])).features
    model.output(features).logsumexp(dim=-1).sum().backward()
    assert [name for name, weight in model.named_parameters() if weight.grad is None or not weight.grad.any()] == []


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"hidden_size": 7}, "must be even, found 7"),
        ({"layers": 0}, "must be at least 1, found 0"),
        ({"feed_forward": 0}, r"encoder\.feed_forward must be at least 1, found 0"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(settings, words):
    with pytest.raises(ConfigError, match=words):
        SelfAttentionEncoder(**{"input_size": 6, "hidden_size": 8, "attention": UniformAttention} | settings)


def test_the_encoder_s_own_attention_is_counted_as_the_encoder():
    counts = model_of("self_attention").parameter_counts()
    assert counts["attention"] == 128
    assert counts["encoder"] > 2 * 4 * 64


@pytest.mark.parametrize("encoder", ["self_attention", "rnn_self_attention"])
def test_distances_are_those_to_eos(encoder):
    assert model_of(encoder).encoder.distances(4).tolist() == [3, 2, 1, 0]


def test_positions_stay_apart_in_half_precision():
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.bfloat16)
    try:
        found = sinusoids(400, 8)
    finally:
        torch.set_default_dtype(before)
    assert found.dtype == torch.float32
    assert len({tuple(row) for row in found.tolist()}) == 400
