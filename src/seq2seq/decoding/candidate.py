"""One translation of a line: its text, its scores, and which of its words belong to which of the line's."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from seq2seq.data.tokenizer import EOS_LABEL, SPACE, Tokenizers
from seq2seq.decoding.words import NO_WORD, Link, links, word_weights, words_of_source, words_of_target
from seq2seq.types import UNK, Hypothesis

LARGEST = 1 << 26
"""Weights of a line in parts that are put together, 256 MiB of them."""
NOWHERE = -1


class Candidate(NamedTuple):
    """One translation of a line."""

    text: str
    score: float
    """What the search ranks by, 0 for an empty line."""
    log_probability: float
    truncated: bool
    """True if it was cut at the length cap."""
    source: tuple[str, ...]
    target: tuple[str, ...]
    """Tokens as they are written, ``</s>`` last."""
    weights: Float[np.ndarray, "T S"] | None
    """Of each target token over the source tokens; None if they were not asked for, or if they are more than ``LARGEST``."""
    alignment: tuple[Link, ...]
    """Words of the line and of the translation, split at white space, that belong together; empty without weights."""


def candidate_of(
    text: str, encoded: Sequence[int], hypothesis: Hypothesis, tokenizers: Tokenizers, replace_unknown: bool
) -> Candidate:
    """What a search has found for a text, in words.

    Args:
        text: of the source.
        encoded: the same in tokens, without ``EOS``.
        hypothesis: with weights where unknown tokens are to be replaced.
        tokenizers: of both sides.
        replace_unknown: writes what was looked at most in place of an unknown token.
    """
    source, target = tokenizers.source, tokenizers.target
    translation = target.decode([hypothesis.tokens])[0]
    weights = None if hypothesis.weights is None else hypothesis.weights.numpy()
    alignment: list[Link] = []
    if weights is not None:
        # EOS belongs to no word.
        source_words = np.append(words_of_source(source, text), NO_WORD)
        if replace_unknown and UNK in hypothesis.tokens:
            beginnings = _without_unknown(text, encoded, hypothesis.tokens, weights, source_words, tokenizers)
            translation = beginnings[-1]
            target_words = np.array([len(beginning.split()) - 1 for beginning in beginnings], np.int64)
        else:
            target_words = words_of_target(target, hypothesis.tokens)
        alignment = links(word_weights(weights[: len(target_words)], source_words, target_words))
    ends = () if hypothesis.truncated else (EOS_LABEL,)
    return Candidate(
        " ".join(translation.split("\n")),
        hypothesis.score,
        hypothesis.log_probability,
        hypothesis.truncated,
        (*source.pieces(list(encoded)), EOS_LABEL),
        (*target.pieces(hypothesis.tokens), *ends),
        weights,
        tuple(alignment),
    )


def _without_unknown(
    text: str,
    encoded: Sequence[int],
    tokens: Sequence[int],
    weights: Float[np.ndarray, "T S"],
    source_words: Int[np.ndarray, "S"],
    tokenizers: Tokenizers,
) -> list[str]:
    """The translation up to each token, with what an unknown token looked at most in its place.

    That is the very text that an unknown source token stands for, one character or several words, and of any other token the
    word that it is in. Several unknown tokens in a row that look at one place are one.
    """
    offsets, words = tokenizers.source.offsets(text), text.split()
    written, last = "", NOWHERE
    beginnings = []
    for token, row in zip(tokens, weights[:, : len(offsets)], strict=False):
        place = int(row.argmax()) if token == UNK and row.any() else NOWHERE
        if token != UNK:
            written += tokenizers.target.pieces([token])[0].replace(SPACE, " ")
        elif place == NOWHERE:
            written += tokenizers.target.decode([[UNK]])[0]
        elif place != last:
            first, end = offsets[place]
            whole = encoded[place] != UNK and source_words[place] != NO_WORD
            written += f" {words[source_words[place]]} " if whole else text[first:end]
        last = place
        beginnings.append(" ".join(written.split()))
    return beginnings


def joined(texts: Sequence[str], parts: Sequence[Sequence[Candidate]], with_weights: bool) -> list[Candidate]:
    """The candidates of a line from those of its parts, whose texts together are the line.

    Args:
        texts: of the parts; none of a line without words.
        parts: candidates of each, best first.
        with_weights: keeps the weights.
    """
    if not parts:
        weights = np.zeros((1, 1), np.float32) if with_weights else None
        return [Candidate("", 0.0, 0.0, False, (EOS_LABEL,), (EOS_LABEL,), weights, ())]
    if len(parts) == 1:
        return [each if with_weights else each._replace(weights=None) for each in parts[0]]
    return [_chained(texts, [part[rank] for part in parts], with_weights) for rank in range(min(map(len, parts)))]


def _chained(texts: Sequence[str], parts: Sequence[Candidate], with_weights: bool) -> Candidate:
    """Parts one after the other: scores are added, weights are zero between one part's target and another's source."""
    source = tuple(token for part in parts for token in part.source)
    target = tuple(token for part in parts for token in part.target)
    kept = with_weights and len(target) * len(source) <= LARGEST
    weights = np.zeros((len(target), len(source)), np.float32) if kept else None
    alignment: list[Link] = []
    row = column = words = first = 0
    within = False
    for text, part in zip(texts, parts, strict=True):
        if weights is not None and part.weights is not None:
            weights[row : row + len(part.target), column : column + len(part.source)] = part.weights
        # A part may begin in the middle of a word.
        first -= within and not text[0].isspace()
        alignment += [(first + one, words + other) for one, other in part.alignment]
        row, column, words = row + len(part.target), column + len(part.source), words + len(part.text.split())
        first, within = first + len(text.split()), not text[-1].isspace()
    return Candidate(
        " ".join(part.text for part in parts),
        sum(part.score for part in parts),
        sum(part.log_probability for part in parts),
        any(part.truncated for part in parts),
        source,
        target,
        weights,
        tuple(alignment),
    )
