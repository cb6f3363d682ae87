"""A large corpus is tokenised in several processes: the same file as from one, and nothing lost when one of them is."""

import multiprocessing
import os
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest

from seq2seq.data.corpus import Pair
from seq2seq.data.split import TokenisedSplit
from seq2seq.data.store import TokenizerSettings, build, open_store
from seq2seq.data.tokenizer import Tokenizer, Tokenizers
from seq2seq.data.writing import Limits, write_split
from seq2seq.errors import ConfigError, CorpusError
from tests.data.toy import counting, toy


@pytest.fixture(scope="module")
def tokenizers() -> Tokenizers:
    tokenizer = Tokenizer.train([text for pair in counting(40) for text in pair[:2]], 60, "bpe")
    return Tokenizers(tokenizer, tokenizer, True)


def test_several_processes_write_what_one_does(tokenizers: Tokenizers, tmp_path: Path) -> None:
    pairs = [*counting(40), Pair("", "x"), *counting(40)[:13], Pair("one " * 30, "x"), Pair("x", "one " * 9)]
    limits, seen = Limits(length=40, words=8), []
    alone = write_split(tmp_path / "alone.arrow", iter(pairs), tokenizers, limits, rows=7, alone=100)
    helped = write_split(
        tmp_path / "helped.arrow", iter(pairs), tokenizers, limits, rows=7, alone=1, advance=seen.append
    )
    assert alone == helped == {"kept": 53, "empty": 1, "too_long": 1, "too_many_words": 1}
    assert seen == [7] * 8
    assert (tmp_path / "helped.arrow").read_bytes() == (tmp_path / "alone.arrow").read_bytes()
    assert TokenisedSplit(tmp_path / "helped.arrow").row(41) == 42


def test_helping_processes_are_not_started_for_a_small_corpus(tokenizers: Tokenizers, tmp_path: Path) -> None:
    def watched() -> Iterator[Pair]:
        for pair in counting(14):
            assert not multiprocessing.active_children()
            yield pair

    assert write_split(tmp_path / "some.arrow", watched(), tokenizers, rows=7, alone=2)["kept"] == 14
    assert not multiprocessing.active_children()


def test_a_line_that_cannot_be_read_ends_all_processes(tokenizers: Tokenizers, tmp_path: Path) -> None:
    def broken() -> Iterator[Pair]:
        yield from counting(60)
        raise CorpusError("line 61 of it")

    with pytest.raises(CorpusError, match="line 61 of it"):
        write_split(tmp_path / "some.arrow", broken(), tokenizers, rows=7, alone=1)
    assert not multiprocessing.active_children()


def test_a_killed_process_is_said(tokenizers: Tokenizers, tmp_path: Path) -> None:
    def deadly() -> Iterator[Pair]:
        for pair in chain.from_iterable(counting(60) for _ in range(5)):
            for process in multiprocessing.active_children():
                process.kill()
            yield pair

    with pytest.raises(CorpusError, match="a process that tokenised the corpus was killed from outside"):
        write_split(tmp_path / "some.arrow", deadly(), tokenizers, rows=7, alone=1)


def test_a_tokenizer_learns_from_some_pairs_of_a_large_corpus(tmp_path: Path) -> None:
    """From every fourth of 60, the numbers 0, 4, 8 ..."""
    corpus = toy()
    settings = TokenizerSettings("bpe", 60, most_pairs=20)
    tokenizer = open_store(build(corpus, settings, None, tmp_path)).tokenizers.source
    lines = [text for pair in counting(60)[::4] for text in pair[:2]]
    assert tokenizer.model == Tokenizer.train(lines, 60, "bpe").model
    assert tokenizer.model != Tokenizer.train([text for pair in counting(60) for text in pair[:2]], 60, "bpe").model
    with pytest.raises(ConfigError, match=r"tokenizer.most_pairs=1 is not possible: give at least 2"):
        TokenizerSettings(most_pairs=1)


def test_large_corpora_say_how_far_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seq2seq.data.store.EVERY", 25)
    monkeypatch.setattr("seq2seq.data.store.write_split", _in_tens)
    corpus, said = toy(), []
    build(corpus, TokenizerSettings("bpe", 60), None, tmp_path, said.append)
    assert said == ["train: tokenised 30 pairs", "train: tokenised 50 pairs"]


def _in_tens(path: os.PathLike, *arguments, **more) -> dict[str, int]:
    return write_split(path, *arguments, rows=10, **more)
