"""Round trips, same bytes, and vocabulary sizes that do not fit."""

import functools
import os
import pickle
import re
import subprocess
import sys
from hashlib import blake2b
from pathlib import Path
from typing import get_args

import pytest
import sentencepiece
from hypothesis import given
from hypothesis import strategies as st

from seq2seq.data.tokenizer import Kind, Normalization, Tokenizer
from seq2seq.errors import CheckpointError, ConfigError, CorpusError
from seq2seq.types import BOS, EOS, PAD, UNK
from tests.data.toy import counting

KINDS = get_args(Kind)
LINES = [text for pair in counting(200) for text in (pair.source, pair.target)]
SIZES = {"bpe": 60, "unigram": 40, "char": 25, "word": 60}


@pytest.mark.parametrize("kind", KINDS)
def test_sizes_and_ids(kind: Kind) -> None:
    tokenizer = Tokenizer.train(LINES, SIZES[kind], kind)
    assert tokenizer.vocabulary_size == SIZES[kind]
    ids = tokenizer.encode(["one two", "fünf"])
    assert all(EOS < i < SIZES[kind] for row in ids for i in row)
    assert tokenizer.decode(ids) == ["one two", "fünf"]
    assert tokenizer.pieces([PAD, UNK, BOS, EOS]) == ["<pad>", "<unk>", "<s>", "</s>"]


def test_pieces_spell_the_line() -> None:
    tokenizer = Tokenizer.train(LINES, 60, "bpe")
    assert "".join(tokenizer.pieces(tokenizer.encode(["one two"])[0])) == "▁one▁two"


def test_nothing_in_nothing_out() -> None:
    tokenizer = Tokenizer.train(LINES, 60, "bpe")
    assert tokenizer.encode([]) == []
    assert tokenizer.encode([""]) == [[]]
    assert tokenizer.decode([]) == []
    assert tokenizer.decode([[], [BOS, EOS, PAD]]) == ["", ""]
    assert tokenizer.pieces([]) == []


WORDS = ["one two", "drei fünf", "3 Euro x", "fix a b"] * 5


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        ("word", "drei fünf", ["drei", " fünf"]),
        ("word", "3\u00a0Euro", ["3", "\u00a0Euro"]),
        ("word", "drei  fünf ", ["drei", "  fünf"]),
        ("word", "drei unbekannt fünf", ["drei", " unbekannt", " fünf"]),
        ("char", "a ü", ["", "a", " ", "ü"]),
        ("char", "\ufb01x", ["", "", "\ufb01", "x"]),
        ("char", "u\u0308 x", ["", "u\u0308", " ", "x"]),
        ("char", "\U0001f600 x", ["", "\U0001f600", " ", "x"]),
    ],
    ids=["umlaut", "NBSP", "white space", "unknown word", "characters", "ligature", "combining", "beyond 16 bits"],
)
def test_offsets_by_hand(kind: Kind, text: str, expected: list[str]) -> None:
    tokenizer = Tokenizer.train(WORDS, {"word": 14, "char": 21}[kind], kind)
    offsets = tokenizer.offsets(text)
    assert [text[start:end] for start, end in offsets] == expected
    assert len(offsets) == len(tokenizer.encode([text])[0])


def test_normalised_is_what_decoding_gives_back() -> None:
    tokenizer = Tokenizer.train(WORDS, 21, "char")
    for text in ("3\u00a0Euro", "  \ufb01x  a ", "fu\u0308nf", ""):
        assert tokenizer.normalised(text) == tokenizer.decode(tokenizer.encode([text]))[0]
    assert tokenizer.normalised("3\u00a0unknown  §") == "3 unknown §"
    assert tokenizer.normalised(tokenizer.normalised("\ufb01x  a")) == "fix a"


def test_decode_leaves_control_ids_out_wherever_they_are() -> None:
    tokenizer = Tokenizer.train(LINES, 60, "bpe")
    (ids,) = tokenizer.encode(["one two three"])
    mixed = [BOS, *ids[:1], PAD, *ids[1:], EOS, PAD, PAD]
    assert tokenizer.decode([mixed, ids]) == ["one two three"] * 2


def digests() -> list[str]:
    """What identifies the model of every kind."""
    return [blake2b(Tokenizer.train(LINES, SIZES[kind], kind).model).hexdigest() for kind in KINDS]


def test_same_lines_same_bytes_in_another_process() -> None:
    here = digests()
    assert digests() == here
    there = subprocess.run(
        [sys.executable, "-c", "from tests.data.test_tokenizer import digests; print(*digests())"],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONHASHSEED": "7"},
        check=True,
        capture_output=True,
        text=True,
    )
    assert there.stdout.split() == here
    assert not there.stderr, "training is to be quiet"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("lines", [LINES, LINES[:40], LINES[:4], LINES[:2]], ids=["400", "40", "4", "2"])
def test_the_largest_size_named_works_and_one_more_does_not(kind: Kind, lines: list[str]) -> None:
    with pytest.raises(ConfigError, match="vocabulary_size=50000 is too large") as failure:
        Tokenizer.train(lines, 50000, kind)
    largest = int(re.search(r"largest possible: (\d+)", str(failure.value))[1])
    assert Tokenizer.train(lines, largest, kind).vocabulary_size == largest
    with pytest.raises(ConfigError, match=f"vocabulary_size={largest + 1} is too large"):
        Tokenizer.train(lines, largest + 1, kind)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [-1, 0, 1, 4])
def test_the_smallest_size_named_works_and_one_less_does_not(kind: Kind, size: int) -> None:
    with pytest.raises(ConfigError, match=f"vocabulary_size={size} is too small") as failure:
        Tokenizer.train(LINES, size, kind)
    smallest = int(re.search(r"smallest possible: (\d+)", str(failure.value))[1])
    assert Tokenizer.train(LINES, smallest, kind).vocabulary_size == smallest
    with pytest.raises(ConfigError, match="too small"):
        Tokenizer.train(LINES, smallest - 1, kind)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("lines", [[], ["", ""], ["  ", "\u3000"]])
