"""Corpus BLEU of resampled test sets: sacreBLEU's own statistics of each sentence, added up in other proportions.

Source: Koehn 2004, "Statistical Significance Tests for Machine Translation Evaluation", W04-3250; the test itself is
sacreBLEU's.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from sacrebleu.metrics import BLEU
from sacrebleu.significance import PairedTest

from seq2seq.report.runs import Run

SEED = 12345
PERCENTILES = (2.5, 97.5)


class Interval(NamedTuple):
    """The middle 95% of the resamples."""

    low: float
    high: float


def interval(values: np.ndarray) -> Interval:
    """Of scores ``[R]`` of R resamples."""
    return Interval(*np.percentile(values, PERCENTILES).tolist())


def draw(sentences: int, resamples: int) -> np.ndarray:
    """How often each sentence is in each resample, ``[R, N]``; every row adds up to N. The same on every call."""
    return np.random.default_rng(SEED).multinomial(sentences, np.full(sentences, 1 / sentences), size=resamples)


class CorpusBleu:
    """BLEU of runs on one test set, of any part of it and of resamples.

    Args:
        runs: all on the same test sentences, scored with the same tokenizer.
    """

    def __init__(self, runs: Sequence[Run]):
        # Forced, as nobody asks here whether the text looks tokenised.
        self.metric = BLEU(tokenize=runs[0].tokenizer, references=[list(runs[0].references)], force=True)
        self._statistics = {
            run.folder: np.array(self.metric._extract_corpus_statistics(run.hypotheses, None), dtype=np.float64)
            for run in runs
        }
        self.signature = str(self.metric.get_signature())

    def score(self, run: Run, places: Sequence[int] | np.ndarray | None = None) -> float:
        """0 to 100, of the sentences at ``places``, or of all."""
        return self._score(self._part(run, places).sum(axis=0))

    def resampled(self, run: Run, counts: np.ndarray, places: Sequence[int] | np.ndarray | None = None) -> np.ndarray:
        """Scores ``[R]`` of the resamples ``[R, N]`` of the N sentences at ``places``, or of all."""
        return np.array([self._score(total) for total in counts.astype(np.float64) @ self._part(run, places)])

    def p_value(self, run: Run, other: Run, resamples: int) -> float:
        """sacreBLEU's paired bootstrap test of two runs: the chance of such a difference between equals."""
        if np.array_equal(self._statistics[run.folder], self._statistics[other.folder]):
            # sacreBLEU counts the resamples that differ by strictly more, so of two equal systems it says 1 / (R + 1).
            return 1.0
        systems = [("other", other.hypotheses), ("this", run.hypotheses)]
        test = PairedTest(systems, {"BLEU": self.metric}, None, test_type="bs", n_samples=resamples)
        return float(test()[1]["BLEU"][1].p_value)

    def _part(self, run: Run, places: Sequence[int] | np.ndarray | None) -> np.ndarray:
        statistics = self._statistics[run.folder]
        return statistics if places is None else statistics[np.asarray(places)]

    def _score(self, total: np.ndarray) -> float:
        return self.metric._compute_score_from_stats(total.tolist()).score
