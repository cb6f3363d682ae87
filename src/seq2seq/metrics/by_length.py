"""Corpus BLEU by source length: the instrument that shows the bottleneck.

A mean of sentence scores would hide it; each bin is scored as a corpus of its own, and says how many sentences it holds.
"""

from collections.abc import Sequence
from typing import NamedTuple

from sacrebleu.metrics import BLEU


class LengthBin(NamedTuple):
    """BLEU of the sentences whose source has ``first`` to ``last`` words, both included."""

    first: int
    last: int
    n: int
    bleu: float


def bleu_by_source_length(
    sources: Sequence[str],
    hypotheses: Sequence[str],
    references: Sequence[str],
    tokenizer: str = "13a",
    bins: int = 6,
) -> list[LengthBin]:
    """Bins of about equally many sentences, by words between white space. They partition the sentences.

    Args:
        sources, hypotheses, references: one entry a sentence, in the same order.
        tokenizer: sacreBLEU's.
        bins: how many at the most; fewer where many sentences have the same length.
    """
    lengths = [len(source.split()) for source in sources]
    scored = []
    for first, last in length_edges(lengths, bins):
        inside = [place for place, length in enumerate(lengths) if first <= length <= last]
        bleu = BLEU(tokenize=tokenizer).corpus_score(
            [hypotheses[place] for place in inside], [[references[place] for place in inside]]
        )
        scored.append(LengthBin(first, last, len(inside), bleu.score))
    return scored


def length_edges(lengths: Sequence[int], bins: int) -> list[tuple[int, int]]:
    """First and last length of each bin: consecutive lengths are taken until a bin has its share of what is left."""
    edges: list[tuple[int, int]] = []
    counts = {length: lengths.count(length) for length in sorted(set(lengths))}
    first, taken, left = None, 0, len(lengths)
    for length, count in counts.items():
        first = length if first is None else first
        taken += count
        bins_left = max(bins - len(edges), 1)
        if taken >= left / bins_left or length == max(counts):
            edges.append((first, length))
            first, left, taken = None, left - taken, 0
    return edges
