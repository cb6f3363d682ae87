"""Corpus BLEU by source length: each bin is a corpus of its own, with the spread of resampled test sets around it."""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from seq2seq.errors import ConfigError
from seq2seq.metrics.by_length import length_edges
from seq2seq.report.bootstrap import CorpusBleu, Interval, draw, interval
from seq2seq.report.grid import Grid
from seq2seq.report.runs import Run
from seq2seq.report.systems import System

WORDS, ITEMS = "words", "items"
FEW = 30
"""A bin with fewer sentences says little; figures grey it."""


class BinScore(NamedTuple):
    """BLEU of the ``n`` sentences whose source has ``first`` to ``last`` words or items.

    Args:
        bleu: mean over seeds.
        interval: 95% of that mean over resampled sentences of the bin.
        by_seed: BLEU of each of the system's runs.
    """

    first: int
    last: int
    n: int
    bleu: float
    interval: Interval
    by_seed: tuple[float, ...]

    @property
    def label(self) -> str:
        return str(self.first) if self.first == self.last else f"{self.first}-{self.last}"


def source_lengths(runs: Sequence[Run], by: str = WORDS) -> np.ndarray:
    """Of the test sentences, ``[N]``: words between white space, or the corpus's own items.

    Raises:
        ConfigError: items are asked for, and no run knows those of every sentence.
    """
    if by == WORDS:
        return np.array([len(source.split()) for source in runs[0].sources])
    for run in runs:
        if run.probes is not None:
            count = dict(zip(run.probes["item_sentence"].tolist(), run.probes["item_count"].tolist(), strict=True))
            if all(sentence in count for sentence in run.ids):
                return np.array([count[sentence] for sentence in run.ids])
    raise ConfigError("--by items: no run's probes.npz says how many items each test sentence has; use --by words")


def bins_of(lengths: np.ndarray, bins: int = 6, edges: Sequence[int] | None = None) -> list[tuple[int, int]]:
    """First and last length of bins that partition the sentences; a bin without a sentence is left out.

    Args:
        lengths: ``[N]``.
        bins: how many of about equal size at the most, where no edges are given.
        edges: last length of every bin but the last, which takes all that is longer.

    Raises:
        ConfigError: the edges do not rise, or there is no bin.
    """
    if edges is None:
        if bins < 1:
            raise ConfigError(f"--bins {bins}: there must be at least one bin")
        return length_edges(lengths.tolist(), bins)
    if not edges or edges[0] < 1 or any(one >= two for one, two in itertools.pairwise(edges)):
        raise ConfigError(f"--edges {','.join(map(str, edges))}: lengths must be at least 1 and rise, such as 5,10,20")
    shortest, longest = int(lengths.min()), int(lengths.max())
    firsts = [shortest, *(edge + 1 for edge in edges)]
    lasts = [*edges, longest]
    return [
        (first, min(last, longest))
        for first, last in zip(firsts, lasts, strict=True)
        if np.any((lengths >= first) & (lengths <= last))
    ]


def by_length(
    systems: Sequence[System],
    bleu: CorpusBleu,
    lengths: np.ndarray,
    bins: Sequence[tuple[int, int]],
    resamples: int,
) -> dict[str, list[BinScore]]:
    """The bins of every system, by its name."""
    scored: dict[str, list[BinScore]] = {system.name: [] for system in systems}
    for first, last in bins:
        places = np.flatnonzero((lengths >= first) & (lengths <= last))
        counts = draw(len(places), resamples)
        for system in systems:
            by_seed = tuple(bleu.score(run, places) for run in system.runs)
            drawn = np.mean([bleu.resampled(run, counts, places) for run in system.runs], axis=0)
            mean = sum(by_seed) / len(by_seed)
            scored[system.name].append(BinScore(first, last, len(places), mean, interval(drawn), by_seed))
    return scored


def lengths_grid(scored: dict[str, list[BinScore]], by: str) -> Grid:
    """One row a bin, one column a system."""
    rows = [
        [
            bins[0].label,
            str(bins[0].n),
            *(f"{part.bleu:.2f} ({part.interval.low:.2f} to {part.interval.high:.2f})" for part in bins),
        ]
        for bins in zip(*scored.values(), strict=True)
    ]
    title = f"Corpus BLEU by source length in {by}, mean over seeds (95% of resampled sentences)"
    return Grid("bleu_by_length", title, [by, "n", *scored], rows)