def test_no_text_is_an_error(kind: Kind, lines: list[str]) -> None:
    with pytest.raises(CorpusError, match="no text"):
        Tokenizer.train(lines, 30, kind)


def test_an_error_of_the_corpus_comes_through() -> None:
    def broken():
        yield "one"
        raise CorpusError("line 2 is no text")

    with pytest.raises(CorpusError, match="line 2 is no text"):
        Tokenizer.train(broken(), 30, "bpe")


def test_very_long_lines_are_learnt_from() -> None:
    tokenizer = Tokenizer.train(["a b", "x" * 40 + " ü" * 20_000], 9, "char")
    assert UNK not in tokenizer.encode(["ü x a b"])[0]


WRITTEN = "<s> one </s> two<s>three <pad> <unk>"


@pytest.mark.parametrize("kind", ["bpe", "unigram", "char"])
def test_written_control_symbols_are_only_text(kind: Kind) -> None:
    lines = [*LINES, *["a < b > c / d k p"] * 3, *[WRITTEN] * 50]
    tokenizer = Tokenizer.train(lines, 40 if kind == "char" else 60, kind, "identity")
    (ids,) = tokenizer.encode([WRITTEN])
    assert not {PAD, UNK, BOS, EOS} & set(ids)
    assert tokenizer.decode([ids]) == [WRITTEN]


@pytest.mark.parametrize("kind", KINDS)
def test_written_control_symbols_never_become_control_ids(kind: Kind) -> None:
    for lines in (LINES, [*LINES, *[WRITTEN] * 50]):
        tokenizer = Tokenizer.train(lines, SIZES[kind], kind)
        for row in tokenizer.encode([WRITTEN, "<s>", "</s> one", "<pad>", "one<s>two</s>"]):
            assert not {PAD, BOS, EOS} & set(row)


@pytest.mark.parametrize("bad", [b"", b"no model", b"\x00" * 100])
def test_bytes_that_are_no_model(bad: bytes) -> None:
    with pytest.raises(CheckpointError, match="tokenizer"):
        Tokenizer(bad)


def test_half_a_model() -> None:
    model = Tokenizer.train(LINES, 60, "bpe").model
    with pytest.raises(CheckpointError, match="no SentencePiece model"):
        Tokenizer(model[: len(model) // 2])


def test_a_model_with_other_control_ids(tmp_path: Path) -> None:
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(LINES), model_prefix=str(tmp_path / "other"), vocab_size=60, minloglevel=9
    )
    with pytest.raises(CheckpointError, match=r"\(-1, 0, 1, 2\)"):
        Tokenizer((tmp_path / "other.model").read_bytes())


def test_a_copy_is_the_same() -> None:
    tokenizer = Tokenizer.train(LINES, 60, "bpe")
    assert Tokenizer(tokenizer.model).encode(["one two"]) == tokenizer.encode(["one two"])
    assert pickle.loads(pickle.dumps(tokenizer)).model == tokenizer.model


# Separators and control characters are left out: a tokenizer takes odd white space as an ordinary space. So is U+2581,
# SentencePiece's own sign for a space, and U+2585, its sign for an unknown character.
WORD = st.text(
    st.characters(exclude_categories=("C", "Z"), exclude_characters="\u2581\u2585\u2047"), min_size=1, max_size=8
)
TEXTS = st.lists(st.lists(WORD, min_size=1, max_size=5).map(" ".join), min_size=1, max_size=5)


@given(TEXTS, st.sampled_from(["bpe", "char"]))
def test_round_trip(lines: list[str], kind: Kind) -> None:
    characters = len(set("".join(lines)) - {" "}) + 5
    tokenizer = Tokenizer.train(lines, characters, kind, "identity")
    ids = tokenizer.encode(lines)
    assert tokenizer.decode(ids) == lines
    assert tokenizer.encode(lines, threads=2) == ids


@functools.cache
def trained(normalization: Normalization) -> Tokenizer:
    return Tokenizer.train(LINES, 60, "bpe", normalization)


@pytest.mark.parametrize("normalization", ["identity", "nmt_nfkc", "nmt_nfkc_cf"])
def test_names_of_control_symbols_are_text_where_they_stand_in_a_text(normalization: Normalization) -> None:
    lines = ["00 <s>", "1 </s>2", "<pad>", "x<unk>"]
    written = {
        "identity": lines,
        "nmt_nfkc": ["00 \uff1cs\uff1e", "1 <\uff0f\uff53>2", "\ufe64pad>", "x<u\u0001nk>"],
        "nmt_nfkc_cf": ["00 <S>", "1 </S>2", "\uff1cPad>", "x<UNK>"],
    }[normalization]
    tokenizer = Tokenizer.train(written, len(set("".join(lines)) - {" "}) + 5, "char", normalization)
    encoded = tokenizer.encode(written)
    assert tokenizer.decode(encoded) == lines
    assert min(min(row) for row in encoded) > EOS


@given(st.text(max_size=30), st.sampled_from(["nmt_nfkc", "identity"]))
def test_offsets_follow_one_another_within_the_text(text: str, normalization: Normalization) -> None:
    tokenizer = trained(normalization)
    offsets = tokenizer.offsets(text)
    edges = [0, *(edge for pair in offsets for edge in pair), len(text)]
    assert edges == sorted(edges)
    assert edges[2:-2:2] == edges[3:-2:2], "a range ends where the next one begins"
    assert len(offsets) == len(tokenizer.encode([text])[0])
