"""Freed memory is used again, seen by the pages that the system has to make; a run counts its own peak."""

import os
import platform
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from seq2seq.cli.memory import PREPARATIONS, keep_few_preparations

PROGRAM = """
import resource, torch
from seq2seq.cli.memory import keep_freed_memory
if {call}: assert keep_freed_memory()
def made(): return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20): torch.ones(2**24)
before = made()
for _ in range(10): torch.ones(2**24)
print(made() - before)
"""


PEAK = """
import torch
from seq2seq.cli.memory import forget_peak, keep_freed_memory
from seq2seq.training.environment import peak_mib
keep_freed_memory()
torch.ones(2**27)
before = peak_mib()
forget_peak()
print(before - peak_mib())
"""


def test_what_a_user_has_set_for_prepared_products_is_left_alone(monkeypatch):
    monkeypatch.setenv("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "7")
    monkeypatch.delenv("LRU_CACHE_CAPACITY", raising=False)
    keep_few_preparations()
    assert os.environ["ONEDNN_PRIMITIVE_CACHE_CAPACITY"] == "7"
    assert os.environ["LRU_CACHE_CAPACITY"] == str(PREPARATIONS)


def test_the_peak_of_an_earlier_run_is_forgotten():
    """It held half a GiB more at once."""
    if not Path("/proc/self/clear_refs").exists():
        pytest.skip("this system keeps one peak for a whole process")
    program = [sys.executable, "-c", PEAK]
    assert float(subprocess.run(program, capture_output=True, text=True, check=True).stdout) > 450


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has this setting")
@pytest.mark.parametrize("call", [True, False])
def test_freed_memory_is_used_again(call):
    program = [sys.executable, "-c", PROGRAM.format(call=call)]
    pages = int(subprocess.run(program, capture_output=True, text=True, check=True).stdout)
    whole = 10 * 2**24 * 4 // resource.getpagesize()
    assert pages < whole // 100 if call else pages > whole // 2
