"""The sentences on which two systems differ most."""

import pytest
from sacrebleu.metrics import BLEU

from seq2seq.report.differences import biggest
from seq2seq.report.runs import read_run
from tests.report.conftest import LENGTHS, REFERENCES, SOURCES, forgetful, perfect, slips, write_run


def test_the_largest_gains_come_first_with_all_texts(tmp_path):
    run = read_run(write_run(tmp_path / "a", "scaled", 1, perfect))
    baseline = read_run(write_run(tmp_path / "b", "none", 1, forgetful))
    found = biggest(run, baseline, most=4, drawn=1)
    gains = [each.gain for each in found[:4]]
    assert gains == sorted(gains, reverse=True)
    # The more words it forgets, the lower its score: the ten longest sentences lead.
    assert {LENGTHS[each.id] for each in found[:4]} == {15}
    first = found[0]
    assert (first.source, first.reference, first.hypothesis) == (
        SOURCES[first.id],
        REFERENCES[first.id],
        REFERENCES[first.id],
    )
    assert first.baseline_hypothesis == forgetful(REFERENCES[first.id])
    expected = BLEU(effective_order=True).sentence_score(first.baseline_hypothesis, [first.reference]).score
    assert (first.bleu, first.baseline_bleu) == pytest.approx((100.0, expected))


def test_sentences_with_weights_are_added(tmp_path):
    """Sentence 11, of 15 words, has weights; if it is not among the first it comes after them."""
    run = read_run(write_run(tmp_path / "a", "scaled", 1, perfect))
    baseline = read_run(write_run(tmp_path / "b", "none", 1, forgetful))
    found = biggest(run, baseline, most=0, drawn=2)
    assert [(each.id, each.drawn) for each in found] == [(11, True)]


def test_no_gain_no_sentence(tmp_path):
    run = read_run(write_run(tmp_path / "a", "scaled", 1, slips(3)))
    assert biggest(run, run) == []
    assert biggest(run, read_run(write_run(tmp_path / "b", "none", 1, perfect))) == []
