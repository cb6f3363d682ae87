"""The cache: what is in it, what was dropped, and that it is built once, whole, whatever happens."""

import json
import multiprocessing
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from seq2seq.data.corpus import Pair
from seq2seq.data.store import Counts, Store, TokenizerSettings, build, open_store, store_path
from seq2seq.errors import CheckpointError, ConfigError, CorpusError
from tests.data.toy import ToyCorpus, counting, toy

SETTINGS = TokenizerSettings("bpe", 60)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return open_store(build(toy(), SETTINGS, None, tmp_path_factory.mktemp("cache")))


def test_contents(store: Store) -> None:
    assert sorted(path.name for path in store.folder.iterdir()) == [
        "counts.json",
        "joint.model",
        "test.arrow",
        "train.arrow",
        "valid.arrow",
    ]
    assert store.counts == {"train": Counts(60, 0, 0), "valid": Counts(7, 0, 0), "test": Counts(5, 0, 0)}
    assert store.tokenizers.joint
    assert store.tokenizers.source is store.tokenizers.target
    train, pairs = store.split("train"), counting(60)
    assert len(train) == 60
    assert train.texts(range(60)) == [(pair.source, pair.target) for pair in pairs]
    assert [train.spans(i) for i in range(60)] == [pair.spans for pair in pairs]
    encoded = store.tokenizers.source.encode([pair.source for pair in pairs])
    assert train.lengths.dtype == np.int32
    assert train.lengths[:, 0].tolist() == [len(ids) + 1 for ids in encoded]
    with pytest.raises(IndexError):
        train.source_text(60)


def test_a_tokenizer_for_each_language(tmp_path: Path) -> None:
    store = open_store(build(toy(), TokenizerSettings("bpe", 50, joint=False), None, tmp_path))
    source, target, joint = store.tokenizers
    assert not joint
    assert (store.folder / "source.model").read_bytes() == source.model
    assert (store.folder / "target.model").read_bytes() == target.model
    assert source.model != target.model
    batch = store.split("train").batch(np.array([3], np.int32))
    assert target.decode(batch.targets.tolist()) == [counting(60)[3].target]


def test_second_start_reads_nothing(tmp_path: Path) -> None:
    first = toy()
    folder = build(first, SETTINGS, None, tmp_path)
    assert first.reads > 0
    second = toy()
    assert build(second, SETTINGS, None, tmp_path) == folder
    assert second.reads == 0


def test_another_content_another_folder(tmp_path: Path) -> None:
    folders = {
        store_path(toy(), SETTINGS, None, tmp_path),
        store_path(toy(61), SETTINGS, None, tmp_path),
        store_path(toy(), TokenizerSettings("bpe", 61), None, tmp_path),
        store_path(toy(), TokenizerSettings("bpe", 60, joint=False), None, tmp_path),
        store_path(toy(), TokenizerSettings("bpe", 60, normalization="identity"), None, tmp_path),
        store_path(toy(), TokenizerSettings("unigram", 60), None, tmp_path),
        store_path(toy(), SETTINGS, 50, tmp_path),
        store_path(toy(), SETTINGS, None, tmp_path, max_words=50),
    }
    assert len(folders) == 8
    assert store_path(toy(), TokenizerSettings("bpe", 60), None, tmp_path) in folders


def test_same_content_same_bytes(tmp_path: Path) -> None:
    first, second = (build(toy(), SETTINGS, None, tmp_path / name) for name in ("a", "b"))
    for path in first.iterdir():
        assert path.read_bytes() == (second / path.name).read_bytes()


