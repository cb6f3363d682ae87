"""A training that a signal stops in any batch ends, once it is resumed, as if nobody had: weights and records."""

import csv
import os
import signal

import pytest
import torch
from lightning.pytorch.callbacks import Callback, EarlyStopping, ModelCheckpoint

from seq2seq.training.callbacks.clock import Clock
from seq2seq.training.callbacks.interruption import Interruption
from seq2seq.training.callbacks.randomness import Randomness
from seq2seq.training.loggers import RunCSVLogger, forget_from
from seq2seq.training.saving import Periodic
from tests.training.conftest import make_task, make_trainer

EPOCHS, BATCHES = 3, 4


class Stop(Callback):
    """Sends a signal in a batch, counted from 1 over all epochs."""

    def __init__(self, batch, number):
        self.batch, self.number = batch, number

    def on_train_batch_start(self, trainer, pl_module, batch, batch_idx):
        if trainer.current_epoch * BATCHES + batch_idx + 1 == self.batch:
            os.kill(os.getpid(), self.number)


def train(folder, data, stop=None, resume=None, number=signal.SIGTERM, **settings):
    """Weights, early stopping, best checkpoint and the rows of metrics.csv."""
    stopping = EarlyStopping("valid/loss", patience=2, min_delta=10.0)  # nothing is ever good enough
    best = ModelCheckpoint(folder, filename="best", monitor="valid/loss", enable_version_counter=False)
    callbacks = [Clock(), Randomness(), stopping, best, Interruption(str(folder))]
    if stop is not None:
        callbacks.insert(0, Stop(stop, number))
    trainer = make_trainer(
        folder,
        EPOCHS,
        callbacks,
        enable_checkpointing=True,
        logger=RunCSVLogger(str(folder), every=1),
        log_every_n_steps=1,
        **settings,
    )
    task = make_task(data, seed=0 if resume is None else 99)
    trainer.fit(task, data, ckpt_path=resume, weights_only=True)
    rows = list(csv.DictReader((folder / "metrics.csv").open()))
    told = [{name: row[name] for name in ("step", "train/loss", "valid/loss")} for row in rows]
    told = [row for row in told if row["train/loss"] or row["valid/loss"]]
    return task.state_dict(), (stopping.wait_count, stopping.stopped_epoch), float(best.best_model_score), told


def steps_of(path):
    return torch.load(path, weights_only=True)["global_step"]


@pytest.mark.parametrize(
    ("settings", "stops"),
    [
        ({}, {1: 1, 3: 3, 4: 4, 8: 8}),
        ({"val_check_interval": 0.5}, {1: 1, 2: 3, 4: 4}),
        ({"accumulate_grad_batches": 2}, {1: 1, 2: 1, 3: 2}),
        ({"accumulate_grad_batches": 3, "val_check_interval": 2}, {1: 1, 4: 2}),
    ],
    ids=str,
)
def test_as_if_nobody_had_stopped_it(make_data, tmp_path, settings, stops):
    """``stops``: batch of the signal, and the steps that the checkpoint must hold."""
    data = make_data(max_sentences=6)
    folder = tmp_path / "whole"
    folder.mkdir()
    weights, *found = train(folder, data, **settings)
    for stop, steps in stops.items():
        folder = tmp_path / f"stopped-{stop}"
        folder.mkdir()
        number = signal.SIGINT if stop % 2 else signal.SIGTERM
        with pytest.raises(SystemExit) as end:
            train(folder, data, stop, number=number, **settings)
        assert end.value.code == 128 + number
        assert steps_of(folder / "last.ckpt") == steps
        again, *same = train(folder, data, resume=folder / "last.ckpt", **settings)
        assert same == found
        assert all(torch.equal(again[name], value) for name, value in weights.items())


def test_a_signal_in_the_last_batch_waits_for_the_end(make_data, tmp_path, capsys):
    data = make_data(max_sentences=6)
    with pytest.raises(SystemExit):
        train(tmp_path, data, stop=EPOCHS * BATCHES)
    assert steps_of(tmp_path / "last.ckpt") == EPOCHS * BATCHES
    assert (tmp_path / "best.ckpt").is_file()


def test_a_periodic_checkpoint_waits_until_one_can_go_on_from_it(make_data, tmp_path):
    """Every batch would be its turn; between two that are added up, and before a validation, none is written."""
    saved = []

    class Noted(Periodic):
        def _save_checkpoint(self, trainer, filepath):
            saved.append(trainer.fit_loop.total_batch_idx + 1)
            super()._save_checkpoint(trainer, filepath)

    data = make_data(max_sentences=6)
    every = Noted(tmp_path, filename="last", every_n_train_steps=1, save_on_train_epoch_end=False)
    trainer = make_trainer(tmp_path, 2, [every], enable_checkpointing=True, accumulate_grad_batches=2)
    trainer.fit(make_task(data), data)
    assert saved == [2, 6]


def test_rows_that_a_resumed_training_tells_anew_are_dropped(tmp_path):
    path = tmp_path / "metrics.csv"
    path.write_text("epoch,step,train/loss\r\n0,19,2.5\r\n0,39,2.25\r\n1,59,2.0\r\n1,7")  # killed while it wrote
    forget_from(path, 40)
    assert path.read_bytes() == b"epoch,step,train/loss\r\n0,19,2.5\r\n0,39,2.25\r\n"
    forget_from(tmp_path / "none.csv", 40)
    assert not (tmp_path / "none.csv").exists()
