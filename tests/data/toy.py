"""A tiny corpus in memory."""

from collections.abc import Iterator

from seq2seq.data.corpus import Pair, Span
from seq2seq.types import Split

NUMBERS = [
    ("one", "eins"),
    ("two", "zwei"),
    ("three", "drei"),
    ("four", "vier"),
    ("five", "fünf"),
    ("six", "sechs"),
    ("seven", "sieben"),
]


class ToyCorpus:
    """Pairs given as lists; counts how often it is read."""

    source, target = "en", "de"

    def __init__(self, **splits: list[Pair]) -> None:
        self.splits = splits
        self.reads = 0

    def identity(self) -> dict[str, object]:
        return {"toy": {split: [list(pair) for pair in pairs] for split, pairs in self.splits.items()}}

    def pairs(self, split: Split) -> Iterator[Pair]:
        self.reads += 1
        yield from self.splits[split]


def counting(pairs: int, first: int = 0) -> list[Pair]:
    """Phrases of 1 to 5 number words, all different, the first word's place known."""
    made = []
    for number in range(first, first + pairs):
        words = [NUMBERS[(number * 5 + 3 * k + number // 7) % 7] for k in range(1 + number % 5)]
        span = Span(0, len(words[0][0]), 0, len(words[0][1]))
        made.append(
            Pair(" ".join(en for en, _ in words) + f" {number}", " ".join(de for _, de in words) + ".", (span,))
        )
    return made


def toy(train: int = 60) -> ToyCorpus:
    """A corpus with which nothing is wrong."""
    return ToyCorpus(train=counting(train), valid=counting(7, 1000), test=counting(5, 2000))
