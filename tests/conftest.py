"""Fixtures that more than one folder of tests uses."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch

# Tests are many and their tensors small: a second thread would only wait.
torch.set_num_threads(1)
# Whoever runs the tests in the background has them ignore Ctrl-C, and the processes they start would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def multi30k() -> Path:
    """A local copy of Multi30k, laid out as on the hub: ``SEQ2SEQ_MULTI30K``, or a folder beside the repository."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data" / "multi30k"
    folder = Path(os.environ.get("SEQ2SEQ_MULTI30K", beside))
    if not (folder / "train.jsonl").is_file():
        pytest.skip(f"no Multi30k in {folder}: set SEQ2SEQ_MULTI30K to a folder with its train.jsonl")
    return folder


@pytest.fixture(scope="session")
def finished(tmp_path_factory) -> Path:
    """The folder of a finished run of seconds, made by a process of its own. Nothing may be written into it."""
    # Not at the top: what is imported before the tests are collected is not checked for its shapes.
    from tests.tiny import CONF, SMALL

    folder = tmp_path_factory.mktemp("finished")
    arguments = [*SMALL, "run_dir=run", "callbacks.progress=null", "cache_dir=cache"]
    subprocess.run([sys.executable, CONF.parent / "train.py", *arguments], cwd=folder, check=True, capture_output=True)
    return folder / "run"
