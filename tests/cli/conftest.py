"""Runs the command in this process, as a user would type it, and returns what came of it."""

import os
import sys
from typing import NamedTuple

import pytest
from hydra.core.global_hydra import GlobalHydra

from seq2seq.cli.entry import OURS
from tests.tiny import CONF

sys.path.insert(0, str(CONF.parent))


class Outcome(NamedTuple):
    code: int
    out: str
    error: str


@pytest.fixture
def command(capsys, monkeypatch, tmp_path, tmp_path_factory):
    """`train.py` with these arguments, in an empty working folder, with a cache that the whole test run shares."""
    import train

    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HYDRA_FULL_ERROR", raising=False)
    monkeypatch.delenv(OURS, raising=False)
    cache = tmp_path_factory.getbasetemp() / "cache"

    def run(*arguments: str) -> Outcome:
        flags = [argument for argument in arguments if argument.startswith("-")]
        settings = [argument for argument in arguments if not argument.startswith("-")]
        quiet = [f"cache_dir={cache}", "callbacks.progress=null"]
        monkeypatch.setattr(sys, "argv", ["train.py", *flags, *quiet, *settings])
        code = 0
        capsys.readouterr()
        try:
            train.train()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
        finally:
            GlobalHydra.instance().clear()
            os.environ.pop("HYDRA_FULL_ERROR", None)
        return Outcome(code, *capsys.readouterr())

    return run
