"""Memory, versions and commits, the latter in repositories made for the test."""

import re
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
import torch

from seq2seq.training.environment import environment, git_commit, peak_mib

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


def git(folder, *arguments):
    who = ["-c", "user.name=test", "-c", "user.email=test@example.org", "-c", "commit.gpgsign=false"]
    return subprocess.run(["git", "-C", folder, *who, *arguments], check=True, capture_output=True, text=True).stdout


@pytest.fixture
def repository(tmp_path, monkeypatch):
    # What a hook would set points to another repository.
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    with monkeypatch.context() as patch:
        patch.delenv("GIT_DIR")
        (tmp_path / "code").mkdir()
        (tmp_path / "code" / "a.py").write_text("a = 1\n")
        (tmp_path / ".gitignore").write_text("installed\n")
        git(tmp_path, "init", "-q")
        git(tmp_path, "add", ".")
        git(tmp_path, "commit", "-q", "-m", "first")
        yield tmp_path, git(tmp_path, "rev-parse", "HEAD").strip(), patch


@needs_git
def test_a_commit_is_named_and_a_change_is_told(repository):
    folder, commit, _ = repository
    assert len(commit) == 40
    assert git_commit(folder / "code") == commit
    (folder / "notes.txt").write_text("not tracked")
    assert git_commit(folder / "code") == commit
    (folder / "code" / "a.py").write_text("a = 2\n")
    assert git_commit(folder / "code") == f"{commit}-dirty"


@needs_git
def test_variables_of_a_hook_do_not_matter(repository):
    folder, commit, patch = repository
    patch.setenv("GIT_DIR", str(folder / "elsewhere"))
    assert git_commit(folder / "code") == commit


@needs_git
def test_a_folder_that_git_does_not_track_has_no_commit(repository):
    folder = repository[0]
    (folder / "installed").mkdir()
    (folder / "installed" / "b.py").write_text("b = 1\n")
    assert git_commit(folder / "installed") is None


def test_outside_of_a_repository_or_without_git_there_is_no_commit(tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert git_commit(tmp_path) is None
    monkeypatch.setenv("PATH", "")
    assert git_commit() is None


def test_peak_memory_is_in_mib():
    """A process that has loaded torch has held more than 50 MiB. Linux says in KiB what it was."""
    before = peak_mib()
    status = Path("/proc/self/status")
    if not status.is_file():
        pytest.skip("the system does not say by itself")
    kernel = int(re.search(r"VmHWM:\s+(\d+) kB", status.read_text())[1]) / 1024
    assert 50 < before <= peak_mib()
    assert before == pytest.approx(kernel, rel=0.05)


def test_the_environment_is_plain_data():
    found = environment(torch.device("cpu"))
    assert set(found) == {"peak_mib", "versions", "git_commit"}
    packages = {"torch", "lightning", "torchmetrics", "sacrebleu", "sentencepiece", "babel"}
    assert set(found["versions"]) == {"python"} | packages
    assert found["versions"]["torch"] == version("torch")
    assert found["versions"]["python"].startswith(f"{sys.version_info.major}.{sys.version_info.minor}.")
