"""Statistics of scores: by hand, against automatic differentiation, and the law of the square root."""

import math

import pytest
import torch

from seq2seq.attention.scaled import ScaledDotProductAttention
from seq2seq.probes.scores import _of_call, score_statistics
from seq2seq.types import Bound
from tests.tiny import MODELS, batch_of, tiny_model, tiny_recipe

BATCH = batch_of([[5, 6, 7], [8, 9], []], [[10, 11], [12, 13, 14], [9]])


def test_deviation_and_entropy_by_hand():
    """Scores ln 3 and 0, and padding: deviation ln(3) / 2; weights 3/4 and 1/4, in shares of ln 2. A gradient of (1, 0) at
    the context, values (1, 0) and (0, 0): at the weights 1 and 0, at the scores 3/16 and -3/16."""
    attention = ScaledDotProductAttention(query_size=1, memory_size=1)
    for linear in (attention.query, attention.key):
        torch.nn.init.ones_(linear.weight)
    keys = torch.tensor([[[math.log(3)], [0.0], [50.0]]])
    values = torch.tensor([[[1.0, 0.0], [0.0, 0.0], [9.0, 9.0]]])
    bound = Bound(keys, values, torch.tensor([[True, True, False]]))
    deviation, entropy, gradient = _of_call(attention, torch.ones(1, 1, 1), bound, torch.tensor([[[1.0, 0.0]]]))
    assert deviation.item() == pytest.approx(math.log(3) / 2)
    assert entropy.item() == pytest.approx((0.75 * math.log(4 / 3) + 0.25 * math.log(4)) / math.log(2))
    assert gradient.item() == pytest.approx(3 / 16 * math.sqrt(2))


@pytest.mark.parametrize("model", MODELS)
def test_the_gradient_is_that_of_automatic_differentiation(model, monkeypatch):
    """A second method: the scores themselves are leaves of the loss."""
    model = tiny_model(model=model)
    found = score_statistics(model, BATCH)
    noted = []
    score = ScaledDotProductAttention.score

    def noting(self, queries, keys):
        noted.append(score(self, queries, keys))
        return noted[-1]

    monkeypatch.setattr(ScaledDotProductAttention, "score", noting)
    logits = model.output(model(BATCH.source, BATCH.inputs).features).flatten(0, 1)
    loss = torch.nn.functional.cross_entropy(logits, BATCH.targets.flatten(), ignore_index=0, reduction="sum")
    gradients = torch.cat(torch.autograd.grad(loss, noted), dim=1)
    counted = torch.tensor([[1, 1, 1, 0], [1, 1, 1, 1], [0, 0, 0, 0]], dtype=torch.bool)
    assert found.gradient == pytest.approx(gradients.norm(dim=-1)[counted].mean().item(), rel=1e-4)
    assert all(weight.grad is None for weight in model.parameters())


def test_without_the_root_scores_are_larger_by_it():
    """d = 8, the same weights: exactly sqrt(8) times the deviation; a sharper softmax has less entropy."""
    scaled = tiny_model()
    recipe = tiny_recipe()["decoder"]
    plain = tiny_model(decoder=recipe | {"attention": recipe["attention"] | {"scale": 1.0}})
    found, other = score_statistics(scaled, BATCH), score_statistics(plain, BATCH)
    # Bottom states, which ask, do not depend on the attention.
    assert other.deviation == pytest.approx(math.sqrt(8) * found.deviation, rel=1e-5)
    assert other.entropy < found.entropy <= 1


@pytest.mark.parametrize("attention", ["none", "initial_state", "multihead"])
def test_an_attention_without_one_score_a_pair_has_no_statistics(attention):
    assert score_statistics(tiny_model(attention), BATCH) is None


def test_uniform_scores_are_all_alike():
    found = score_statistics(tiny_model("uniform"), BATCH)
    assert found.deviation == 0
    assert found.entropy == pytest.approx(1)
