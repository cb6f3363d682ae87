"""Every head's weights and the encoder's, read from a model whose attention is known."""

import pytest
import torch

from seq2seq.decoding.greedy import Greedy
from seq2seq.probes.heads import looks
from seq2seq.types import BOS
from tests.models.test_self_attention import model_of
from tests.tiny import MODELS, tiny_model

SOURCE = torch.tensor([5, 6, 7, 3])


@pytest.mark.parametrize("model", MODELS)
def test_the_mean_over_heads_is_what_the_search_saw(model):
    model = tiny_model("multihead", model=model)
    hypothesis = Greedy()(model, SOURCE.unsqueeze(0), with_weights=True)[0]
    found = looks(model, SOURCE, torch.tensor([BOS, *hypothesis.tokens]))
    assert found.encoder == ()
    heads = found.heads[:, : len(hypothesis.weights)]
    assert heads.shape == (4, len(hypothesis.weights), 4)
    torch.testing.assert_close(heads.mean(dim=0), hypothesis.weights)
    assert not torch.allclose(heads[0], heads[1])


def test_an_attention_of_one_head_has_nothing_to_add():
    assert looks(tiny_model(), SOURCE, torch.tensor([BOS, 9])) == (None, ())


@pytest.mark.parametrize(("attention", "heads"), [("multihead", 4), ("uniform", 1)])
def test_the_encoder_says_where_it_looks(attention, heads):
    found = looks(model_of("self_attention", attention), SOURCE, torch.tensor([BOS, 9])).encoder
    assert len(found) == 2
    for layer in found:
        assert layer.shape == (heads, 4, 4)
        torch.testing.assert_close(layer.sum(dim=-1), torch.ones(heads, 4))
        assert torch.allclose(layer, torch.full_like(layer, 0.25)) == (attention == "uniform")
