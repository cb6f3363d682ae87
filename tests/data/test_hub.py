import json
import os
import re
import shutil
import subprocess
import sys
import time

import datasets
import huggingface_hub
import pytest

from seq2seq.data.corpus import Corpus, Pair
from seq2seq.data.hub import HubCorpus
from seq2seq.errors import ConfigError, CorpusError

ROWS = {"train": [("a", "A"), ("b", "B"), ("c", "C"), ("d", "D")], "val": [("v", "V")], "test": [("t", "T")]}


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """Nothing is read from or left in the user's own cache."""
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def folder(tmp_path):
    """Writes a local data set, laid out as ``bentrevett/multi30k`` is, and returns its path."""

    def folder(name="set", nest=None, **splits):
        path = tmp_path / name
        path.mkdir(exist_ok=True)
        for split, rows in {**ROWS, **splits}.items():
            cells = [{"en": english, "de": german} for english, german in rows]
            lines = [json.dumps({nest: cell} if nest else cell) for cell in cells]
            (path / f"{split}.jsonl").write_text("\n".join(lines) + "\n")
        return str(path)

    return folder


def read(corpus, split="train"):
    return [pair[:2] for pair in corpus.pairs(split)]


def test_columns_named_by_language(folder):
    corpus = HubCorpus(path=folder())
    assert isinstance(corpus, Corpus)
    assert list(corpus.pairs("valid")) == [Pair("v", "V")]
    assert {split: read(corpus, split) for split in ("train", "valid", "test")} == {
        "train": ROWS["train"],
        "valid": ROWS["val"],
        "test": ROWS["test"],
    }


def test_one_column_that_holds_both_languages(folder):
    corpus = HubCorpus(path=folder(nest="translation"), source="de", target="en", fields="translation")
    assert read(corpus, "test") == [("T", "t")]


def test_a_set_with_training_data_alone_can_be_divided(folder):
    splits = {"train": "train[2:]", "valid": "train[:1]", "test": "train[1:2]"}
    corpus = HubCorpus(path=folder(), splits=splits)
    assert [read(corpus, split) for split in splits] == [[("c", "C"), ("d", "D")], [("a", "A")], [("b", "B")]]


def test_a_sentence_is_one_line(folder):
    corpus = HubCorpus(path=folder(train=[("a\nb\tc", "A\r\nB\0C\u2028D")]))
    assert read(corpus) == [("a b c", "A  B C\u2028D")]


def test_multi30k(multi30k):
    corpus = HubCorpus(path=str(multi30k))
    assert [sum(1 for _ in corpus.pairs(split)) for split in ("train", "valid", "test")] == [29_000, 1_014, 1_000]
    assert next(corpus.pairs("train"))[:2] == (
        "Two young, White males are outside near many bushes.",
        "Zwei junge weiße Männer sind im Freien in der Nähe vieler Büsche.",
    )


def test_identity_follows_the_content_and_nothing_else(folder, tmp_path):
    base = HubCorpus(path=folder()).identity()
    shutil.copytree(folder(), tmp_path / "copy")
    assert HubCorpus(path=str(tmp_path / "copy")).identity() == base
    assert HubCorpus(path=folder("other", test=[("t", "X")])).identity() != base
    assert HubCorpus(path=folder(), source="de", target="en").identity() != base
    assert (
        HubCorpus(path=folder(), splits={"train": "train[1:]", "valid": "validation", "test": "test"}).identity()
        != base
    )
    assert json.loads(json.dumps(base)) == base


def test_changed_content_is_read_anew(folder):
    assert read(HubCorpus(path=folder()), "test") == [("t", "T")]
    assert read(HubCorpus(path=folder(test=[("u", "U")])), "test") == [("u", "U")]


def test_progress_bars_are_as_before(folder, capfd):
    datasets.enable_progress_bars()
    read(HubCorpus(path=folder()))
    assert datasets.is_progress_bar_enabled()
    assert "Generating" not in capfd.readouterr().err


