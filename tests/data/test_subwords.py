"""BPE-dropout: SentencePiece's own pieces without dropout, the paper's probabilities with it, and the same every time."""

import hashlib
import subprocess
import sys
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seq2seq.data.subwords import Subwords
from seq2seq.data.tokenizer import Tokenizer

LINES = [
    "a tall tower stands on the tallest hill of the town",
    "über allen Gipfeln ist Ruh",
    "in allen Wipfeln 123, 124",
]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.train(LINES * 3, 70, "bpe")


@given(st.lists(st.text(alphabet="tal owersndhi\u2581 \u3000\tüÜ123,\u00e9\u4e2d\ufb01", max_size=30), max_size=4))
def test_without_dropout_it_is_sentencepiece(tokenizer, lines) -> None:
    assert Subwords(tokenizer, 0.0).encode(lines, 1) == tokenizer.encode(lines)


@pytest.mark.parametrize("normalization", ["nmt_nfkc", "nfkc_cf", "identity"])
def test_on_captions(multi30k, normalization) -> None:
    with (multi30k / "val.jsonl").open(encoding="utf-8") as file:
        lines = [line.strip() for line in file]
    tokenizer = Tokenizer.train(lines, 800, "bpe", normalization)
    assert Subwords(tokenizer, 0.0).encode(lines, 1) == tokenizer.encode(lines)


def test_probabilities_by_hand() -> None:
    """Merges of ``_ab``: _a first, then _ab; b has none of its own."""
    tokenizer = Tokenizer.train(["ab ab ab a a"] * 5, 9, "bpe")
    order = sorted(tokenizer.merges(), key=tokenizer.merges().get)
    assert order == ["\u2581a", "\u2581ab"]
    share, draws = 0.3, 20_000
    found = Counter(tuple(tokenizer.pieces(ids)) for ids in Subwords(tokenizer, share).encode(["ab"] * draws, seed=5))
    # Only one merge is possible at a time, so each is a coin of its own.
    expected = {
        ("\u2581", "a", "b"): share,
        ("\u2581a", "b"): (1 - share) * share,
        ("\u2581ab",): (1 - share) ** 2,
    }
    assert found.keys() == expected.keys()
    for pieces, probability in expected.items():
        assert found[pieces] / draws == pytest.approx(probability, abs=0.012)  # four standard deviations


def test_a_second_choice_stands_in_for_the_best() -> None:
    """Of ``_abc`` both ``ab`` and ``bc`` can be merged: bc is made if ab is left out and bc is not, or after neither."""
    tokenizer = Tokenizer.train(["pab qab rab sbc tbc"] * 5, 15, "bpe")
    assert {"ab", "bc"} <= tokenizer.merges().keys()
    assert tokenizer.merges()["ab"] < tokenizer.merges()["bc"]
    share, draws = 0.4, 20_000
    found = Counter(
        tuple(tokenizer.pieces(ids))[:3] for ids in Subwords(tokenizer, share).encode(["abc"] * draws, seed=5)
    )
    others = {piece for piece in tokenizer.merges() if piece in "\u2581abc"} - {"ab", "bc"}
    assert not others, "nothing else may be merged, or the probabilities below are others"
    expected = {
        ("\u2581", "ab", "c"): 1 - share,
        ("\u2581", "a", "bc"): share * (1 - share),
        ("\u2581", "a", "b"): share**2,
    }
    assert found.keys() == expected.keys()
    for pieces, probability in expected.items():
        assert found[pieces] / draws == pytest.approx(probability, abs=0.014)


def test_all_or_nothing(tokenizer) -> None:
    (characters,) = Subwords(tokenizer, 1.0).encode(["the town"], 7)
    assert tokenizer.pieces(characters) == list("\u2581the\u2581town")
    some = Subwords(tokenizer, 0.5)
    cuts = some.encode(LINES * 20, 7)
    assert tokenizer.decode(cuts) == LINES * 20
    assert len({tuple(row) for row in cuts}) > 40
    assert some.encode([], 7) == []
    assert some.encode([""], 7) == [[]]


def test_another_process_draws_the_same() -> None:
    script = (
        "from seq2seq.data.subwords import Subwords; from seq2seq.data.tokenizer import Tokenizer; "
        f"lines = {LINES!r}; s = Subwords(Tokenizer.train(lines * 3, 70, 'bpe'), 0.5); "
        "print(s.encode(lines, 7), s.encode(lines, 8))"
    )
    outputs = [subprocess.run([sys.executable, "-c", script], capture_output=True, check=True) for _ in range(2)]
    first, second = (hashlib.sha256(each.stdout).hexdigest() for each in outputs)
    assert first == second
    here = Subwords(Tokenizer.train(LINES * 3, 70, "bpe"), 0.5)
    assert here.encode(LINES, 7) == here.encode(LINES, 7) != here.encode(LINES, 8)
    assert outputs[0].stdout.decode() == f"{here.encode(LINES, 7)} {here.encode(LINES, 8)}\n"