def test_dropped_pairs_are_counted_by_reason(tmp_path: Path) -> None:
    long = Pair("one two three four five six seven " * 20, "eins")
    invisible = Pair("\u200b", "eins")
    bad = [Pair("", "eins"), Pair("one", " \t"), invisible, long, Pair("eins", long.source), Pair("", "")]
    corpus = ToyCorpus(
        train=[*counting(30), *bad, *counting(30, 30)], valid=[*bad, *counting(2)], test=[*counting(2), *bad]
    )
    store = open_store(build(corpus, SETTINGS, 60, tmp_path))
    assert store.counts == {"train": Counts(60, 4, 2), "valid": Counts(4, 4, 0), "test": Counts(4, 4, 0)}
    assert json.loads((store.folder / "counts.json").read_text())["train"] == {
        "kept": 60,
        "empty": 4,
        "too_long": 2,
        "too_many_words": 0,
    }
    train = store.split("train")
    assert train.lengths.max() <= 61
    assert [train.row(i) for i in (0, 29, 30, 59)] == [0, 29, 36, 65]
    assert train.source_text(30) == counting(1, 30)[0].source
    assert store.split("valid").source_text(0) == long.source


def test_a_cap_in_words_holds_for_both_sides_of_training_pairs(tmp_path: Path) -> None:
    many = [Pair("one two three", "eins"), Pair("one", "eins zwei drei")]
    corpus = ToyCorpus(train=[*counting(60), *many], valid=many, test=many)
    words = [max(len(side.split()) for side in pair[:2]) for pair in counting(60)]
    store = open_store(build(corpus, SETTINGS, None, tmp_path, max_words=2))
    over = sum(count > 2 for count in words)
    assert 0 < over < 60
    assert store.counts == {
        "train": Counts(60 - over, 0, 0, over + 2),
        "valid": Counts(2, 0, 0),
        "test": Counts(2, 0, 0),
    }
    assert max(len(text.split()) for pair in store.split("train").texts(range(60 - over)) for text in pair) == 2


def test_a_line_of_ten_thousand_words(tmp_path: Path) -> None:
    long = Pair("one " * 10_000, "eins " * 10_000)
    corpus = ToyCorpus(train=[*counting(30), long], valid=[long], test=counting(2))
    store = open_store(build(corpus, SETTINGS, 100, tmp_path))
    assert store.counts["train"] == Counts(30, 0, 1)
    assert store.counts["valid"] == Counts(1, 0, 0)
    assert store.split("valid").batch(np.array([0])).source.shape[1] > 10_000


def test_a_corpus_of_one_pair(tmp_path: Path) -> None:
    one = [Pair("one two three", "eins zwei drei")]
    corpus = ToyCorpus(train=one, valid=one, test=one)
    with pytest.raises(ConfigError, match=r"largest possible: 56\. Set vocabulary_size=56 or less"):
        build(corpus, SETTINGS, None, tmp_path)
    store = open_store(build(corpus, TokenizerSettings("bpe", 56), None, tmp_path))
    assert store.counts["train"] == Counts(1, 0, 0)


def test_the_language_whose_vocabulary_does_not_fit(tmp_path: Path) -> None:
    same = [Pair("a b", pair.target) for pair in counting(60)]
    corpus = ToyCorpus(train=same, valid=same, test=same)
    with pytest.raises(ConfigError, match="source: vocabulary_size=60 is too large"):
        build(corpus, TokenizerSettings("bpe", 60, joint=False), None, tmp_path)


BLANK = [Pair("", "eins"), Pair("one", "")]


@pytest.mark.parametrize(
    ("splits", "max_length", "message"),
    [
        ({"train": []}, None, "the train split holds no pairs"),
        ({"valid": []}, None, "the valid split holds no pairs"),
        ({"test": []}, None, "the test split holds no pairs"),
        ({"train": BLANK}, None, "no usable pair is left of the 2 in the train split: 2 empty on a side"),
        ({"valid": BLANK}, None, "no usable pair is left of the 2 in the valid split: 2 empty on a side"),
        (
            {"train": [*counting(60), *BLANK]},
            1,
            "of the 62 in the train split: 2 empty .*, 60 longer than max_length=1",
        ),
        ({"train": [Pair(*[pair.source] * 2) for pair in counting(60)]}, None, "in all 60 .* are the same text"),
    ],
)
def test_a_corpus_that_cannot_be_used(splits, max_length, message, tmp_path: Path) -> None:
    corpus = ToyCorpus(**{"train": counting(60), "valid": counting(2), "test": counting(2)} | splits)
    with pytest.raises(CorpusError, match=message):
        build(corpus, SETTINGS, max_length, tmp_path)
    assert not [path for path in tmp_path.iterdir() if path.is_dir()], "nothing half-made is left"


