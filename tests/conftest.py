"""Fixtures that more than one folder of tests uses."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import hypothesis
import pytest
import torch

# Tests are many and their tensors small: a second thread would only wait, in the processes that they start as well.
torch.set_num_threads(1)
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Whoever runs the tests in the background has them ignore Ctrl-C, and the processes they start would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_configure(config: pytest.Config) -> None:
    """Properties are tried on more examples by night."""
    nightly = config.option.markexpr == "nightly"
    hypothesis.settings.register_profile("seq2seq", max_examples=10_000 if nightly else 200, deadline=None)
    hypothesis.settings.load_profile("seq2seq")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """``pytest -m nightly`` takes the tests of properties, too."""
    if config.option.markexpr == "nightly":
        for item in items:
            if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
                item.add_marker("nightly")


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
