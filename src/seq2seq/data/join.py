"""Longer sentences out of short ones: consecutive pairs of a corpus joined into one, so that only the length grows."""

import random
from collections.abc import Callable, Iterator, Sequence

from seq2seq.data.corpus import Corpus, Pair, Span
from seq2seq.errors import ConfigError
from seq2seq.types import Split

EVERY_SIZE: tuple[Split, ...] = ("test",)
"""Splits that are joined anew for every size, to have as many long ones as can be; others use each pair once."""


class JoinedCorpus:
    """Another corpus, its pairs joined by ``join`` at the most.

    In training and validation each group of consecutive pairs has a random size in 1..``join``, and each pair is used
    once. The test split is joined ``join`` times: once in pairs of one, once of two, and so on. What is left at the end
    of a split and fills no group is left out. The joined pairs are the spans of the new one, so scores by their number
    are scores by ``item``.

    Args:
        corpus: the one to join.
        join: pairs in the longest.
        splits: which splits to join; others stay as they are.
        seed: decides the sizes of groups.

    Raises:
        ConfigError: ``join`` is less than 1, or a split does not exist.
    """

    def __init__(
        self, corpus: Corpus, join: int, splits: Sequence[str] = ("train", "valid", "test"), seed: int = 0
    ) -> None:
        if join < 1:
            raise ConfigError(f"data.join={join}: must be at least 1, the number of sentences to join")
        unknown = set(splits) - {"train", "valid", "test"}
        if unknown:
            raise ConfigError(f"data.splits names {', '.join(sorted(unknown))}; possible: train, valid, test")
        self.corpus, self.most, self.splits, self.seed = corpus, join, tuple(splits), seed
        self.source, self.target = corpus.source, corpus.target

    def identity(self) -> dict[str, object]:
        return {
            "corpus": "joined",
            "of": self.corpus.identity(),
            "join": self.most,
            "splits": sorted(self.splits),
            "seed": self.seed,
        }

    def pairs(self, split: Split) -> Iterator[Pair]:
        if split not in self.splits:
            yield from self.corpus.pairs(split)
        elif split in EVERY_SIZE:
            for size in range(1, self.most + 1):
                yield from _grouped(self.corpus.pairs(split), lambda size=size: size)
        else:
            draw = random.Random(f"{self.seed} {split}").random
            yield from _grouped(self.corpus.pairs(split), lambda: 1 + int(draw() * self.most))


def _grouped(pairs: Iterator[Pair], next_size: Callable[[], int]) -> Iterator[Pair]:
    size, group = next_size(), []
    for pair in pairs:
        group.append(pair)
        if len(group) == size:
            yield joined(group)
            size, group = next_size(), []


def joined(pairs: Sequence[Pair]) -> Pair:
    """One pair of all, with a space between them and each of them as a span."""
    spans, source_at, target_at = [], 0, 0
    for pair in pairs:
        spans.append(Span(source_at, source_at + len(pair.source), target_at, target_at + len(pair.target)))
        source_at += len(pair.source) + 1
        target_at += len(pair.target) + 1
    return Pair(" ".join(pair.source for pair in pairs), " ".join(pair.target for pair in pairs), tuple(spans))