def test_path_is_no_folder(folder, tmp_path):
    with pytest.raises(
        CorpusError, match=r"data\.path=.*absent: must be a folder with the data files, found nothing there"
    ):
        HubCorpus(path=str(tmp_path / "absent"))
    with pytest.raises(CorpusError, match=r"must be a folder with the data files, found a file"):
        HubCorpus(path=f"{folder()}/test.jsonl")


def test_folder_without_data(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(CorpusError, match=r"empty: cannot be opened \(EmptyDatasetError"):
        read(HubCorpus(path=str(tmp_path / "empty")))


def test_file_that_is_no_json(folder):
    path = folder()
    with open(f"{path}/train.jsonl", "a") as file:
        file.write("{broken\n")
    with pytest.raises(CorpusError, match=r"set: cannot be opened \(DatasetGenerationError"):
        read(HubCorpus(path=path))


def test_missing_column(folder):
    with pytest.raises(CorpusError, match=r"split 'train': no column 'fr', found 'en', 'de'; set data\.source"):
        read(HubCorpus(path=folder(), target="fr"))
    with pytest.raises(CorpusError, match=r"no column 'translation', found 'en', 'de'; set data\.fields"):
        read(HubCorpus(path=folder(), fields="translation"))
    with pytest.raises(CorpusError, match=r"column 'en' must hold both languages, found"):
        read(HubCorpus(path=folder(), fields="en"))
    with pytest.raises(CorpusError, match=r"no column 'fr' in 'translation', found 'en', 'de'"):
        read(HubCorpus(path=folder("nested", nest="translation"), source="fr", fields="translation"))


@pytest.mark.parametrize("theirs", ["dev", "train[", "train+test", "train[a:b]"])
def test_missing_split(folder, theirs):
    corpus = HubCorpus(path=folder(), splits={"train": "train", "valid": theirs, "test": "test"})
    message = f"no split {theirs!r}, found 'train', 'validation', 'test'; set data.splits.valid"
    with pytest.raises(CorpusError, match=re.escape(message)):
        read(corpus, "valid")


@pytest.mark.parametrize("nest", [None, "translation"])
def test_value_that_is_no_text(folder, nest):
    corpus = HubCorpus(path=folder(nest=nest, train=[("a", "A"), ("b", None)]), fields=nest)
    with pytest.raises(CorpusError, match=r"split 'train', row 1: 'de' must be text, found None"):
        read(corpus)
    corpus = HubCorpus(
        path=folder("numbers", nest=nest, train=[(7, "A")], val=[(7, "A")], test=[(7, "A")]), fields=nest
    )
    with pytest.raises(CorpusError, match=r"row 0: 'en' must be text, found 7"):
        read(corpus)


def test_settings_that_do_not_fit(folder):
    with pytest.raises(ConfigError, match=r"data\.name and data\.path are both empty"):
        HubCorpus(name=None)
    with pytest.raises(ConfigError, match=r"identical source and target: data\.source=en data\.target=en"):
        HubCorpus(path=folder(), target="en")
    with pytest.raises(ConfigError, match=r"data\.splits=.*must name train, valid, test"):
        HubCorpus(path=folder(), splits={"train": "train"})
    with pytest.raises(CorpusError, match=r"BuilderConfig 'de-en' not found.*see data\.name, data\.config"):
        read(HubCorpus(path=folder(), config="de-en"))


def test_no_network_and_no_copy(tmp_path):
    """In a process of its own, whose libraries see ``HF_HUB_OFFLINE`` when they start."""
    code = (
        "from seq2seq.data.hub import HubCorpus\nfrom seq2seq.errors import CorpusError\n"
        "try: next(HubCorpus().pairs('train'))\nexcept CorpusError as error: print(error)"
    )
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60)
    assert re.match(
        r"data set bentrevett/multi30k: the Hugging Face hub cannot be reached \(OfflineModeIsEnabled.*holds no copy\. "
        r".*set data\.path=DIR, or use data=cldr, which needs no network\n$",
        done.stdout,
    ), done


