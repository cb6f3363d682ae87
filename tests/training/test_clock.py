"""What the clock logs beside the scores of a validation."""

import csv

import pytest
from lightning.pytorch.callbacks import ModelCheckpoint

from seq2seq.training.callbacks.clock import Clock
from seq2seq.training.callbacks.start import Start
from seq2seq.training.loggers import RunCSVLogger
from tests.training.conftest import make_task, make_trainer


def validations(folder):
    with open(folder / "metrics.csv", newline="") as file:
        return [row for row in csv.DictReader(file) if row["valid/bleu"]]


def trainer_with(folder, epochs, clock):
    last = ModelCheckpoint(folder, filename="last", enable_version_counter=False)
    return make_trainer(
        folder, epochs, [clock, last], logger=RunCSVLogger(str(folder)), enable_checkpointing=True, log_every_n_steps=1
    )


def test_tokens_and_minutes_stand_in_the_row_of_the_scores(make_data, tmp_path):
    data, clock = make_data(), Clock()
    trainer_with(tmp_path, 3, clock).fit(make_task(data), data)
    rows = validations(tmp_path)
    tokens = int(data.store.split("train").lengths[:, 1].sum())
    assert [float(row["train/tokens_seen"]) for row in rows] == [tokens, 2 * tokens, 3 * tokens]
    minutes = [float(row["train/minutes"]) for row in rows]
    assert 0 < minutes[0] < minutes[1] < minutes[2] <= clock.seconds / 60


def test_a_resumed_training_counts_on(make_data, tmp_path):
    data = make_data()
    trainer_with(tmp_path, 1, Clock()).fit(make_task(data), data)
    trainer_with(tmp_path, 2, Clock()).fit(make_task(data), data, ckpt_path=tmp_path / "last.ckpt", weights_only=True)
    first, second = validations(tmp_path)
    assert float(second["train/tokens_seen"]) == pytest.approx(2 * float(first["train/tokens_seen"]))
    assert float(second["train/minutes"]) > float(first["train/minutes"])


def test_a_validation_outside_of_training_says_nothing_of_it(make_data, tmp_path):
    data = make_data()
    trainer = make_trainer(tmp_path, 1, [Clock()])
    trainer.validate(make_task(data), data, verbose=False)
    assert not {"train/tokens_seen", "train/minutes"} & set(trainer.callback_metrics)


def test_a_test_of_earlier_weights_does_not_turn_the_clock_back(make_data, tmp_path):
    """The best weights are those after the first of three epochs; the training had three all the same."""
    data, clock, start = make_data(), Clock(), Start()
    early = ModelCheckpoint(tmp_path, filename="early-{epoch}", save_top_k=-1, enable_version_counter=False)
    task = make_task(data)
    trainer = make_trainer(tmp_path, 3, [clock, start, early], enable_checkpointing=True)
    trainer.fit(task, data)
    tokens, seconds, scores = clock.tokens, clock.seconds, start.scores
    trainer.test(task, data, ckpt_path=tmp_path / "early-epoch=0.ckpt", weights_only=True, verbose=False)
    assert clock.tokens == tokens == 3 * data.store.split("train").lengths[:, 1].sum()
    assert clock.seconds == seconds
    assert start.scores == scores is not None
