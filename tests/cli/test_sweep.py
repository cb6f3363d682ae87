"""Sweeps: a folder a cell, failures that stop nothing else, a second start that repeats nothing."""

import json
from pathlib import Path

import pytest

from seq2seq.cli.sweep import cell_name
from tests.cli.conftest import SMALL


def cell(number):
    (folder,) = Path("sweep").glob(f"{number}_*")
    return folder


def test_a_failing_cell_is_reported_and_the_others_go_on(command):
    outcome = command(*SMALL, "-m", "hidden_size=33,32", "run_dir=sweep")
    assert outcome.code == 1
    assert f"1 of 2 cells failed: {cell(0).name}" in outcome.error
    assert (cell(0) / "error.txt").read_text().splitlines()[-1].endswith("must be even, found 33")
    assert (cell(1) / "scores.json").is_file()
    report = Path("sweep/report/tables/results.md").read_text()
    assert "must be even, found 33" in Path("sweep/report/index.html").read_text()
    assert "scaled" in report


def test_a_cell_that_cannot_be_composed_stops_the_sweep_before_it_starts(command):
    outcome = command(*SMALL, "-m", "attention=none,typo", "run_dir=sweep")
    assert outcome.code == 1
    assert "attention/typo" in outcome.error
    assert not list(Path("sweep").glob("0_*/scores.json"))


def test_a_second_start_runs_only_what_is_missing(command):
    first = command(*SMALL, "-m", "attention=none,scaled", "run_dir=sweep")
    assert first.code == 0, first.error
    kept, redone = (cell(number) / "scores.json" for number in (0, 1))
    before = kept.stat().st_mtime_ns
    redone.unlink()
    second = command(*SMALL, "-m", "attention=none,scaled", "run_dir=sweep")
    assert second.code == 0, second.error
    assert kept.stat().st_mtime_ns == before
    assert f"{cell(0).name} is finished already" in second.out
    assert json.loads(redone.read_text())["attention"] == "scaled"


@pytest.mark.parametrize(
    ("overrides", "name"),
    [
        ("attention=none,seed=1", "3_attention-none-seed-1"),
        ("data.train=[a/b.en,c d]", "3_data.train-a-b.en-c-d"),
        ("", "3"),
    ],
)
def test_a_cell_s_name_needs_no_quotes(overrides, name):
    assert cell_name(3, overrides) == name


def test_a_long_name_is_cut():
    assert len(cell_name(3, "key=" + "x" * 300)) == 100