@pytest.fixture
def hub(monkeypatch):
    """Puts a stand-in for the hub's answer to what a revision is now: a commit, or an exception."""

    def hub(answer):
        def dataset_info(self, name, *, revision, timeout):
            if isinstance(answer, Exception):
                raise answer
            return huggingface_hub.hf_api.DatasetInfo(id=name, sha=answer, tags=[], private=False)

        monkeypatch.setattr(huggingface_hub.HfApi, "dataset_info", dataset_info)

    return hub


def test_unreachable_hub_fails_at_once(hub):
    """Real ``datasets`` from here on: it would try six times in 24 s if it were left to find out itself."""
    hub(OSError("Name or service not known"))
    start = time.monotonic()
    with pytest.raises(CorpusError, match=r"cannot be reached \(OSError: Name or service not known\)"):
        read(HubCorpus())
    assert time.monotonic() - start < 10
    assert not datasets.config.HF_HUB_OFFLINE


def test_unreachable_hub_with_a_copy_in_the_cache(hub, tmp_path, monkeypatch):
    """The copy is laid into the cache as ``datasets`` does it: <namespace>___<name>/<config>/<version>/<commit>."""
    commit = "0123456789" * 4
    place = tmp_path / "cache" / "bentrevett___multi30k" / "default" / "0.0.0" / commit
    content = datasets.Dataset.from_dict({"en": ["a"], "de": ["A"]})
    info = {"dataset_name": "multi30k", "config_name": "default", "version": "0.0.0", "splits": {}}
    for split in ("train", "validation", "test"):
        place.mkdir(parents=True, exist_ok=True)
        with datasets.arrow_writer.ArrowWriter(path=str(place / f"multi30k-{split}.arrow")) as writer:
            writer.write_table(content.data.table)
            writer.finalize()
        info["splits"][split] = {"name": split, "num_bytes": 2, "num_examples": 1, "dataset_name": "multi30k"}
    (place / "dataset_info.json").write_text(json.dumps({**info, "version": {"version_str": "0.0.0"}}))
    hub(OSError("no route"))
    assert read(HubCorpus(), "valid") == [("a", "A")]
    assert read(HubCorpus(revision=commit), "valid") == [("a", "A")]
    assert HubCorpus().identity() == HubCorpus().identity()
    with pytest.raises(CorpusError, match=rf"cache holds revision {commit} where data\.revision={'f' * 40}"):
        read(HubCorpus(revision="f" * 40))


def test_script_only_set(hub, monkeypatch):
    """``load_dataset`` is replaced by one that raises what it raises for a set whose repository has a script."""
    asked = {}

    def load_dataset(name, config, revision):
        asked.update(name=name, config=config, revision=revision)
        raise RuntimeError("Dataset scripts are no longer supported, but found iwslt2017.py")

    hub("abc")
    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    with pytest.raises(
        CorpusError, match=r"is a script.*found iwslt2017\.py\); set data\.revision=refs/convert/parquet"
    ):
        read(HubCorpus("IWSLT/iwslt2017", config="iwslt2017-en-de"))
    assert asked == {"name": "IWSLT/iwslt2017", "config": "iwslt2017-en-de", "revision": "abc"}


def test_a_fault_of_the_program_is_not_dressed_up(hub, monkeypatch):
    def load_dataset(*_, **__):
        raise RuntimeError("something else")

    hub("abc")
    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    with pytest.raises(RuntimeError, match="something else"):
        read(HubCorpus())


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (
            huggingface_hub.errors.RepositoryNotFoundError,
            r"not on the hub, or not open to all; set data\.name or data\.path",
        ),
        (huggingface_hub.errors.RevisionNotFoundError, r"no revision 'v9' on the hub; set data\.revision"),
    ],
)
def test_what_the_hub_does_not_have(hub, error, message):
    """The exceptions are those of ``huggingface_hub``; built without the HTTP answer that they carry."""
    hub(error.__new__(error))
    with pytest.raises(CorpusError, match=message):
        read(HubCorpus("nobody/nothing", revision="v9"))
