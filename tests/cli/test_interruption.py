"""Real processes, really stopped: by Ctrl-C, by SIGTERM, by SIGKILL at any moment. What goes on ends as ever."""

import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from tests.tiny import CONF, SMALL

SETTINGS = (
    *SMALL,
    "trainer.limit_train_batches=null",
    "max_epochs=4",
    "max_sentences=4",
    "dropout=0.3",
    "subword_dropout=0.1",
    "callbacks.progress=null",
    "run_dir=run",
    "cache_dir=cache",
)
PERIODIC = ("~callbacks.periodic.train_time_interval", "+callbacks.periodic.every_n_train_steps=7")


def start(folder, *more):
    command = [sys.executable, CONF.parent / "train.py", *SETTINGS, *more]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def weights(folder):
    return torch.load(folder / "run/checkpoints/last.ckpt", weights_only=True)["state_dict"]


def same(one, other):
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The weights of a training that nobody stopped."""
    folder = tmp_path_factory.mktemp("whole")
    process = start(folder, *PERIODIC)
    assert process.wait() == 0, process.stderr.read()
    return weights(folder)


def wait_for(found, process, seconds=90):
    until = time.monotonic() + seconds
    while not found() and process.poll() is None and time.monotonic() < until:
        time.sleep(0.005)
    assert process.poll() is None, process.stderr.read()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_is_answered_with_a_checkpoint(tmp_path, whole, number, code):
    last = tmp_path / "run/checkpoints/last.ckpt"
    process = start(tmp_path, *PERIODIC)
    wait_for(last.is_file, process)
    process.send_signal(number)
    error = process.communicate(timeout=60)[1]
    assert process.returncode == code, error
    assert error.startswith("stopped after step ")
    assert "resume=last goes on from" in error
    assert "Traceback" not in error
    assert not (tmp_path / "run/scores.json").exists()
    resumed = start(tmp_path, *PERIODIC, "resume=last")
    assert resumed.wait() == 0, resumed.stderr.read()
    assert same(weights(tmp_path), whole)


def test_ctrl_c_before_the_first_step_and_twice_in_a_row(tmp_path):
    early = start(tmp_path, "run_dir=early")
    wait_for((tmp_path / "early/config.yaml").is_file, early)
    early.send_signal(signal.SIGINT)
    error = early.communicate(timeout=60)[1]
    assert early.returncode == 130, error
    assert "Traceback" not in error
    assert error.startswith(("error: interrupted", "stopped after step "))
    twice = start(tmp_path, *PERIODIC)
    wait_for((tmp_path / "run/checkpoints/last.ckpt").is_file, twice)
    twice.send_signal(signal.SIGINT)
    time.sleep(0.02)
    twice.send_signal(signal.SIGINT)
    error = twice.communicate(timeout=60)[1]
    # Ended by the program, or by the signal itself, of which a shell makes the same number.
    assert twice.returncode in (130, -signal.SIGINT), error
    assert "Traceback" not in error


def kill_and_resume(folder, whole, kills, draw):
    """Kills a training ``kills`` times, each after a random time, every other one while a checkpoint is being written."""
    checkpoints = folder / "run/checkpoints"
    for turn in range(kills):
        more = ["resume=last"] if (checkpoints / "last.ckpt").is_file() else []
        if not more:
            # Killed before its first checkpoint: a run without one starts anew.
            shutil.rmtree(folder / "run", ignore_errors=True)
        process = start(folder, *PERIODIC, *more)
        before = _mark(checkpoints)
        wait_for(lambda before=before: _mark(checkpoints) != before, process)
        if turn % 2:
            time.sleep(draw.uniform(0, 1.0))
        process.kill()
        process.communicate()
        # Whatever it was doing: the checkpoint that is there is whole.
        if (checkpoints / "last.ckpt").is_file():
            weights(folder)
        if process.returncode == 0:
            break
    process = start(folder, *PERIODIC, "resume=last")
    assert process.wait() == 0, process.stderr.read()
    assert same(weights(folder), whole)


def _mark(checkpoints: Path):
    """Changes as soon as a file is begun or replaced."""
    try:
        return sorted((entry.name, entry.stat().st_mtime_ns) for entry in checkpoints.iterdir())
    except FileNotFoundError:
        return []


@pytest.mark.parametrize("kills", [3, pytest.param(20, marks=pytest.mark.nightly)])
def test_what_is_killed_goes_on_from_its_last_checkpoint(tmp_path, whole, kills):
    kill_and_resume(tmp_path, whole, kills, random.Random(kills))
