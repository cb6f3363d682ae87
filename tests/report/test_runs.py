"""Run folders are read whole or named and left out; runs on unequal test sets are refused."""

import json
from pathlib import Path

import numpy as np
import pytest

from seq2seq.errors import ConfigError
from seq2seq.report.runs import check_same_test, find_runs, read_run
from tests.report.conftest import COUNT, REFERENCES, SOURCES, write_run


def test_a_run_is_read_as_it_was_written(tmp_path):
    run = read_run(write_run(tmp_path / "run", "scaled", 3))
    assert (run.attention, run.seed, run.tokenizer) == ("scaled", 3, "13a")
    assert run.ids == tuple(range(COUNT))
    assert (run.sources[5], run.references[5], run.hypotheses[5]) == (SOURCES[5], REFERENCES[5], REFERENCES[5])
    assert run.progress["valid/bleu"].tolist() == [10.0, 20.0]
    assert run.progress["train/minutes"].tolist() == [0.75, 1.5]
    assert run.weights[3].source == (*SOURCES[3].split(), "</s>")
    assert run.weights[3].weights[0, 0] == pytest.approx(0.9)
    assert run.probes["accuracy_count"].tolist() == [100, 80, 20]


def test_a_sweep_is_read_in_the_order_of_its_cells(runs):
    found, failed = find_runs([runs])
    assert [run.folder.name for run in found] == ["0", "1", "2", "10"]
    assert failed == []


def test_a_folder_named_twice_is_one_run(runs):
    found, _ = find_runs([runs, runs / "10", str(runs / "2")])
    assert len(found) == 4


def test_an_older_run_without_probes_and_logs_is_read(tmp_path):
    folder = write_run(tmp_path / "run", probed=False)
    (folder / "metrics.csv").unlink()
    (folder / "attention.npz").unlink()
    run = read_run(folder)
    assert run.probes is None
    assert run.progress == {}
    assert run.weights == {}


def test_a_step_that_was_repeated_counts_once(tmp_path):
    folder = write_run(tmp_path / "run")
    (folder / "metrics.csv").write_text("step,valid/bleu,valid/loss\n9,1.0,3.0\n19,2.0,2.0\n9,1.5,2.5\n")
    progress = read_run(folder).progress
    assert progress["step"].tolist() == [9, 19]
    assert progress["valid/bleu"].tolist() == [1.5, 2.0]


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def shorten(path: Path) -> None:
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))


def without(name: str):
    def damage(path: Path) -> None:
        scores = json.loads(path.read_text())
        del scores[name]
        path.write_text(json.dumps(scores))

    return damage


def one_array_only(path: Path) -> None:
    np.savez(path, ids=np.arange(3))


@pytest.mark.parametrize(
    ("name", "damage", "words"),
    [
        ("scores.json", Path.unlink, ["scores.json is missing", "not finished"]),
        ("scores.json", cut, ["scores.json is no whole JSON file"]),
        ("scores.json", without("chrf"), ["scores.json lacks chrf"]),
        ("hypotheses.tsv", Path.unlink, ["hypotheses.tsv is missing"]),
        ("hypotheses.tsv", cut, ["hypotheses.tsv", "half-written"]),
        ("hypotheses.tsv", shorten, ["hypotheses.tsv has 119 sentences, scores.json says 120"]),
        ("metrics.csv", cut, ["metrics.csv", "half-written"]),
        ("attention.npz", cut, ["attention.npz cannot be read"]),
        ("attention.npz", one_array_only, ["attention.npz lacks", "weights_0"]),
        ("probes.npz", cut, ["probes.npz cannot be read"]),
        ("probes.npz", one_array_only, ["probes.npz lacks", "gradient_norm"]),
    ],
)
def test_a_missing_or_half_written_file_is_named_and_its_run_left_out(runs, name, damage, words):
    damage(runs / "1" / name)
    found, failed = find_runs([runs])
    assert [run.folder.name for run in found] == ["0", "2", "10"]
    assert [folder.name for folder, _ in failed] == ["1"]
    for word in words:
        assert word in failed[0].reason


def test_a_failed_cell_says_the_last_line_of_its_error(runs):
    (runs / "11").mkdir()
    (runs / "11" / "error.txt").write_text("Traceback\n  somewhere\nConfigError: hidden_size must be even\n")
    _, failed = find_runs([runs])
    assert failed == [(runs / "11", "ConfigError: hidden_size must be even")]


def test_other_folders_of_a_sweep_are_no_runs(runs):
    (runs / "report").mkdir()
    assert find_runs([runs])[1] == []


def test_paths_without_a_run_are_refused(tmp_path):
    with pytest.raises(ConfigError, match="nowhere is no folder"):
        find_runs([tmp_path / "nowhere"])
    with pytest.raises(ConfigError, match="neither a run folder"):
        find_runs([tmp_path])
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "config.yaml").write_text("seed: 1\n")
    with pytest.raises(ConfigError, match=r"no finished run: .*run: scores.json is missing"):
        find_runs([tmp_path])


def edited(folder: Path, change) -> Path:
    path = folder / "hypotheses.tsv"
    header, *rows = path.read_text().splitlines()
    path.write_text("\n".join([header, *("\t".join(change(row.split("\t"))) for row in rows)]) + "\n")
    return folder


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda row: [str(int(row[0]) + 1), *row[1:]], ["row 1", "id 0 and 1"]),
        (lambda row: [row[0], row[1].replace("yewroot", "weed"), *row[2:]], ["source", "yewroot", "weed"]),
        (lambda row: [*row[:2], row[2] + "!" * (row[0] == "7"), row[3]], ["row 8", "reference", "!"]),
    ],
)
def test_unequal_test_sets_are_refused(tmp_path, change, words):
    one = write_run(tmp_path / "one")
    two = edited(write_run(tmp_path / "two"), change)
    with pytest.raises(ConfigError) as refused:
        check_same_test([read_run(one), read_run(two)])
    for word in (str(one), str(two), "not tested on the same sentences", *words):
        assert word in str(refused.value)


def test_test_sets_of_unequal_size_are_refused(tmp_path):
    one = write_run(tmp_path / "one")
    two = write_run(tmp_path / "two", n=COUNT - 1)
    lines = (two / "hypotheses.tsv").read_text().splitlines()[:-1]
    (two / "hypotheses.tsv").write_text("\n".join(lines) + "\n")
    with pytest.raises(ConfigError, match="120 and 119"):
        check_same_test([read_run(one), read_run(two)])


def test_different_tokenizers_are_refused(tmp_path):
    one = write_run(tmp_path / "one")
    two = write_run(tmp_path / "two", bleu_signature="nrefs:1|case:mixed|eff:no|tok:char|smooth:exp|version:2.6.0")
    with pytest.raises(ConfigError, match="13a and char"):
        check_same_test([read_run(one), read_run(two)])
