"""Sweeps: a folder a cell, failures that stop nothing else, a second start that repeats nothing."""

import json
from pathlib import Path

import pytest

from seq2seq.cli.sweep import cell_name
from tests.tiny import SMALL


def cell(setting):
    (folder,) = Path("sweep").glob(f"{setting}-*")
    return folder


def test_a_failing_cell_is_reported_and_the_others_go_on(command):
    outcome = command(*SMALL, "-m", "hidden_size=33,32", "run_dir=sweep")
    assert outcome.code == 1
    (failed,), (finished,) = (list(Path("sweep").glob(f"*/{name}")) for name in ("error.txt", "scores.json"))
    assert f"error: cells that failed: {failed.parent.name}\n" in outcome.error
    assert failed.read_text().splitlines()[-1].endswith("must be even, found 33")
    assert "hidden_size: 32" in (finished.parent / "config.yaml").read_text()
    report = Path("sweep/report/tables/results.md").read_text()
    assert "must be even, found 33" in Path("sweep/report/index.html").read_text()
    assert "scaled" in report


def test_a_cell_that_cannot_be_composed_stops_the_sweep_before_it_starts(command):
    outcome = command(*SMALL, "-m", "attention=none,typo", "run_dir=sweep")
    assert outcome.code == 1
    assert "attention/typo" in outcome.error
    assert not list(Path("sweep").glob("*/scores.json"))


def test_a_second_start_runs_only_what_is_missing(command):
    first = command(*SMALL, "-m", "attention=none,scaled", "run_dir=sweep")
    assert first.code == 0, first.error
    kept, redone = (cell(f"attention-{name}") / "scores.json" for name in ("none", "scaled"))
    before = kept.stat().st_mtime_ns
    redone.unlink()
    # One more value does not move the others to new folders.
    second = command(*SMALL, "-m", "attention=none,uniform,scaled", "run_dir=sweep")
    assert second.code == 0, second.error
    assert kept.stat().st_mtime_ns == before
    assert f"{kept.parent.name} is finished already" in second.out
    assert json.loads(redone.read_text())["attention"] == "scaled"
    before = redone.stat().st_mtime_ns
    third = command(*SMALL, "-m", "attention=none,scaled", "run_dir=sweep", "resume=last")
    assert third.code == 0, third.error
    assert redone.stat().st_mtime_ns == before
    assert sorted(Path("sweep").glob("attention-*")) == sorted(
        cell(f"attention-{n}") for n in ("none", "scaled", "uniform")
    )


def test_one_checkpoint_is_not_for_all_cells(command):
    """Neither a file, nor the newest run, which ``resume=last`` would take for the sweep's folder."""
    Path("runs/2026-01-01_00-00-00/checkpoints").mkdir(parents=True)
    Path("runs/2026-01-01_00-00-00/checkpoints/last.ckpt").touch()
    for settings in (["resume=last"], ["resume=a.ckpt", "run_dir=sweep"]):
        outcome = command(*SMALL, "-m", "attention=none", *settings)
        assert outcome.code == 1
        assert "without resume" in outcome.error


@pytest.mark.parametrize(
    ("overrides", "name"),
    [
        ("attention=none,seed=1", "attention-none-seed-1"),
        ("data.train=[a/b.en,c d]", "data.train-a-b.en-c-d"),
        ("", "defaults"),
    ],
)
def test_a_cell_s_name_needs_no_quotes(overrides, name):
    assert cell_name(overrides) == name


def test_a_long_name_is_cut():
    names = {cell_name("key=" + "x" * 300 + end) for end in "ab"}
    assert [len(name) for name in names] == [100, 100]


def test_a_finished_cell_with_other_settings_is_not_taken_for_this_one(command):
    """The conf folder is not part of the command, so its defaults can have changed; here a recipe's name stays in both."""
    assert command(*SMALL, "-m", "attention=none,scaled", "run_dir=sweep").code == 0
    config = cell("attention-none") / "config.yaml"
    config.write_text(config.read_text().replace("learning_rate: 0.004", "learning_rate: 0.001"))
    outcome = command(*SMALL, "-m", "attention=none,scaled", "run_dir=sweep")
    assert outcome.code == 1
    assert "holds a finished run with learning_rate=0.001, here it is 0.004" in outcome.error
    assert "error: cells that failed: " in outcome.error


def test_cells_that_would_share_a_folder_are_refused(command):
    outcome = command(*SMALL, "-m", "cache_dir=a,b", "run_dir=sweep")
    assert outcome.code == 1
    assert "two cells of this sweep would write to" in outcome.error
    assert len(list(Path("sweep").glob("*/scores.json"))) == 1


def test_a_sweep_without_a_folder_has_one_dated_folder_with_its_report(command):
    outcome = command(*SMALL, "-m", "attention=none,scaled")
    assert outcome.code == 0, outcome.error
    (sweep,) = Path("runs").iterdir()
    assert len(list(sweep.glob("*/scores.json"))) == 2
    assert f"report: {sweep}/report/index.html" in outcome.out
    assert (sweep / "report" / "index.html").is_file()


def test_a_cell_without_a_kept_score_is_finished_too(command):
    for _ in range(2):
        outcome = command(*SMALL, "-m", "attention=none,scaled", "callbacks.best=null", "run_dir=sweep")
        assert outcome.code == 0, outcome.error
    assert outcome.out.count("is finished already") == 2
