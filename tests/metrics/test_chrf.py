"""chrF over batches against sacreBLEU's score of the whole corpus."""

import pytest
import sacrebleu

from seq2seq.metrics.chrf import ChrF

HYPOTHESES = ["the cat sat", "on the mat", "", "ein grüner Hügel", "80\xa0m"]
REFERENCES = ["the cat sat", "on a mat today", "nothing", "ein grüner Baum", "80 m\xa0und mehr"]


def test_batches_of_any_size_score_as_the_corpus():
    wanted = sacrebleu.corpus_chrf(HYPOTHESES, [REFERENCES]).score
    for size in (1, 2, 5):
        metric = ChrF()
        for start in range(0, 5, size):
            metric.update(HYPOTHESES[start : start + size], REFERENCES[start : start + size])
        assert metric.compute().item() == pytest.approx(wanted, rel=1e-6)


def test_two_processes_add_their_counts_and_a_new_epoch_forgets():
    metrics = [ChrF(), ChrF()]
    for rank, metric in enumerate(metrics):
        metric.update(HYPOTHESES[rank::2], REFERENCES[rank::2])
    both = ChrF()
    both.counts = sum(metric.counts for metric in metrics)
    both._update_count = 1
    assert both.compute().item() == pytest.approx(sacrebleu.corpus_chrf(HYPOTHESES, [REFERENCES]).score, rel=1e-6)
    metrics[0].reset()
    metrics[0].update(["same"], ["same"])
    assert metrics[0].compute().item() == pytest.approx(100)
