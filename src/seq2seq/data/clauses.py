"""Long lines in pieces: at the ends of clauses, or else between words, or else within a word."""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence

from seq2seq.errors import CorpusError

CLAUSE_END = re.compile(r"(?<=[.!?;:,\u060c])\s+|(?<=[\u3002\uff01\uff1f\uff1b\uff1a\uff0c\u3001])\s*")
"""After punctuation and a space, or after that of Chinese and Japanese, which needs none."""
SPACE = re.compile(r"\s+")
LONGEST_PIECE = 16
"""Characters of a SentencePiece token at most."""


def split_line(text: str, length: Callable[[str], int], longest: int) -> list[str]:
    """Pieces that together are the text, each as long as ``longest`` allows and none empty.

    Args:
        text: of any length.
        length: of a text, in tokens.
        longest: tokens of a piece at most.

    Raises:
        CorpusError: a character is longer than that by itself.
    """
    pieces: list[str] = []
    for piece in _split(text, length, longest, (CLAUSE_END, SPACE)):
        # White space alone says nothing; it stays with the piece before.
        if pieces and not length(piece):
            pieces[-1] += piece
        else:
            pieces.append(piece)
    return pieces


def _split(text: str, length: Callable[[str], int], longest: int, marks: Sequence[re.Pattern[str]]) -> Iterator[str]:
    if length(text) <= longest:
        if text.strip():
            yield text
        return
    if not marks:
        yield from _cut(text, length, longest)
        return
    held = ""
    for piece in _pieces(text, marks[0]):
        if held and length(held + piece) > longest:
            yield from _split(held, length, longest, marks[1:])
            held = ""
        held += piece
    yield from _split(held, length, longest, marks[1:])


def _pieces(text: str, mark: re.Pattern[str]) -> list[str]:
    """The text cut after every mark; together the pieces are the text."""
    ends = [match.end() for match in mark.finditer(text) if 0 < match.end() < len(text)]
    return [text[start:end] for start, end in zip([0, *ends], [*ends, len(text)], strict=True)]


def _cut(word: str, length: Callable[[str], int], longest: int) -> Iterator[str]:
    """The word cut between characters, each time at a place where one more would be too many."""
    while word:
        ends = range(1, min(len(word), LONGEST_PIECE * longest) + 1)
        fits = bisect_right(ends, longest, key=lambda end: length(word[:end]))
        if not fits:
            raise CorpusError(
                f"the character {word[0]!r} has more than {longest} tokens by itself: allow more (longest), or leave it out"
            )
        yield word[:fits]
        word = word[fits:]
