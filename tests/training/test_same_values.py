"""What makes training fast changes no value: the whole loss and its gradient against the plain formulas."""

from contextlib import nullcontext

import pytest
import torch

from seq2seq.cli.bench_choices import all_pairs, all_positions, exact_factors, packed, torch_gru
from seq2seq.models import loss
from seq2seq.models.recipe import build
from seq2seq.types import PAD
from tests.tiny import ATTENTIONS, MODELS, batch_of, tiny_recipe
from tests.training.conftest import make_task

BATCH = batch_of([[5, 6, 7, 8], [7], [9, 4]], [[8, 9, 10], [11], [4, 5, 6, 7, 8]])


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
    with torch_gru(task), all_pairs(task):
        scores = task.model.output(task.model(BATCH.source, BATCH.inputs).features).log_softmax(-1)
    of_tokens = 0.9 * scores.gather(2, BATCH.targets.unsqueeze(2)).squeeze(2) + 0.1 * scores.mean(-1)
    wanted = -(of_tokens * (BATCH.targets != PAD)).sum() / BATCH.loss_denominator
    torch.testing.assert_close(found, wanted, rtol=0, atol=tolerance)
    for one, other in zip(of_found, torch.autograd.grad(wanted, parameters, allow_unused=True), strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            torch.testing.assert_close(one, other, rtol=0, atol=tolerance)


@pytest.mark.parametrize("without", [torch_gru, packed, all_pairs, all_positions, exact_factors])
def test_what_the_benchmark_does_without_changes_no_value(make_data, without):
    """What it times are two ways to one loss and one gradient."""
    task = make_task(make_data(), "additive", label_smoothing=0.1).double()
    parameters = list(task.model.parameters())
    outcomes = []
    for way in (nullcontext(), without(task)):
        with way:
            found = task.loss(BATCH)[0]
            outcomes.append([found, *torch.autograd.grad(found, parameters)])
    for one, other in zip(*outcomes, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-9)
