"""The main table says what sacreBLEU says of the text in the run folders, over paired seeds."""

import csv
import io
import statistics

import pytest
from sacrebleu.metrics import BLEU, CHRF

from seq2seq.report.bootstrap import CorpusBleu
from seq2seq.report.runs import read_run
from seq2seq.report.systems import baselines, group
from seq2seq.report.table import disagreements, main_table, origin_grid, raw_grid, results_grid
from tests.report.conftest import forgetful, perfect, slips, write_run


def table_of(folders, resamples=200):
    runs = [read_run(folder) for folder in folders]
    bleu = CorpusBleu(runs)
    systems = group(runs)
    return {row.system.name: row for row in main_table(systems, bleu, baselines(systems), resamples)}, bleu


def by_hand(folder, metric):
    """sacreBLEU run on what is in ``hypotheses.tsv``."""
    with (folder / "hypotheses.tsv").open(newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    return metric.corpus_score([row["hypothesis"] for row in rows], [[row["reference"] for row in rows]]).score


def test_scores_are_sacrebleus_over_seeds(runs):
    folders = [runs / name for name in ("0", "1", "2", "10")]
    rows, bleu = table_of(folders)
    for name, (one, two) in {"none": folders[:2], "scaled": folders[2:]}.items():
        for spread, metric in ((rows[name].bleu, BLEU()), (rows[name].chrf, CHRF())):
            values = [by_hand(one, metric), by_hand(two, metric)]
            assert spread.mean == pytest.approx(sum(values) / 2)
            assert spread.sd == pytest.approx(statistics.stdev(values))
    assert rows["scaled"].bleu.sd > 0.1
    assert "tok:13a" in bleu.signature


def test_the_baseline_is_compared_to_nothing_and_one_seed_has_no_deviation(tmp_path):
    rows, _ = table_of([write_run(tmp_path / "a", "none"), write_run(tmp_path / "b", "scaled")])
    assert rows["none"].versus is None
    assert rows["none"].bleu.sd is None
    assert rows["scaled"].bleu.text() == "100.00"


def test_seeds_are_paired(tmp_path):
    """Seed 1 is good and seed 2 bad in both systems: paired, they do not differ at all; crossed, they would by far."""
    folders = [
        write_run(tmp_path / f"{name}{seed}", name, seed, how)
        for name in ("none", "scaled")
        for seed, how in ((1, perfect), (2, forgetful))
    ]
    versus = table_of(folders)[0]["scaled"].versus
    assert versus.p_values == {1: 1.0, 2: 1.0}
    assert versus.delta == 0.0
    assert versus.interval == (0.0, 0.0)


def test_only_shared_seeds_are_compared(tmp_path):
    folders = [
        write_run(tmp_path / "a", "none", 1, forgetful),
        write_run(tmp_path / "b", "none", 2, slips(3)),
        write_run(tmp_path / "c", "scaled", 2, slips(4)),
        write_run(tmp_path / "d", "scaled", 3, perfect),
    ]
    rows, _ = table_of(folders)
    versus = rows["scaled"].versus
    assert versus.p_values.keys() == {2}
    assert versus.delta == pytest.approx(by_hand(folders[2], BLEU()) - by_hand(folders[1], BLEU()))
    assert versus.interval.low < versus.delta < versus.interval.high


def test_a_large_difference_is_significant_for_every_seed(runs):
    versus = table_of([runs / name for name in ("0", "1", "2", "10")], 1000)[0]["scaled"].versus
    assert versus.p_largest < 0.01
    assert versus.interval.low > 0
    assert versus.p_median == statistics.median(versus.p_values.values())


def test_a_score_that_is_not_that_of_its_hypotheses_is_said(tmp_path):
    runs = [read_run(write_run(tmp_path / "a", seed=1)), read_run(write_run(tmp_path / "b", seed=2, bleu=55.0))]
    (note,) = disagreements(runs, CorpusBleu(runs))
    assert str(tmp_path / "b") in note
    assert "55.00" in note
    assert "100.00" in note


def test_tables_hold_costs_and_origin(runs):
    rows, bleu = table_of([runs / name for name in ("0", "1", "2", "10")])
    reading = results_grid(list(rows.values()))
    scaled = dict(zip(reading.headers, reading.rows[1], strict=True))
    assert scaled["system"] == "scaled"
    costs = [scaled[name] for name in ("parameters", "tokens seen", "minutes", "tokens/s", "peak MiB")]
    assert costs == ["1,234", "50,000", "1.5", "556", "256"]
    assert reading.rows[0][4:8] == ["", "", "", ""]

    raw = list(csv.DictReader(io.StringIO(raw_grid(list(rows.values()), bleu).csv())))
    assert float(raw[1]["bleu"]) == rows["scaled"].bleu.mean
    assert raw[1]["git_commit"] == "0123456789ab"
    assert raw[1]["versions"] == "torch 2.13.0, sacrebleu 2.6.0"
    assert raw[0]["delta_bleu"] == ""
    assert raw[1]["p_by_seed"].startswith("1:0.0")

    origin = origin_grid([row.system for row in rows.values()], bleu, "nc:6")
    assert [row[1] for row in origin.rows] == ["1", "2", "1", "2"]
    assert "tok:13a" in origin.title
    assert "nc:6" in origin.title


def test_markdown_keeps_its_columns_whatever_a_cell_holds(tmp_path):
    rows, bleu = table_of([write_run(tmp_path / "a|b", "none")])
    text = origin_grid([row.system for row in rows.values()], bleu, "nc:6").markdown()
    assert "a\\|b" in text
    lines = text.splitlines()[2:]
    assert {line.replace("\\|", "").count("|") for line in lines} == {7}
