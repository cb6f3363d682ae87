"""Curves over positions and distances, and the alignment table, from probes whose numbers are known."""

import numpy as np
import pytest

from seq2seq.report.alignments import alignment_grid, error_rate, looks, sentences
from seq2seq.report.gradients import ratio, reach
from seq2seq.report.positions import accuracy, recall, shares_grid
from seq2seq.report.progress import curves
from seq2seq.report.runs import Weights, find_runs, read_run
from seq2seq.report.systems import group
from tests.report.conftest import write_run


@pytest.fixture
def systems(runs):
    return {system.name: system for system in group(find_runs([runs])[0])}


def test_accuracy_adds_up_over_seeds(systems):
    shares = accuracy(systems["none"])
    assert [(share.position, share.share, share.count) for share in shares] == [
        (1, 0.9, 200),
        (2, 0.75, 160),
        (3, 0.5, 40),
    ]
    assert [share.position for share in accuracy(systems["none"], fewest=41)] == [1, 2]


def test_accuracy_of_runs_with_unequal_longest_sentences(systems):
    system = systems["none"]
    longer = dict(system.runs[1].probes)
    longer["accuracy_correct"], longer["accuracy_count"] = np.array([0, 0, 0, 5]), np.array([100, 80, 20, 50])
    system.runs[1].probes.update(longer)
    assert [share.share for share in accuracy(system)] == [0.45, 0.375, 0.25, 0.1]


def test_recall_by_place_counts_long_phrases_only(systems):
    """Phrases of 8 to 15 words; the second half is recalled: place 4 (from 0) of 8 is, of 9 and more it is not."""
    shares = {share.position: share for share in recall(systems["none"])}
    assert shares[1].count == 2 * 80
    assert shares[1].share == 0.0
    assert shares[5].share == pytest.approx(1 / 8)
    assert shares[14].share == 1.0
    # Only ten phrases a run have a 15th word.
    assert shares[14].count == 2 * 20
    assert 15 not in shares
    assert all(share.share == 1.0 for share in recall(systems["scaled"]))


def test_no_items_no_recall(tmp_path):
    run = read_run(write_run(tmp_path / "run"))
    for name in ("item_sentence", "item_position", "item_count", "item_recalled"):
        run.probes[name] = run.probes[name][:0]
    assert recall(group([run])[0]) == []


def test_shares_as_a_table(systems):
    grid = shares_grid("a", "b", {"none": accuracy(systems["none"]), "scaled": accuracy(systems["scaled"], 100)})
    assert grid.rows[2] == ["3", "50.00 (n=40)", ""]


def test_gradient_reach_is_relative_to_the_sentence_and_by_distance(systems):
    """45 tokens: distances 0 to 21 twice, 22 once. The norm halves with each step, or is the same everywhere."""
    vanishing, direct = reach(systems["none"]), reach(systems["scaled"])
    mean = (2 * sum(0.5**at for at in range(22)) + 0.5**22) / 45
    assert [part.distance for part in vanishing] == list(range(23))
    assert [part.count for part in vanishing[21:]] == [2 * 12 * 2, 2 * 12]
    for part in vanishing:
        assert (part.lower, part.median, part.upper) == pytest.approx((0.5**part.distance / mean,) * 3, rel=1e-5)
    assert all(part.median == pytest.approx(1.0) for part in direct)
    found = ratio("scaled", "none", {"none": vanishing, "scaled": direct})
    assert found.distance == 20
    assert found.ratio == pytest.approx(mean / 0.5**20, rel=1e-5)


def test_gradients_beyond_the_sentence_and_of_few_sentences_do_not_count(tmp_path):
    run = read_run(write_run(tmp_path / "run"))
    norms = np.full((12, 8), np.nan, dtype=np.float32)
    norms[:11, :3] = [1.0, 4.0, 1.0]
    norms[11] = 1.0
    run.probes["gradient_norm"] = norms
    run.probes["gradient_length"] = np.array([3] * 11 + [8])
    run.probes["gradient_distance"] = np.array([[0, 1, 0, *[-1] * 5]] * 11 + [[0, 1, 2, 3, 3, 2, 1, 0]])
    parts = reach(group([run])[0])
    assert [(part.distance, part.median, part.count) for part in parts] == [(0, 0.5, 24), (1, 2.0, 13)]


def test_the_ratio_falls_back_to_the_largest_common_distance(systems):
    parts = reach(systems["scaled"])
    assert ratio("a", "b", {"a": parts[:15], "b": parts[:12]}).distance == 11
    assert ratio("a", "b", {"a": parts}) is None


def test_alignment_error_rate_by_hand():
    """3 of 4 predicted and of 4 true links: 1 - 6/8."""
    probe = {"alignment_found": [3], "alignment_predicted": [4], "alignment_true": [4]}
    probe = {name: np.array(value) for name, value in probe.items()}
    assert error_rate(probe) == 0.25
    assert error_rate(probe | {"alignment_found": np.array([4])}) == 0.0
    assert error_rate(probe | {"alignment_predicted": np.array([0])}) is None
    assert error_rate(probe | {"alignment_true": np.array([0])}) is None


def test_the_alignment_table_leaves_empty_what_there_is_not(systems):
    grid = alignment_grid(list(systems.values()))
    assert grid.rows == [["none", "2", "", "", ""], ["scaled", "2", "0.250 ± 0.000", "0.500 ± 0.000", "0.750 ± 0.000"]]


def test_weights_to_look_at(systems):
    found = sentences(list(systems.values()))
    assert found["systems"] == ["none", "scaled"]
    assert [sentence["id"] for sentence in found["sentences"]] == [3, 11]
    views = found["sentences"][0]["views"]
    assert views["none"]["looks"] == []
    (look,) = views["scaled"]["looks"]
    assert (look["name"], look["itself"]) == ("decoder", False)
    assert look["weights"][0][:2] == [900, 14]
    assert views["scaled"]["source"][-1] == "</s>"
    assert views["scaled"]["seed"] == 1


def test_layers_that_look_at_nothing_are_not_shown():
    zeros, some = np.zeros((2, 3, 3), np.float16), np.full((1, 3, 3), 1 / 3, np.float16)
    weights = Weights(np.zeros((1, 3)), ("a", "b", "</s>"), ("x",), encoder=(zeros, some))
    assert [look["name"] for look in looks(weights)] == ["encoder, layer 2"]


def test_curves_go_along_what_every_run_logged(systems):
    along, found = curves(list(systems.values()), "train/tokens_seen")
    assert along == "target tokens seen"
    assert [(curve.system, curve.seed) for curve in found] == [("none", 1), ("none", 2), ("scaled", 1), ("scaled", 2)]
    assert found[0].along.tolist() == [25000, 50000]
    assert found[0].bleu.tolist() == [10.0, 20.0]
    systems["scaled"].runs[0].progress.pop("train/tokens_seen")
    along, found = curves(list(systems.values()), "train/tokens_seen")
    assert along == "training steps"
    assert found[0].along.tolist() == [20, 40]
