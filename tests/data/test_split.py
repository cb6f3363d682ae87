"""Batches cut from the mapped file hold the pairs they are asked for."""

import pickle
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from seq2seq.data.corpus import Pair, Span
from seq2seq.data.split import TokenisedSplit
from seq2seq.data.store import Store, TokenizerSettings, build, open_store
from seq2seq.data.tokenizer import Tokenizer, Tokenizers
from seq2seq.data.writing import write_split
from seq2seq.types import BOS, EOS, PAD
from tests.data.toy import ToyCorpus, counting, toy

SETTINGS = TokenizerSettings("bpe", 60)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return open_store(build(toy(), SETTINGS, None, tmp_path_factory.mktemp("cache")))


def test_batch_by_hand(store: Store) -> None:
    train, tokenizer = store.split("train"), store.tokenizers.source
    ids = np.array([4, 0, 59], np.int32)
    batch = train.batch(ids, 2.5)
    sources, targets = (
        tokenizer.encode([getattr(counting(60)[i], side) for i in ids]) for side in ("source", "target")
    )
    assert batch.ids.tolist() == [4, 0, 59]
    assert float(batch.loss_denominator) == 2.5
    for rows, expected in (
        (batch.source, [[*row, EOS] for row in sources]),
        (batch.inputs, [[BOS, *row] for row in targets]),
        (batch.targets, [[*row, EOS] for row in targets]),
    ):
        longest = max(map(len, expected))
        assert rows.dtype == torch.int64
        assert rows.tolist() == [row + [PAD] * (longest - len(row)) for row in expected]


@given(st.data())
def test_any_batch_holds_its_pairs_over_chunks(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    folder = tmp_path_factory.mktemp("split")
    pairs = data.draw(
        st.lists(st.sampled_from([*counting(40), Pair("", "x"), Pair("x", " ")]), min_size=1, max_size=40)
    )
    tokenizer = Tokenizer.train([text for pair in counting(40) for text in pair[:2]], 60, "bpe")
    both = Tokenizers(tokenizer, tokenizer, True)
    counts = write_split(folder / "some.arrow", pairs, both, rows=7)
    kept = [(row, pair) for row, pair in enumerate(pairs) if pair.source.strip() and pair.target.strip()]
    assert counts == {"kept": len(kept), "empty": len(pairs) - len(kept), "too_long": 0, "too_many_words": 0}
    split = TokenisedSplit(folder / "some.arrow")
    assert split.texts(range(len(split))) == [(pair.source, pair.target) for _, pair in kept]
    assert [split.row(i) for i in range(len(split))] == [row for row, _ in kept]
    if kept:
        ids = data.draw(st.lists(st.integers(0, len(kept) - 1), min_size=1, max_size=9))
        batch = split.batch(np.array(ids, np.int64))
        assert tokenizer.decode(batch.source.tolist()) == [kept[i][1].source for i in ids]
        assert tokenizer.decode(batch.inputs.tolist()) == [kept[i][1].target for i in ids]
        assert (batch.source != PAD).sum(1).tolist() == split.lengths[ids, 0].tolist()
        assert (batch.targets != PAD).sum(1).tolist() == split.lengths[ids, 1].tolist()


def test_ids_are_read_from_the_mapped_file(store: Store) -> None:
    before = pa.total_allocated_bytes()
    split = TokenisedSplit(store.folder / "train.arrow")
    split.batch(np.arange(60))
    assert pa.total_allocated_bytes() == before


def test_a_split_travels_to_another_process_by_its_path(store: Store) -> None:
    train = store.split("train")
    copy = pickle.loads(pickle.dumps(train))
    assert len(pickle.dumps(train)) < 1000
    assert torch.equal(copy.batch(np.arange(5)).source, train.batch(np.arange(5)).source)


def test_spans_of_several_items(tmp_path: Path) -> None:
    spans = (Span(0, 3, 0, 4), Span(4, 7, 5, 9))
    pair = Pair("one two", "eins zwei", spans)
    corpus = ToyCorpus(train=[*counting(40), pair], valid=[Pair("one", "eins")], test=counting(2))
    store = open_store(build(corpus, SETTINGS, None, tmp_path))
    assert store.split("train").spans(40) == spans
    assert store.split("valid").spans(0) == ()
