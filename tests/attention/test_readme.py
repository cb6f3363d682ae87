"""The README's own attention, taken from its text, followed to the letter in a folder outside of the project."""

import re
import shlex
import subprocess
import sys

import pytest
import torch

from seq2seq.attention.base import build_attention
from seq2seq.errors import CheckpointError
from seq2seq.training.checkpoint import load
from seq2seq.types import Memory
from tests.tiny import CONF

README = (CONF.parent / "README.md").read_text(encoding="utf-8")
(CODE,) = (block for block in re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL) if "(Attention)" in block)
(YAML,) = (block for block in re.findall(r"```yaml\n(.*?)```", README, flags=re.DOTALL) if "DistanceAttention" in block)


@pytest.fixture
def attention():
    names = {}
    exec(CODE, names)
    torch.manual_seed(0)
    return build_attention(names["DistanceAttention"], query_size=8, memory_size=10)


def test_the_nearest_key_weighs_most_and_padding_nothing(attention):
    states = torch.randn(2, 5, 10)
    memory = Memory(states, torch.arange(5) < torch.tensor([[5], [3]]), torch.randn(2, 10))
    bound = attention.bind(memory)
    weights = attention(bound.keys[:, 1:2], bound).weights
    assert weights.shape == (2, 1, 5)
    assert weights[:, 0].argmax(dim=-1).tolist() == [1, 1]
    assert (weights[1, 0, 3:] == 0).all()


def test_two_files_outside_of_the_project_are_enough(tmp_path, monkeypatch):
    """The README's files in a scratch folder, and its command; its checkpoint loads for those who trust the package."""
    (file,) = re.findall(r"`(\S+\.py)` says what the keys are", README)
    (config,) = re.findall(r"`(\S+\.yaml)` names it", README)
    for path, content in ((file, CODE), (config, YAML)):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(content)
    (command,) = re.findall(r"^(.*python train\.py .*attention=mine)$", README, flags=re.MULTILINE)
    command = command.replace(
        "python train.py", f"{shlex.quote(sys.executable)} {shlex.quote(str(CONF.parent / 'train.py'))}"
    )
    sizes = "vocabulary_size=300 data.train_size=300 data.valid_size=20 data.test_size=20"
    process = subprocess.run(
        f"{command} debug=fast run_dir=run {sizes}", shell=True, cwd=tmp_path, capture_output=True, text=True
    )
    assert process.returncode == 0, process.stderr
    assert "│ mine" in process.stdout
    checkpoint = tmp_path / "run/checkpoints/best.ckpt"
    with pytest.raises(CheckpointError, match=r"may only name .* found 'mine\.DistanceAttention'"):
        load(checkpoint)
    monkeypatch.syspath_prepend((tmp_path / file).parent)
    model, _ = load(checkpoint, trusted=("seq2seq.", "torch.nn.", "mine."))
    assert type(model.decoder.attention).__name__ == "DistanceAttention"
