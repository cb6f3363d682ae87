"""Sweeps whose cells run in processes of their own: one folder for all, and a failed cell is told."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tiny import CONF, SMALL


def sweep(folder, *more):
    settings = (*SMALL, "callbacks.progress=null", "cache_dir=cache", "attention=none", "hidden_size=32,33")
    command = [sys.executable, CONF.parent / "train.py", "-m", *settings, *more]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)


@pytest.mark.parametrize(
    "launcher",
    [
        ("joblib", "hydra.launcher.n_jobs=2"),
        pytest.param(("submitit_local", "hydra.launcher.timeout_min=5"), marks=pytest.mark.nightly),
    ],
    ids=lambda launcher: launcher[0],
)
def test_cells_in_processes_of_their_own(tmp_path, launcher):
    pytest.importorskip(f"hydra_plugins.hydra_{launcher[0].partition('_')[0]}_launcher")
    outcome = sweep(tmp_path, f"hydra/launcher={launcher[0]}", *launcher[1:])
    assert outcome.returncode == 1, outcome.stderr
    (folder,) = (tmp_path / "runs").iterdir()
    (good,) = folder.glob("*/scores.json")
    assert json.loads(good.read_text())["n"] == 40
    (bad,) = folder.glob("*/error.txt")
    assert "must be even, found 33" in bad.read_text()
    assert f"error: cells that failed: {bad.parent.name}\n" in outcome.stderr
    assert (folder / "report/index.html").is_file()
    assert bad.parent != good.parent


def test_slurm_where_there_is_none(tmp_path):
    pytest.importorskip("hydra_plugins.hydra_submitit_launcher")
    outcome = sweep(tmp_path, "hydra/launcher=slurm", "run_dir=sweep")
    assert outcome.returncode == 1
    assert outcome.stderr.startswith("error: the launcher cannot start: ")
    assert "srun" in outcome.stderr
    assert outcome.stderr.count("\n") == 1
    assert not list(Path(tmp_path).glob("sweep/*/scores.json"))
