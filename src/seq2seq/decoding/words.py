"""From tokens to words: which word a token belongs to, and which words of two sentences belong together."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int

from seq2seq.data.tokenizer import Tokenizer

NO_WORD = -1
Link = tuple[int, int]
"""Places of a source word and of a target word, from 0."""


def words_of_source(tokenizer: Tokenizer, text: str) -> Int[np.ndarray, "S"]:
    """For each token of ``text`` the word with most of its characters, words being what white space separates."""
    word_of_character = np.full(len(text) + 1, NO_WORD)
    at = 0
    for number, word in enumerate(text.split()):
        start = text.index(word, at)
        at = start + len(word)
        word_of_character[start:at] = number
    found = []
    for first, last in tokenizer.offsets(text):
        inside = word_of_character[first:last]
        inside = inside[inside != NO_WORD]
        # A token that normalisation left without characters of its own goes with the character before it.
        found.append(int(np.bincount(inside).argmax()) if len(inside) else int(word_of_character[max(first - 1, 0)]))
    return np.array(found, np.int64)


def words_of_target(tokenizer: Tokenizer, tokens: Sequence[int]) -> Int[np.ndarray, "T"]:
    """The word of the decoded text, split at white space, that each token ends in; ``NO_WORD`` before the first."""
    # Decoding a longer and longer beginning says what each token adds, whatever stands for spaces and unknown characters.
    beginnings = tokenizer.decode([list(tokens[: at + 1]) for at in range(len(tokens))])
    return np.array([len(beginning.split()) - 1 for beginning in beginnings], np.int64)


def word_weights(
    weights: Float[np.ndarray, "T S"], source_words: Int[np.ndarray, "S"], target_words: Int[np.ndarray, "T"]
) -> Float[np.ndarray, "M N"]:
    """Weights of ``M`` target words over ``N`` source words: the sum of their tokens' weights."""
    of_source = (source_words[:, None] == np.arange(source_words.max(initial=NO_WORD) + 1)).astype(weights.dtype)
    of_target = (target_words[:, None] == np.arange(target_words.max(initial=NO_WORD) + 1)).astype(weights.dtype)
    return of_target.T @ weights @ of_source


def links(weights: Float[np.ndarray, "M N"]) -> list[Link]:
    """For each target word the source word with most of its weight; none where it has no weight at all."""
    if not weights.size:
        return []
    best = weights.argmax(axis=1)
    return [(int(best[word]), word) for word in range(len(weights)) if weights[word, best[word]] > 0]


def pharaoh(found: Sequence[Link]) -> str:
    """Links as ``source-target`` pairs, such as ``0-0 2-1``, in the order of the target."""
    return " ".join(f"{source}-{target}" for source, target in found)
