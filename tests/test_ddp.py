"""Several real processes on the CPU: the same translations and scores as one, one folder, one voice."""

import csv
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from tests.tiny import CONF, SMALL

pytestmark = pytest.mark.ddp
SETTINGS = (*SMALL, "trainer.limit_test_batches=null", "callbacks.progress=null", "cache_dir=cache")


def train(folder, *more, launcher=()):
    flags = [argument for argument in more if argument.startswith("-")]
    settings = [argument for argument in more if not argument.startswith("-")]
    command = [sys.executable, *launcher, CONF.parent / "train.py", *flags, *SETTINGS, *settings]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """A run of one process."""
    folder = tmp_path_factory.mktemp("alone")
    outcome = train(folder, "run_dir=run")
    assert outcome.returncode == 0, outcome.stderr
    return folder / "run"


def results(run):
    scores = json.loads((run / "scores.json").read_text())
    kept = ("bleu", "chrf", "n", "by_source_length", "truncated")
    return (run / "hypotheses.tsv").read_text(), {name: scores[name] for name in kept}, scores["loss"]


@pytest.mark.parametrize("processes", [2, pytest.param(3, marks=pytest.mark.nightly)])
def test_one_checkpoint_scores_the_same_in_any_number_of_processes(alone, tmp_path, processes):
    shutil.copytree(alone, tmp_path / "run")
    (tmp_path / "run/scores.json").unlink()
    outcome = train(tmp_path, "run_dir=run", "resume=last", "trainer=ddp_cpu", f"trainer.devices={processes}")
    assert outcome.returncode == 0, outcome.stderr
    assert outcome.stdout.count("test: 40 pairs") == 1
    (lines, scores, loss), (expected, same, close) = results(tmp_path / "run"), results(alone)
    assert lines == expected
    assert scores == same
    assert loss == pytest.approx(close, rel=1e-5)


@pytest.mark.parametrize("several", [2, pytest.param(3, marks=pytest.mark.nightly)])
def test_processes_that_share_a_batch_learn_what_one_does(tmp_path, several):
    """Fifty steps: one process with 12 sentences a step, two with 6 each, or three with 4."""
    exact = ("dropout=0.0", "matmul_precision=highest", "trainer.limit_train_batches=null", "max_epochs=2")
    losses, weights = {}, {}
    for processes in (1, several):
        trainer = [] if processes == 1 else ["trainer=ddp_cpu", f"trainer.devices={processes}"]
        outcome = train(
            tmp_path,
            f"run_dir=run{processes}",
            *exact,
            f"max_sentences={12 // processes}",
            "data.train_size=300",
            *trainer,
        )
        assert outcome.returncode == 0, outcome.stderr
        with (tmp_path / f"run{processes}/metrics.csv").open(newline="") as file:
            losses[processes] = [float(row["valid/loss"]) for row in csv.DictReader(file) if row["valid/loss"]]
        checkpoint = torch.load(tmp_path / f"run{processes}/checkpoints/last.ckpt", weights_only=True)
        assert checkpoint["global_step"] == 50
        weights[processes] = checkpoint["state_dict"]
    assert losses[1][1] < losses[1][0] - 0.1, "it has learned something"
    assert losses[several] == pytest.approx(losses[1], abs=1e-5)
    for name, value in weights[1].items():
        torch.testing.assert_close(weights[several][name], value, rtol=0, atol=1e-4)


def test_a_run_from_the_beginning_has_one_folder(tmp_path):
    outcome = train(tmp_path, "trainer=ddp_cpu")
    assert outcome.returncode == 0, outcome.stderr
    (run,) = (tmp_path / "runs").iterdir()
    assert json.loads((run / "scores.json").read_text())["n"] == 40
    assert outcome.stdout.count("epoch 1, step 3") == 1  # one voice


