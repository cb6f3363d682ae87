"""A checkpoint is whole or not there, on a real disk that is too small."""

import shutil
import subprocess
import sys

import pytest
import torch

from seq2seq.errors import TrainingError
from seq2seq.training.files import write_text
from seq2seq.training.saving import WholeCheckpoints
from tests.tiny import CONF, SMALL


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 600 kB of its own."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = shutil.which("mount")
    if (
        mount is None
        or subprocess.run([mount, "-t", "tmpfs", "-o", "size=600k", "tmpfs", folder], check=False).returncode
    ):
        pytest.skip("a file system cannot be mounted here")
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_a_full_disk_leaves_the_earlier_checkpoint(small_disk):
    path = small_disk / "checkpoints" / "last.ckpt"
    WholeCheckpoints().save_checkpoint({"weights": torch.ones(50_000)}, path)
    with pytest.raises(
        TrainingError, match=r"last\.ckpt of 0\.6 MB cannot be written \(.*No space left.*as it was: make room"
    ):
        WholeCheckpoints().save_checkpoint({"weights": torch.zeros(150_000)}, path)
    assert torch.load(path, weights_only=True)["weights"].eq(1).all()
    assert [file.name for file in path.parent.iterdir()] == ["last.ckpt"]
    WholeCheckpoints().save_checkpoint({"weights": torch.zeros(50_000)}, path)
    assert torch.load(path, weights_only=True)["weights"].eq(0).all()


def test_a_training_on_a_full_disk_says_so(small_disk, tmp_path):
    command = [sys.executable, CONF.parent / "train.py", *SMALL, "cache_dir=cache", f"run_dir={small_disk}/run"]
    outcome = subprocess.run([*command, "hidden_size=128"], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert outcome.returncode == 1
    assert "error: the checkpoint " in outcome.stderr
    assert "there was none before: make room, or choose another run_dir" in outcome.stderr
    assert 'File "' not in outcome.stderr
    assert not list((small_disk / "run/checkpoints").iterdir())


def test_a_text_is_whole_or_as_it_was(small_disk):
    path = small_disk / "scores.json"
    write_text(path, "old")
    with pytest.raises(OSError, match="No space"):
        write_text(path, "new" * 1_000_000)
    assert path.read_text() == "old"
    assert [file.name for file in small_disk.iterdir()] == ["scores.json"]
