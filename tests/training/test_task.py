"""The Lightning module: its loss by hand, its repeatability, that it learns every attention's way."""

import math

import pytest
import torch
from lightning import Callback

from seq2seq.errors import ConfigError
from seq2seq.types import PAD
from tests.tiny import ATTENTIONS, batch_of
from tests.training.conftest import make_task, make_trainer


class Losses(Callback):
    def __init__(self):
        self.values = []

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        self.values.append(outputs["loss"].item())


def losses(data, folder, attention):
    callback = Losses()
    make_trainer(folder, 2, [callback]).fit(make_task(data, attention), data)
    return callback.values


@pytest.mark.parametrize("attention", ATTENTIONS)
def test_the_same_seed_gives_the_same_losses_twice(make_data, tmp_path, attention):
    first = losses(make_data(), tmp_path, attention)
    assert len(first) >= 6
    assert losses(make_data(), tmp_path, attention) == first


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_loss_is_summed_over_real_tokens_and_divided_as_the_plan_says(make_data, smoothing):
    task = make_task(make_data(), label_smoothing=smoothing).eval()
    batch = batch_of([[5, 6], [7]], [[8, 9, 10], [11]])._replace(loss_denominator=torch.tensor(12.0))
    log_probabilities = task.model.output(task.model(batch.source, batch.inputs).features).log_softmax(-1)
    total = 0.0
    for row, column in (batch.targets != PAD).nonzero().tolist():
        scores = log_probabilities[row, column]
        total -= (1 - smoothing) * scores[batch.targets[row, column]].item() + smoothing * scores.mean().item()
    loss, per_token = task.loss(batch)
    assert loss.item() == pytest.approx(total / 12, rel=1e-5)
    assert per_token.item() == pytest.approx(total / 6, rel=1e-5)


def test_an_untrained_model_is_near_the_uniform_distribution(make_data):
    data = make_data()
    batch = batch_of([[5, 6], [7]], [[8, 9, 10], [11]])
    per_token = make_task(data).loss(batch)[1].item()
    assert per_token == pytest.approx(math.log(data.tokenizers.target.vocabulary_size), abs=0.5)


@pytest.mark.parametrize("attention", ATTENTIONS)
def test_learns_to_translate_eight_pairs_exactly(make_data, attention):
    task = make_task(make_data(), attention)
    batch = batch_of(
        [[4 + (place + step) % 8 for step in range(1 + place % 4)] for place in range(8)],
        [[4 + (3 * place + step) % 9 for step in range(1 + (place + 1) % 4)] for place in range(8)],
    )
    optimizer = torch.optim.Adam(task.parameters(), lr=0.02)
    for _ in range(300):
        task.loss(batch)[0].backward()
        optimizer.step()
        optimizer.zero_grad()
    found = task.search(task.model.eval(), batch.source)
    assert [hypothesis.tokens for hypothesis in found] == [[t for t in row if t > 3] for row in batch.targets.tolist()]


def test_validation_logs_scores_of_free_decoding(make_data, tmp_path):
    data = make_data()
    trainer = make_trainer(tmp_path)
    trainer.fit(make_task(data), data)
    assert set(trainer.callback_metrics) >= {"train/loss", "valid/loss", "valid/bleu", "valid/chrf"}
    assert 0 <= trainer.callback_metrics["valid/bleu"] <= 100


def test_validation_loss_is_the_mean_over_tokens_whatever_the_batches(make_data, tmp_path):
    found = []
    for sentences in (1, 5, 16):
        data = make_data(evaluation_max_sentences=sentences)
        trainer = make_trainer(tmp_path)
        trainer.validate(make_task(data), data, verbose=False)
        found.append({name: float(value) for name, value in trainer.callback_metrics.items()})
    assert found[1] == pytest.approx(found[0], abs=1e-4)
    assert found[2] == pytest.approx(found[0], abs=1e-4)


def test_label_smoothing_out_of_range_is_refused(make_data):
    with pytest.raises(ConfigError, match="label_smoothing"):
        make_task(make_data(), label_smoothing=1.0)
