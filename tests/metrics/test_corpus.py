"""Corpus scores: torchmetrics in validation, sacreBLEU in the test, one value."""

import random

import pytest
import sacrebleu
from torchmetrics.text import SacreBLEUScore

from seq2seq.metrics.corpus import bleu_tokenizer, corpus_scores

REFERENCES = [
    "Ein Mann mit einem orangefarbenen Hut, der etwas anstarrt.",
    "Ein Boston Terrier läuft über saftig-grünes Gras vor einem weißen Zaun.",
    "Fünf Leute in Winterjacken und mit Helmen stehen im Schnee.",
    "Leute reparieren das Dach eines Hauses.",
]


def corrupted(seed):
    generator = random.Random(seed)
    return [" ".join(word for word in reference.split() if generator.random() > 0.15) for reference in REFERENCES]


@pytest.mark.parametrize("seed", range(5))
def test_torchmetrics_equals_sacrebleu(seed):
    hypotheses = corrupted(seed)
    scores = corpus_scores(hypotheses, REFERENCES)
    targets = [[reference] for reference in REFERENCES]
    assert 20 < scores.bleu < 100
    assert 100 * SacreBLEUScore()(hypotheses, targets).item() == pytest.approx(scores.bleu, abs=1e-3)


def test_validation_scores_the_corpus_and_not_the_mean_of_batches():
    hypotheses = corrupted(1)
    metric = SacreBLEUScore()
    for hypothesis, reference in zip(hypotheses, REFERENCES, strict=True):
        metric.update([hypothesis], [[reference]])
    assert 100 * metric.compute().item() == pytest.approx(corpus_scores(hypotheses, REFERENCES).bleu, abs=1e-3)


def test_bleu_by_hand():
    """Eleven of 12 words in order, one missing at the end: precisions are 1, so only the brevity penalty is left."""
    reference = "the quick brown fox jumps over the lazy dog by the river"
    hypothesis = "the quick brown fox jumps over the lazy dog by the"
    scores = corpus_scores([hypothesis], [reference])
    assert scores.bleu == pytest.approx(100 * 2.718281828459045 ** (1 - 12 / 11))
    assert scores.bleu_signature == f"nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:{sacrebleu.__version__}"
    assert scores.chrf_signature.startswith("nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:")


def test_identical_texts_score_100():
    scores = corpus_scores(REFERENCES, REFERENCES)
    assert scores.bleu == pytest.approx(100)
    assert scores.chrf == pytest.approx(100)


@pytest.mark.parametrize(("language", "name"), [("de", "13a"), ("ja", "char"), ("zh_CN", "zh"), ("ja-JP", "char")])
def test_languages_without_spaces_have_a_tokenizer_of_their_own(language, name):
    assert bleu_tokenizer(language) == name
