"""One run a folder at a time, and runs that leave out a part."""

import csv
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from filelock import FileLock
from tensorboard.backend.event_processing import event_file_loader
from tensorboard.compat.proto import event_pb2

from tests.tiny import CONF, SMALL


def test_no_two_runs_write_into_one_folder(command):
    Path("run").mkdir()
    with FileLock("run/.lock"):
        outcome = command(*SMALL, "run_dir=run")
        assert outcome.code == 1
        assert "another run is at work in" in outcome.error
        assert not Path("run/metrics.csv").exists()
    assert command(*SMALL, "run_dir=run").code == 0


def test_two_runs_that_start_at_once_do_not_mix(tmp_path):
    start = [
        sys.executable,
        CONF.parent / "train.py",
        *SMALL,
        "callbacks.progress=null",
        "cache_dir=cache",
        "run_dir=run",
    ]
    runs = [
        subprocess.Popen(
            [*start, f"seed={seed}"], cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        for seed in (1, 2)
    ]
    errors = [run.communicate(timeout=300)[1] for run in runs]
    assert sorted(run.returncode for run in runs) == [0, 1]
    (error,) = [error for error, run in zip(errors, runs, strict=True) if run.returncode]
    assert error.startswith("error: another run is at work in ") or "already holds a run" in error
    # One run of three steps an epoch, every one of which is logged, and no row of another.
    rows = list(csv.DictReader((tmp_path / "run/metrics.csv").open()))
    steps = [row["step"] for row in rows if row["train/loss"]]
    assert len(steps) == len(set(steps))


def test_tensorboard_is_told_from_where_on_a_training_goes_on(command):
    assert command(*SMALL, "run_dir=run").code == 0
    step = torch.load("run/checkpoints/last.ckpt", weights_only=True)["global_step"]
    outcome = command(*SMALL, "run_dir=run", "resume=last", "max_epochs=3")
    assert outcome.code == 0, outcome.error
    starts = [
        event.step
        for path in Path("run/tensorboard").glob("events*")
        for event in event_file_loader.EventFileLoader(str(path)).Load()
        if event.session_log.status == event_pb2.SessionLog.START
    ]
    assert starts == [step]


def test_without_results_it_says_so(command):
    outcome = command(*SMALL, "run_dir=run", "callbacks.results=null")
    assert outcome.code == 0, outcome.error
    assert "no results: " in outcome.out


def test_a_checkpoint_of_another_run_is_not_taken_along(command, finished):
    outcome = command(*SMALL, "run_dir=new", f"resume={finished / 'checkpoints/last.ckpt'}")
    assert outcome.code == 1
    assert f"belongs to the run in {finished}" in outcome.error
    assert not Path("new/checkpoints").exists()


@pytest.mark.parametrize("loops", [None, {}, {"fit_loop": {}}])
def test_a_checkpoint_that_does_not_say_how_far_it_was(command, loops):
    assert command(*SMALL, "run_dir=run").code == 0
    path = Path("run/checkpoints/last.ckpt")
    checkpoint = torch.load(path, weights_only=True)
    checkpoint["loops"] = loops
    if loops:
        del checkpoint["global_step"]
    torch.save(checkpoint, path)
    outcome = command(*SMALL, "run_dir=run", "resume=last")
    assert outcome.code == 1
    assert "does not say how far its training was" in outcome.error
