"""What every source of parallel sentences offers, whatever it reads: the corpus protocol."""

from collections.abc import Iterator
from typing import NamedTuple, Protocol, runtime_checkable

from seq2seq.types import Split


class Span(NamedTuple):
    """One item of a pair: the same content on both sides, as half-open ranges of characters."""

    source_from: int
    source_to: int
    target_from: int
    target_to: int


class Pair(NamedTuple):
    """A source sentence and its translation, each without a line end."""

    source: str
    target: str
    spans: tuple[Span, ...] = ()
    """The true alignment of the items, where the corpus knows it."""


@runtime_checkable
class Corpus(Protocol):
    """Parallel sentences in three splits."""

    source: str
    """Language code of the source side."""
    target: str
    """Language code of the target side."""

    def identity(self) -> dict[str, object]:
        """What the content depends on, in JSON types: equal identities mean equal pairs, byte for byte.

        Caches are keyed by it. It must be cheap: no pass over the decoded text.
        """
        ...

    def pairs(self, split: Split) -> Iterator[Pair]:
        """The pairs of one split, in the corpus's own order, unfiltered.

        Raises:
            CorpusError: the corpus cannot be read; names the file and line, or the data set and field.
        """
        ...
