"""Bins partition the test set, and each is scored as a corpus of its own."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics import BLEU

from seq2seq.errors import ConfigError
from seq2seq.report.bootstrap import CorpusBleu
from seq2seq.report.lengths import bins_of, by_length, lengths_grid, source_lengths
from seq2seq.report.runs import find_runs, read_run
from seq2seq.report.systems import group
from tests.report.conftest import COUNT, LENGTHS, REFERENCES, forgetful, write_run


def test_edges_by_hand():
    lengths = np.array([2, 5, 6, 7, 12, 31])
    assert bins_of(lengths, edges=[5, 10, 20]) == [(2, 5), (6, 10), (11, 20), (21, 31)]
    assert bins_of(lengths, edges=[1, 5, 13, 25]) == [(2, 5), (6, 13), (26, 31)]
    assert bins_of(lengths, edges=[40]) == [(2, 31)]


lengths_of_sentences = st.lists(st.integers(1, 60), min_size=1, max_size=200).map(np.array)


@given(lengths_of_sentences, st.lists(st.integers(1, 70), min_size=1, max_size=6, unique=True).map(sorted))
def test_given_edges_partition(lengths, edges):
    check_partition(lengths, bins_of(lengths, edges=edges))


@given(lengths_of_sentences, st.integers(1, 8))
def test_equal_bins_partition(lengths, bins):
    check_partition(lengths, bins_of(lengths, bins))


def check_partition(lengths, bins):
    counts = [int(((lengths >= first) & (lengths <= last)).sum()) for first, last in bins]
    assert sum(counts) == len(lengths)
    assert all(counts)
    assert all(one[1] < two[0] for one, two in itertools.pairwise(bins))


@pytest.mark.parametrize("edges", [[], [0, 5], [5, 5], [10, 5]])
def test_edges_that_do_not_rise_are_refused(edges):
    with pytest.raises(ConfigError, match="--edges"):
        bins_of(np.array([3, 4]), edges=edges)


def test_no_bins_are_refused():
    with pytest.raises(ConfigError, match="--bins 0"):
        bins_of(np.array([3, 4]), bins=0)


def test_each_bin_is_scored_by_sacrebleu(runs):
    found, _ = find_runs([runs])
    lengths = source_lengths(found)
    assert lengths.tolist() == LENGTHS
    scored = by_length(group(found), CorpusBleu(found), lengths, bins_of(lengths, edges=[8, 12]), 100)
    assert [(part.first, part.last, part.n) for part in scored["none"]] == [(4, 8, 50), (9, 12, 40), (13, 15, 30)]
    for name, folders in (("none", ("0", "1")), ("scaled", ("2", "10"))):
        for part in scored[name]:
            inside = [place for place in range(COUNT) if part.first <= LENGTHS[place] <= part.last]
            by_hand = []
            for folder in folders:
                hypotheses = read_run(runs / folder).hypotheses
                score = BLEU().corpus_score([hypotheses[at] for at in inside], [[REFERENCES[at] for at in inside]])
                by_hand.append(score.score)
            assert part.by_seed == pytest.approx(by_hand)
            assert part.bleu == pytest.approx(sum(by_hand) / 2)
            assert part.interval.low <= part.bleu <= part.interval.high


def test_what_is_always_right_has_no_spread_and_what_is_forgotten_is_seen(tmp_path):
    run = read_run(write_run(tmp_path / "run", "none", 1, forgetful))
    lengths = source_lengths([run])
    short, long = by_length(group([run]), CorpusBleu([run]), lengths, bins_of(lengths, edges=[8]), 100)["none"]
    assert (short.bleu, *short.interval) == pytest.approx((100.0, 100.0, 100.0))
    assert long.bleu < 40
    assert long.interval.low < long.bleu < long.interval.high


def test_items_are_counted_where_a_run_was_probed(tmp_path):
    plain = read_run(write_run(tmp_path / "plain", probed=False))
    probed = read_run(write_run(tmp_path / "probed", seed=2))
    assert source_lengths([plain, probed], "items").tolist() == LENGTHS
    with pytest.raises(ConfigError, match="--by items"):
        source_lengths([plain], "items")


def test_the_table_has_a_row_for_each_bin(runs):
    found, _ = find_runs([runs])
    lengths = source_lengths(found)
    grid = lengths_grid(by_length(group(found), CorpusBleu(found), lengths, [(4, 4), (5, 15)], 50), "words")
    assert list(grid.headers) == ["words", "n", "none", "scaled"]
    assert [row[:2] for row in grid.rows] == [["4", "10"], ["5-15", "110"]]