def test_a_cap_in_words_that_leaves_nothing(tmp_path: Path) -> None:
    long = [Pair(f"{pair.source} one one", pair.target) for pair in counting(60)]
    corpus = ToyCorpus(train=long, valid=counting(2), test=counting(2))
    with pytest.raises(CorpusError, match="0 empty on a side, 60 longer than max_words=2 words: raise max_words"):
        build(corpus, SETTINGS, None, tmp_path, max_words=2)


def test_some_equal_pairs_are_no_error(tmp_path: Path) -> None:
    corpus = ToyCorpus(train=[*counting(60), Pair("Berlin", "Berlin")], valid=counting(2), test=counting(2))
    assert open_store(build(corpus, SETTINGS, None, tmp_path)).counts["train"].kept == 61


@pytest.mark.parametrize("setting", [{"kind": "bqe"}, {"normalization": "nfd"}])
def test_unknown_settings(setting: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match=r"tokenizer\.(kind|normalization)=(bqe|nfd) is unknown; possible: "):
        TokenizerSettings(**setting)


@pytest.mark.parametrize("where", ["a_file/cache", "/proc/cache"])
def test_a_place_that_cannot_be_written(where: str, tmp_path: Path) -> None:
    (tmp_path / "a_file").write_text("")
    with pytest.raises(ConfigError, match=r"cache_dir=.* cannot be written"):
        build(toy(), SETTINGS, None, tmp_path / where)


def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("seq2seq.data.store.write_split", full)
    with pytest.raises(ConfigError, match="No space left on device"):
        build(toy(), SETTINGS, None, tmp_path)
    assert not [path for path in tmp_path.iterdir() if path.is_dir()]


def halve(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


@pytest.mark.parametrize("name", ["train.arrow", "test.arrow", "joint.model", "counts.json"])
@pytest.mark.parametrize("damage", [halve, Path.unlink, lambda path: path.write_bytes(b"")])
def test_a_damaged_cache_is_named_and_made_anew(name: str, damage, store: Store, tmp_path: Path) -> None:
    folder = tmp_path / store.folder.name
    shutil.copytree(store.folder, folder)
    damage(folder / name)
    with pytest.raises(CheckpointError, match=f"{folder.name} is damaged .* delete this folder"):
        open_store(folder)
    notes: list[str] = []
    assert build(toy(), SETTINGS, None, tmp_path, notes.append) == folder
    assert notes == [f"the cache {folder} is damaged and is made anew"]
    assert open_store(folder).split("train").texts([0]) == store.split("train").texts([0])


def test_what_a_killed_process_leaves_is_not_taken_for_a_cache(store: Store, tmp_path: Path) -> None:
    left = tmp_path / f"{store.folder.name}.partial"
    shutil.copytree(store.folder, left)
    halve(left / "train.arrow")
    folder = build(toy(), SETTINGS, None, tmp_path)
    assert folder.name == store.folder.name
    assert len(open_store(folder).split("train")) == 60
    assert not left.exists()


class SlowCorpus(ToyCorpus):
    """Leaves a mark for every reading, and takes its time."""

    def pairs(self, split):
        with (Path(self.marks) / "marks").open("a") as marks:
            marks.write(split + "\n")
        for pair in super().pairs(split):
            yield pair
            if split == "train":
                torch.zeros(1)  # lets the other process run


def build_slowly(cache: Path, barrier) -> None:
    corpus = SlowCorpus(train=counting(3000), valid=counting(7), test=counting(5))
    corpus.marks = cache.parent
    barrier.wait()
    build(corpus, SETTINGS, None, cache)


def test_two_processes_build_it_once(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    barrier = context.Barrier(2)
    processes = [context.Process(target=build_slowly, args=(tmp_path / "cache", barrier)) for _ in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0, 0]
    assert (tmp_path / "marks").read_text().split() == ["train", "train", "valid", "test"]
    (folder,) = (path for path in (tmp_path / "cache").iterdir() if path.is_dir())
    assert len(open_store(folder).split("train")) == 3000
