"""What makes training fast changes no value: the whole loss and its gradient against the plain formulas."""

import pytest
import torch

from seq2seq.attention import additive
from seq2seq.models import loss, recurrent
from seq2seq.models.recipe import build
from seq2seq.types import PAD
from tests.tiny import ATTENTIONS, MODELS, batch_of, tiny_recipe
from tests.training.conftest import make_task

BATCH = batch_of([[5, 6, 7, 8], [7], [9, 4]], [[8, 9, 10], [11], [4, 5, 6, 7, 8]])


def plain(monkeypatch):
    """torch's own recurrent layer, additive scores with all pairs in memory, no chunks of the output layer."""
    monkeypatch.setattr(
        recurrent,
        "gru_layer",
        lambda inputs, state, *weights: _first(
            torch.gru(inputs, state[None], weights, True, 1, 0.0, True, False, True)
        ),
    )
    monkeypatch.setattr(
        additive, "additive_scores", lambda queries, keys, weight: (queries[:, :, None] + keys[:, None]).tanh() @ weight
    )


def _first(outcome):
    states, last = outcome
    return states, last[0]


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-9), (torch.float32, 1e-4)])
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("attention", ATTENTIONS)
def test_loss_and_gradient_are_those_of_the_plain_formula(make_data, monkeypatch, attention, model, dtype, tolerance):
    task = make_task(make_data(), label_smoothing=0.1)
    task.model = build(tiny_recipe(attention, model=model), **task.tokenizers.sizes()).to(dtype)
    parameters = [parameter for parameter in task.parameters() if parameter.requires_grad]
    with monkeypatch.context() as patched:
        patched.setattr(loss, "LARGEST", 2 * task.model.output.out_features)  # two rows at a time
        found = task.loss(BATCH)[0]
        of_found = torch.autograd.grad(found, parameters, allow_unused=True)
    plain(monkeypatch)
    scores = task.model.output(task.model(BATCH.source, BATCH.inputs).features).log_softmax(-1)
    of_tokens = 0.9 * scores.gather(2, BATCH.targets.unsqueeze(2)).squeeze(2) + 0.1 * scores.mean(-1)
    wanted = -(of_tokens * (BATCH.targets != PAD)).sum() / BATCH.loss_denominator
    torch.testing.assert_close(found, wanted, rtol=0, atol=tolerance)
    for one, other in zip(of_found, torch.autograd.grad(wanted, parameters, allow_unused=True), strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            torch.testing.assert_close(one, other, rtol=0, atol=tolerance)
