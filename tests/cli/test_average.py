"""Averaged checkpoints: the mean by hand, and that they translate."""

import pytest
import torch

from seq2seq.cli.average import main
from seq2seq.training.checkpoint import load
from tests.tiny import SMALL


@pytest.fixture
def recent(command, tmp_path):
    outcome = command(*SMALL, "run_dir=run", "callbacks=recent", "callbacks.recent.save_top_k=2", "max_epochs=3")
    assert outcome.code == 0, outcome.error
    found = sorted((tmp_path / "run/checkpoints").glob("epoch-*.ckpt"))
    assert [path.stem for path in found] == ["epoch-1", "epoch-2"]
    return found


def test_the_mean_of_two_is_half_their_sum(recent, tmp_path, capsys):
    main([*map(str, recent), "--out", str(tmp_path / "mean.ckpt")])
    assert capsys.readouterr().out.startswith("mean of 2 checkpoints: ")
    one, other = (load(path).model.state_dict() for path in recent)
    for name, value in load(tmp_path / "mean.ckpt").model.state_dict().items():
        torch.testing.assert_close(value, (one[name] + other[name]) / 2)


def test_what_does_not_fit_is_refused(recent, tmp_path, command):
    assert command(*SMALL, "run_dir=none", "attention=none").code == 0
    other = tmp_path / "none/checkpoints/best.ckpt"
    for arguments, words in (
        ([recent[0], other, "--out", tmp_path / "mean.ckpt"], "hold other models or vocabularies"),
        ([*recent, "--out", recent[1]], "exists already"),
        ([recent[0], "--out", tmp_path / "mean.ckpt"], "at least two"),
        ([recent[0], tmp_path / "gone.ckpt", "--out", tmp_path / "mean.ckpt"], "no checkpoint at"),
        ([*recent, "--out", tmp_path / "nowhere" / "mean.ckpt"], "cannot be written"),
    ):
        with pytest.raises(SystemExit) as end:
            main([str(argument) for argument in arguments])
        assert end.value.code.startswith("error: ")
        assert words in end.value.code
    assert not (tmp_path / "mean.ckpt").exists()
