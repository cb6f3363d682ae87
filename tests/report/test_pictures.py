"""Pictures and tables are drawn from a run folder alone."""

import json
import subprocess
import sys

import numpy as np
import pytest
from rich.console import Console

from seq2seq.report.heatmaps import draw_heatmaps, heatmap
from seq2seq.report.style import legend, new_figure
from seq2seq.report.summary import print_summary

SCORES = {
    "attention": "scaled",
    "data": "cldr",
    "seed": 3,
    "bleu": 97.654,
    "bleu_signature": "tok:13a",
    "chrf": 98.765,
    "chrf_signature": "nc:6",
    "loss": 0.0314,
    "n": 30,
    "truncated": 2,
    "parameters": {"encoder": 10, "total": 1234567},
    "train_seconds": 90.0,
    "train_tokens_per_s": 13500.4,
    "by_source_length": [{"from": 1, "to": 5, "n": 10, "bleu": 99.9}, {"from": 6, "to": 30, "n": 20, "bleu": 95.04}],
}


@pytest.fixture
def run(tmp_path):
    (tmp_path / "scores.json").write_text(json.dumps(SCORES))
    weights = np.array([[1.0, 0.0], [0.25, 0.75]], dtype=np.float32)
    np.savez(tmp_path / "attention.npz", ids=[7], weights_7=weights, source_7=["$x", "</s>"], target_7=["y$", "</s>"])
    return tmp_path


def test_the_table_says_what_the_scores_say(run):
    console = Console(record=True, width=120, file=open("/dev/null", "w"))  # noqa: SIM115
    print_summary(run, console)
    text = console.export_text()
    for cell in ("scaled", "cldr", "97.65", "98.77", "0.031", "1,234,567", "1.5", "13,500", "30 sentences, seed 3"):
        assert cell in text
    for cell in ("1-5", "6-30", "99.9", "95.0", "2 of 30 hypotheses", "scores.json", "attention.npz"):
        assert cell in text


def test_one_heatmap_a_sentence(run):
    (path,) = draw_heatmaps(run)
    assert path == run / "attention" / "7.png"
    assert path.read_bytes().startswith(b"\x89PNG")


def test_pictures_are_spread_over_lengths(tmp_path):
    """Twenty sentences of 1 to 20 tokens; of four, the shortest, the longest and two between at a third each."""
    arrays = {"ids": np.arange(20)}
    for sentence in range(20):
        arrays[f"weights_{sentence}"] = np.ones((1, sentence + 1))
        arrays[f"source_{sentence}"] = np.array(["a"] * (sentence + 1))
        arrays[f"target_{sentence}"] = np.array(["b"])
    np.savez(tmp_path / "attention.npz", **arrays)
    assert [path.stem for path in draw_heatmaps(tmp_path, most=4)] == ["0", "6", "13", "19"]


def test_a_heatmap_shows_the_weights_with_their_tokens():
    weights = np.array([[1.0, 0.0, 0.0], [0.2, 0.3, 0.5]])
    axes = heatmap(weights, np.array(["a", "b", "</s>"]), np.array(["x", "</s>"])).axes[0]
    assert np.array_equal(axes.images[0].get_array(), weights)
    assert [label.get_text() for label in axes.get_xticklabels()] == ["a", "b", "</s>"]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["x", "</s>"]


def test_reports_need_no_torch(run):
    modules = "seq2seq.report.compare, seq2seq.report.heatmaps, seq2seq.report.summary"
    code = f"import {modules}, sys; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_a_legend_of_long_names_stays_inside_the_figure():
    names = [f"initial_state encoder=rnn_reversed data.splits=[{place}]" for place in range(12)]
    figure, (axes,) = new_figure()
    for name in names:
        axes.plot([0, 1], [0, 1], label=name)
    legend(figure, axes)
    figure.draw_without_rendering()
    box = figure.legends[0].get_window_extent()
    assert box.x0 >= 0
    assert box.x1 <= figure.bbox.x1
    assert axes.get_window_extent().height > 2 * figure.dpi
