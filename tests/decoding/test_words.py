"""From tokens to words, on texts whose words are known."""

import numpy as np
import pytest

from seq2seq.data.tokenizer import Tokenizer
from seq2seq.decoding.words import NO_WORD, links, pharaoh, word_weights, words_of_source, words_of_target
from seq2seq.types import UNK

LINES = ["one two three", "twenty-one birds", "the three birds sing", "one bird"] * 5


@pytest.fixture(scope="module", params=["bpe", "char"])
def tokenizer(request):
    return Tokenizer.train(LINES, 19 if request.param == "char" else 40, request.param)


@pytest.mark.parametrize(
    "text", ["one two  three", "  twenty-one birds sing ", "bird", "one\u3000two", "\ufb01ve birds"]
)
def test_every_source_token_belongs_to_the_word_it_was_cut_from(tokenizer, text):
    words = words_of_source(tokenizer, text)
    pieces = tokenizer.pieces(tokenizer.encode([text])[0])
    assert len(words) == len(pieces)
    # A space alone, before the first word, is in none.
    assert all(piece == "\u2581" for piece, word in zip(pieces, words.tolist(), strict=True) if word == NO_WORD)
    found = words[words != NO_WORD]
    assert sorted(set(found.tolist())) == list(range(len(text.split())))
    assert (np.diff(found) >= 0).all()


@pytest.mark.parametrize("text", ["one two three", "twenty-one birds sing"])
def test_every_target_token_belongs_to_the_word_it_becomes(tokenizer, text):
    tokens = tokenizer.encode([text])[0]
    words = words_of_target(tokenizer, tokens)
    for number, word in enumerate(text.split()):
        own = [token for token, place in zip(tokens, words, strict=True) if place == number]
        assert tokenizer.decode([own])[0].strip() == word


def test_an_unknown_token_is_a_word_of_its_own(tokenizer):
    one, two = tokenizer.encode(["one", "two"])
    words = words_of_target(tokenizer, [*one, UNK, *two]).tolist()
    assert words[len(one)] == 1
    assert {0, -1} >= set(words[: len(one)])
    assert words[-1] == 2


def test_weights_of_words_are_sums_by_hand():
    """Source tokens of words 0, 0, 1 and EOS; target tokens of words 0, 1, 1."""
    weights = np.array([[0.5, 0.2, 0.2, 0.1], [0.1, 0.1, 0.7, 0.1], [0.4, 0.4, 0.1, 0.1]])
    found = word_weights(weights, np.array([0, 0, 1, -1]), np.array([0, 1, 1]))
    np.testing.assert_allclose(found, [[0.7, 0.2], [1.0, 0.8]])
    assert links(found) == [(0, 0), (0, 1)]
    assert pharaoh(links(found)) == "0-0 0-1"


def test_without_weight_there_is_no_link():
    assert links(np.array([[0.0, 0.0], [0.0, 0.5]])) == [(1, 1)]
    assert links(np.zeros((0, 2))) == []
    assert links(np.zeros((2, 0))) == []
