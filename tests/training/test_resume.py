"""A training that was stopped anywhere ends with the same weights, bit for bit, as one that was not."""

import shutil

import pytest
import torch
from lightning.pytorch.callbacks import Callback, ModelCheckpoint, WeightAveraging

from seq2seq.dropout import Dropout
from seq2seq.training.averaging import moving_average
from seq2seq.training.callbacks.clock import Clock
from seq2seq.training.callbacks.randomness import Randomness
from tests.training.conftest import make_task, make_trainer

EPOCHS, STEPS = 3, 4


class Losses(Callback):
    """The loss of every step, by its number."""

    def __init__(self):
        self.found = {}

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        self.found[trainer.global_step] = outputs["loss"].item()


def trained(folder, data, resume=None, ema=False):
    losses = Losses()
    every = ModelCheckpoint(
        folder, filename="{step}", every_n_train_steps=1, save_top_k=-1, enable_version_counter=False
    )
    callbacks = [losses, Clock(), Randomness(), every]
    if ema:
        callbacks.append(WeightAveraging(use_buffers=False, multi_avg_fn=moving_average(decay=0.5)))
    trainer = make_trainer(folder, EPOCHS, callbacks, enable_checkpointing=True)
    # Another seed: whatever was drawn before the resumed step must not matter.
    task = make_task(data, seed=0 if resume is None else 99)
    for module in task.model.modules():
        if isinstance(module, Dropout):
            module.dropped = 77
    trainer.fit(task, data, ckpt_path=resume, weights_only=True)
    return losses.found, task.state_dict()


@pytest.mark.parametrize("settings", [{}, {"subword_dropout": 0.0, "workers": 1}], ids=["plain", "workers"])
@pytest.mark.parametrize("ema", [False, True], ids=["", "ema"])
def test_from_any_step(make_data, tmp_path, settings, ema):
    data = make_data(max_sentences=6, **settings)
    losses, weights = trained(tmp_path / "whole", data, ema=ema)
    steps = EPOCHS * STEPS
    assert sorted(losses) == list(range(1, steps + 1))
    assert len(set(losses.values())) == steps
    # In the middle of an epoch, at its end, at its beginning, before the last step.
    for step in (1, 2, STEPS, STEPS + 1, 2 * STEPS - 1, steps - 1):
        folder = tmp_path / f"from-{step}"
        folder.mkdir()
        shutil.copy(tmp_path / "whole" / f"step={step}.ckpt", folder / "start.ckpt")
        again, same = trained(folder, data, folder / "start.ckpt", ema)
        assert again == {number: loss for number, loss in losses.items() if number > step}
        for name, value in weights.items():
            assert torch.equal(same[name], value), name
