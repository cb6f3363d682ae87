"""BLEU by source length: bins partition the sentences, and each is a corpus of its own."""

import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seq2seq.metrics.by_length import bleu_by_source_length, length_edges
from seq2seq.metrics.corpus import corpus_scores


def test_edges_by_hand():
    """Nine sentences, three bins: lengths 1 1 1 | 2 2 3 | 7 8 9."""
    assert length_edges([1, 9, 2, 1, 3, 8, 2, 7, 1], 3) == [(1, 1), (2, 3), (7, 9)]


def test_one_length_is_one_bin():
    assert length_edges([5, 5, 5], 6) == [(5, 5)]


@given(st.lists(st.integers(1, 40), min_size=1, max_size=200), st.integers(1, 10))
def test_bins_partition(lengths, bins):
    edges = length_edges(lengths, bins)
    assert len(edges) <= bins
    assert sum(sum(first <= length <= last for length in lengths) for first, last in edges) == len(lengths)
    assert all(one[1] < other[0] for one, other in itertools.pairwise(edges))


def test_each_bin_is_scored_as_a_corpus():
    generator = random.Random(3)
    references = [" ".join(generator.choices("abcdefgh", k=generator.randint(4, 12))) for _ in range(60)]
    hypotheses = [reference[:-2] for reference in references]
    bins = bleu_by_source_length(references, hypotheses, references, bins=3)
    assert sum(part.n for part in bins) == 60
    for part in bins:
        inside = [place for place in range(60) if part.first <= len(references[place].split()) <= part.last]
        assert part.n == len(inside)
        expected = corpus_scores([hypotheses[i] for i in inside], [references[i] for i in inside]).bleu
        assert part.bleu == pytest.approx(expected)
