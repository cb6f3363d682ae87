"""A loss that is no number, and memory that runs out: said at which batch, and nothing learned from it."""

import subprocess
import sys

import pytest
import torch
from lightning.pytorch.callbacks import ModelCheckpoint

from seq2seq.errors import TrainingError
from seq2seq.training.callbacks.watch import Watch, out_of_memory
from tests.tiny import CONF, SMALL
from tests.training.conftest import make_task, make_trainer


class Spoiled(Watch):
    """Makes the third loss infinite by way of a weight."""

    def on_train_batch_start(self, trainer, pl_module, batch, batch_idx):
        super().on_train_batch_start(trainer, pl_module, batch, batch_idx)
        if trainer.global_step == 2:
            self.before = {name: value.clone() for name, value in pl_module.state_dict().items()}
            with torch.no_grad():
                pl_module.model.output.bias[5] = torch.nan


def test_nothing_is_learned_from_a_loss_that_is_no_number(make_data, tmp_path):
    data, watch = make_data(max_sentences=4), Spoiled()
    last = ModelCheckpoint(tmp_path, filename="last", every_n_train_steps=1, enable_version_counter=False)
    trainer = make_trainer(tmp_path, 2, [watch, last], enable_checkpointing=True)
    task = make_task(data)
    with pytest.raises(TrainingError) as found:
        trainer.fit(task, data)
    ids = ", ".join(map(str, watch.batch.ids.tolist()))
    assert str(found.value).startswith(
        "the loss is nan in step 3, with a learning rate of 0.02, on a batch of 4 sentences"
    )
    assert f"(positions in the training split: {ids})" in str(found.value)
    kept = torch.load(tmp_path / "last.ckpt", weights_only=True)
    assert kept["global_step"] == 2
    for name, value in watch.before.items():
        assert torch.equal(kept["state_dict"][name], value)


def test_a_learning_rate_that_is_far_too_high_ends_as_a_message(tmp_path):
    command = [sys.executable, CONF.parent / "train.py", *SMALL, "learning_rate=1e30", "run_dir=run", "cache_dir=cache"]
    command += ["scheduler=constant", "scheduler.warmup_steps=0", "callbacks.progress=null"]
    process = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert process.returncode == 1
    assert process.stderr.startswith("error: the loss is ")
    assert "lower learning_rate" in process.stderr


def test_memory_that_runs_out_names_the_batch(tmp_path):
    settings = [*SMALL, "max_sentences=256", "max_tokens=null", "hidden_size=1024", "run_dir=run", "cache_dir=cache"]
    script = (
        "import resource, runpy, sys; from seq2seq.data.cldr import CldrCorpus; import torch, lightning, datasets; "
        "held = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize(); "
        "resource.setrlimit(resource.RLIMIT_AS, (held + 2**30,) * 2); "
        f"sys.argv = ['train.py', *{settings!r}]; runpy.run_path({str(CONF.parent / 'train.py')!r}, run_name='__main__')"
    )
    process = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True)
    assert process.returncode == 1
    assert process.stderr.startswith("error: out of memory on a batch of "), process.stderr[-500:]
    assert "lower max_tokens or max_sentences" in process.stderr


def test_other_errors_pass(tmp_path):
    assert out_of_memory(RuntimeError("sizes do not match"), make_trainer(tmp_path)) is None
