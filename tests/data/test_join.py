"""Joined pairs: nothing is lost but an unfilled rest, spans cut out what was joined."""

import pytest

from seq2seq.data.corpus import Corpus, Pair, Span
from seq2seq.data.join import JoinedCorpus, joined
from seq2seq.errors import ConfigError


class Letters:
    source, target = "en", "de"

    def identity(self):
        return {"letters": 1}

    def pairs(self, split):
        yield from (Pair(f"{split}{place}", f"{place}!") for place in range(7))


def texts(corpus, split):
    return [pair.source for pair in corpus.pairs(split)]


def test_two_pairs_by_hand():
    assert joined([Pair("ab c", "x"), Pair("d", "yz")]) == Pair("ab c d", "x yz", (Span(0, 4, 0, 1), Span(5, 6, 2, 4)))


def test_the_test_split_is_joined_anew_for_every_size():
    assert texts(JoinedCorpus(Letters(), join=3), "test") == [
        *(f"test{place}" for place in range(7)),
        "test0 test1",
        "test2 test3",
        "test4 test5",
        "test0 test1 test2",
        "test3 test4 test5",
    ]


@pytest.mark.parametrize("split", ["train", "valid"])
def test_other_splits_use_each_pair_once_in_order(split):
    found = " ".join(texts(JoinedCorpus(Letters(), join=3), split)).split()
    assert found == [f"{split}{place}" for place in range(len(found))]
    assert len(found) > 7 - 3


def test_sizes_follow_the_seed_and_reach_the_largest():
    def sizes(seed):
        return [len(pair.spans) for pair in JoinedCorpus(Letters(), join=2, seed=seed).pairs("train")]

    assert sizes(1) == sizes(1)
    assert {size for seed in range(20) for size in sizes(seed)} == {1, 2}


def test_splits_that_are_not_named_stay_as_they_are():
    corpus = JoinedCorpus(Letters(), join=3, splits=["test"])
    assert list(corpus.pairs("train")) == list(Letters().pairs("train"))
    assert corpus.identity() != JoinedCorpus(Letters(), join=3).identity()
    assert isinstance(corpus, Corpus)


@pytest.mark.parametrize(("settings", "words"), [({"join": 0}, "data.join=0"), ({"join": 2, "splits": ["dev"]}, "dev")])
def test_settings_that_do_not_fit_are_refused(settings, words):
    with pytest.raises(ConfigError, match=words):
        JoinedCorpus(Letters(), **settings)
