"""Scores of parts and resamples are sacreBLEU's; equal systems do not differ, disjoint ones do."""

import numpy as np
import pytest
from sacrebleu.metrics import BLEU
from sacrebleu.significance import PairedTest

from seq2seq.report.bootstrap import CorpusBleu, draw, interval
from seq2seq.report.runs import read_run
from tests.report.conftest import COUNT, REFERENCES, forgetful, perfect, silent, slips, write_run


@pytest.fixture
def pair(tmp_path):
    def make(one, two):
        runs = [read_run(write_run(tmp_path / str(at), "scaled", 1, how)) for at, how in enumerate((one, two))]
        return runs, CorpusBleu(runs)

    return make


def test_every_draw_has_as_many_sentences_as_the_test_set():
    counts = draw(50, 200)
    assert counts.shape == (200, 50)
    assert set(counts.sum(axis=1).tolist()) == {50}
    assert np.array_equal(counts, draw(50, 200))
    assert not np.array_equal(counts[0], counts[1])


def test_the_interval_is_the_middle_95_percent():
    assert interval(np.arange(1001.0)) == (25.0, 975.0)


def test_scores_of_all_and_of_a_part_are_sacrebleus(pair):
    (run, _), bleu = pair(forgetful, perfect)
    hypotheses = [forgetful(reference) for reference in REFERENCES]
    assert bleu.score(run) == BLEU().corpus_score(hypotheses, [REFERENCES]).score
    part = [3, 11, 40, 41]
    expected = BLEU().corpus_score([hypotheses[at] for at in part], [[REFERENCES[at] for at in part]]).score
    assert bleu.score(run, part) == expected


def test_a_resample_is_scored_as_the_corpus_it_stands_for(pair):
    (run, _), bleu = pair(forgetful, perfect)
    counts = np.zeros((2, COUNT), dtype=np.int64)
    counts[0] = 1
    counts[1, [4, 5]] = 2, 1
    once, drawn = bleu.resampled(run, counts)
    assert once == bleu.score(run)
    hypotheses = [forgetful(REFERENCES[at]) for at in (4, 4, 5)]
    expected = BLEU().corpus_score(hypotheses, [[REFERENCES[at] for at in (4, 4, 5)]]).score
    assert drawn == pytest.approx(expected)


def test_identical_systems_do_not_differ(pair):
    (one, two), bleu = pair(slips(5), slips(5))
    assert bleu.p_value(one, two, 200) == 1.0


def test_disjoint_systems_differ(pair):
    (one, two), bleu = pair(perfect, silent)
    assert bleu.p_value(one, two, 1000) < 0.01


def test_equally_good_systems_do_not_differ(pair):
    """Both are wrong in every sixth sentence, at different places."""
    (one, two), bleu = pair(slips(6), slips(6, start=3))
    assert bleu.p_value(one, two, 1000) > 0.2


def test_the_test_is_sacrebleus_own(pair):
    (one, two), bleu = pair(slips(6), slips(4))
    test = PairedTest(
        [("other", two.hypotheses), ("this", one.hypotheses)],
        {"BLEU": BLEU()},
        [REFERENCES],
        test_type="bs",
        n_samples=300,
    )
    assert bleu.p_value(one, two, 300) == test()[1]["BLEU"][1].p_value