def torchrun(processes, *more, port=None):
    ports = f"--nproc-per-node={processes}", f"--master-port={port or free_port()}"
    return ("-m", "torch.distributed.run", *ports, *more)


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def test_torchrun_needs_a_folder_and_works_in_it(tmp_path):
    outcome = train(tmp_path, "trainer=ddp_cpu", launcher=torchrun(2))
    assert outcome.returncode != 0
    assert "error: processes that torchrun or SLURM start cannot agree on a dated folder" in outcome.stderr
    assert not (tmp_path / "runs").exists()
    outcome = train(tmp_path, "trainer=ddp_cpu", "run_dir=run", launcher=torchrun(2))
    assert outcome.returncode == 0, outcome.stderr
    assert json.loads((tmp_path / "run/scores.json").read_text())["n"] == 40


@pytest.mark.parametrize(
    ("trainer", "words"),
    [
        ("trainer=cpu", "torchrun started 2 processes, and this trainer is for one alone: set trainer=ddp or ddp_cpu"),
        ("trainer.devices=3", "the processes are not as configured"),
    ],
)
def test_another_number_of_processes_than_torchrun_started_is_refused(tmp_path, trainer, words):
    shelf = () if trainer == "trainer=cpu" else ("trainer=ddp_cpu",)
    outcome = train(tmp_path, *shelf, trainer, "run_dir=run", launcher=torchrun(2))
    assert outcome.returncode != 0
    (line,) = {line for line in outcome.stderr.splitlines() if line.startswith("error: ")}
    assert words in line
    assert "set trainer=ddp or ddp_cpu, trainer.devices to the processes of one node" in line
    assert 'File "' not in outcome.stderr.partition("torch/distributed")[0]


def test_two_nodes_score_as_one_process_does(alone, tmp_path):
    shutil.copytree(alone, tmp_path / "run")
    (tmp_path / "run/scores.json").unlink()
    port = free_port()
    settings = ("trainer=ddp_cpu", "trainer.devices=1", "trainer.num_nodes=2", "run_dir=run", "resume=last")
    nodes = []
    for rank in range(2):
        launcher = torchrun(1, "--nnodes=2", f"--node-rank={rank}", "--master-addr=127.0.0.1", port=port)
        command = [sys.executable, *launcher, CONF.parent / "train.py", *SETTINGS, *settings]
        nodes.append(
            subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        )
    said = [node.communicate(timeout=300)[0] for node in nodes]
    assert [node.returncode for node in nodes] == [0, 0], said
    assert sum(text.count("test: 40 pairs") for text in said) == 1
    (lines, scores, loss), (expected, same, close) = results(tmp_path / "run"), results(alone)
    assert lines == expected
    assert scores == same
    assert loss == pytest.approx(close, rel=1e-5)


def test_a_mistake_that_all_processes_meet_is_no_traceback(tmp_path):
    outcome = train(tmp_path, "trainer=ddp_cpu", "run_dir=run", "learning_rate=inf")
    assert outcome.returncode != 0
    assert "Traceback" not in outcome.stderr
    assert "error: " in outcome.stderr


@pytest.mark.nightly
def test_where_one_process_is_killed_the_others_say_so(tmp_path):
    command = [sys.executable, CONF.parent / "train.py", *SETTINGS, "trainer=ddp_cpu", "run_dir=run", "max_epochs=500"]
    first = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 120
    while not (tmp_path / "run/checkpoints/last.ckpt").is_file() and time.monotonic() < until:
        time.sleep(0.1)
    children = Path(f"/proc/{first.pid}/task/{first.pid}/children").read_text().split()
    os.kill(int(children[-1]), signal.SIGKILL)
    error = first.communicate(timeout=60)[1]
    assert first.returncode == 1
    assert "another process of this training is gone" in error
    assert "Traceback" not in error


def test_a_sweep_over_several_processes_is_refused(tmp_path):
    outcome = train(tmp_path, "-m", "attention=none,scaled", "trainer=ddp_cpu", "run_dir=sweep")
    assert outcome.returncode == 1
    assert "a sweep trains in one process, found 2: start each run by itself" in outcome.stderr
    assert not list(tmp_path.glob("sweep/*/scores.json"))


def test_fewer_sentences_than_processes_are_refused(tmp_path):
    outcome = train(tmp_path, "trainer=ddp_cpu", "data.valid_size=1", "run_dir=run")
    assert outcome.returncode != 0
    assert "2 processes cannot share 1 sentences of validation or test" in outcome.stderr
    assert os.listdir(tmp_path / "run") != []
