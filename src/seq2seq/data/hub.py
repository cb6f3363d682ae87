"""Parallel sentences from the Hugging Face hub, or from a local copy of a hub data set, through ``datasets``."""

import contextlib
import functools
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from seq2seq.data.corpus import Pair
from seq2seq.data.text import ONE_LINE, file_digest
from seq2seq.errors import ConfigError, CorpusError
from seq2seq.types import Split

if TYPE_CHECKING:
    from datasets import Dataset, DatasetDict

SPLITS: dict[Split, str] = {"train": "train", "valid": "validation", "test": "test"}
REACH_SECONDS = 5.0
"""How long the hub may take to answer whether it is there. Without this question ``datasets`` retries for 24 s."""
ROWS = 1_000
"""Rows decoded at a time."""


class HubCorpus:
    """A data set with one column a language, or with one column that holds both.

    A tab, line end or NUL inside a sentence becomes a space.

    Args:
        name: id on the hub.
        path: a folder to read instead, with files as on the hub: ``train.jsonl``, ``val.jsonl``, ``test.jsonl``.
        config: which of the set's configurations.
        revision: branch, tag or commit on the hub; only a commit is a promise of equal content.
        source, target: language codes, which name the columns.
        fields: the column that holds both languages; None if each has its own.
        splits: the set's name of each split of ours. A slice is a name too, so that a set with training data alone
            can be divided: ``{train: "train[2000:]", valid: "train[:1000]", test: "train[1000:2000]"}``.

    Raises:
        ConfigError: there is neither name nor path, a split has no name, or source and target are the same.
        CorpusError: ``path`` is no folder.
    """

    def __init__(
        self,
        name: str | None = "bentrevett/multi30k",
        path: str | None = None,
        config: str | None = None,
        revision: str | None = None,
        source: str = "en",
        target: str = "de",
        fields: str | None = None,
        splits: Mapping[Split, str] | None = None,
    ) -> None:
        self.name, self.config, self.revision, self.fields = name, config, revision, fields
        self.source, self.target = source, target
        self.path = None if path is None else Path(path).expanduser()
        self.splits = dict(SPLITS if splits is None else splits)
        if self.path is None and not name:
            raise ConfigError("data.name and data.path are both empty: set one, as in data.name=bentrevett/multi30k")
        if source == target:
            raise ConfigError(
                f"identical source and target: data.source={source} data.target={target}; choose two columns"
            )
        if set(self.splits) != set(SPLITS):
            raise ConfigError(
                f"data.splits={self.splits}: must name {', '.join(SPLITS)}, as in data.splits.valid=validation"
            )
        if self.path is not None and not self.path.is_dir():
            found = "a file" if self.path.exists() else "nothing there"
            raise CorpusError(
                f"data.path={path}: must be a folder with the data files, found {found} (from {Path.cwd()})"
            )

    def identity(self) -> dict[str, object]:
        """The parameters, with digests of a local folder's data files or the fingerprints of a hub set's splits.

        Raises:
            CorpusError: the set cannot be opened.
        """
        parameters = {
            "corpus": "hub",
            "config": self.config,
            "source": self.source,
            "target": self.target,
            "fields": self.fields,
            "splits": self.splits,
        }
        if self.path is not None:
            return {**parameters, "files": self._file_digests()}
        # The fingerprint of a hub set hashes its id, its configuration and the commit that was read.
        fingerprints = {split: dataset._fingerprint for split, dataset in self._loaded.items()}
        return {**parameters, "name": self.name, "fingerprints": fingerprints}

    def pairs(self, split: Split) -> Iterator[Pair]:
        """The pairs of one split.

        Raises:
            CorpusError: the set cannot be opened, has no such split or column, or a value is no text; names the row,
                counted from 0.
        """
        rows = self._rows(split)
        columns = rows.column_names if self.fields is None else self._languages(rows)
        for language in (self.source, self.target):
            if language not in columns:
                where = "" if self.fields is None else f" in {self.fields!r}"
                raise CorpusError(
                    f"{self._label}, split {self.splits[split]!r}: no column {language!r}{where}, found "
                    f"{', '.join(map(repr, columns))}; set data.source, data.target or data.fields"
                )
        row = 0
        for batch in rows.iter(ROWS):
            if self.fields is not None:
                both = [value or {} for value in batch[self.fields]]
                batch = {side: [value.get(side) for value in both] for side in (self.source, self.target)}
            for source, target in zip(batch[self.source], batch[self.target], strict=True):
                for language, value in ((self.source, source), (self.target, target)):
                    if not isinstance(value, str):
                        raise CorpusError(
                            f"{self._label}, split {self.splits[split]!r}, row {row}: {language!r} must be text, "
                            f"found {value!r}"
                        )
                yield Pair(source.translate(ONE_LINE), target.translate(ONE_LINE))
                row += 1

    @property
    def _label(self) -> str:
        return f"data set {self.path or self.name}"

    def _rows(self, split: Split) -> "Dataset":
        from datasets import ReadInstruction

        theirs, loaded = self.splits[split], self._loaded
        try:
            instruction = ReadInstruction.from_spec(theirs)
            (part,) = instruction.to_absolute({name: len(dataset) for name, dataset in loaded.items()})
        except (ValueError, AssertionError):
            raise CorpusError(
                f"{self._label}: no split {theirs!r}, found {', '.join(map(repr, loaded))}; set data.splits.{split}"
            ) from None
        rows = loaded[part.splitname]
        return rows.select(range(part.from_ or 0, len(rows) if part.to is None else part.to))

    def _languages(self, rows: "Dataset") -> list[str]:
        if self.fields not in rows.column_names:
            raise CorpusError(
                f"{self._label}: no column {self.fields!r}, found {', '.join(map(repr, rows.column_names))}; "
                "set data.fields to the one that holds both languages, or to null if each has its own"
            )
        feature = rows.features[self.fields]
        languages = getattr(feature, "languages", feature)
        if not isinstance(languages, list | tuple | dict):
            raise CorpusError(f"{self._label}: column {self.fields!r} must hold both languages, found {feature}")
        return list(languages)

    def _file_digests(self) -> dict[str, list[str]]:
        from datasets import load_dataset_builder

        with _as_corpus_error(self._label):
            files = load_dataset_builder(str(self.path), self.config).config.data_files
        return {str(split): [file_digest(path) for path in paths] for split, paths in files.items()}

    @functools.cached_property
    def _loaded(self) -> "DatasetDict":
        from datasets import load_dataset

        with _as_corpus_error(self._label):
            if self.path is not None:
                with _without_progress_bars():
                    return load_dataset(str(self.path), self.config)
            try:
                commit = self._ask_hub()
            except CorpusError:
                raise
            except Exception as error:
                # The network libraries share no error class. Whatever went wrong, a copy in the cache may still serve.
                return self._from_cache(error)
            return load_dataset(self.name, self.config, revision=commit)

    def _ask_hub(self) -> str | None:
        """The commit that the revision stands for now."""
        from huggingface_hub import HfApi
        from huggingface_hub.errors import RepositoryNotFoundError, RevisionNotFoundError

        try:
            return HfApi().dataset_info(self.name, revision=self.revision, timeout=REACH_SECONDS).sha
        except RevisionNotFoundError:
            raise CorpusError(f"{self._label}: no revision {self.revision!r} on the hub; set data.revision") from None
        except RepositoryNotFoundError:
            raise CorpusError(
                f"{self._label}: not on the hub, or not open to all; set data.name or data.path"
            ) from None

    def _from_cache(self, reason: Exception) -> "DatasetDict":
        from datasets import load_dataset

        try:
            with _offline():
                loaded = load_dataset(self.name, self.config)
        except ConnectionError:
            raise _unreachable(self._label, reason) from None
        # The cache offers its newest copy, whatever was asked for; each lies in a folder named after its commit.
        folders = {Path(file["filename"]).parent.name for part in loaded.values() for file in part.cache_files}
        if re.fullmatch("[0-9a-f]{40}", self.revision or "") and folders != {self.revision}:
            raise CorpusError(
                f"{self._label}: the hub cannot be reached, and the cache holds revision {', '.join(sorted(folders))} "
                f"where data.revision={self.revision}; set the one that is there, or null for any"
            )
        return loaded


@contextlib.contextmanager
def _offline() -> Iterator[None]:
    """Has ``datasets`` read its cache without asking the hub, and so without its retries."""
    import datasets

    before = datasets.config.HF_HUB_OFFLINE
    datasets.config.HF_HUB_OFFLINE = True
    try:
        yield
    finally:
        datasets.config.HF_HUB_OFFLINE = before


@contextlib.contextmanager
def _without_progress_bars() -> Iterator[None]:
    """A local folder is read in a second; a download keeps its bars."""
    import datasets

    shown = datasets.is_progress_bar_enabled()
    datasets.disable_progress_bars()
    try:
        yield
    finally:
        if shown:
            datasets.enable_progress_bars()


@contextlib.contextmanager
def _as_corpus_error(label: str) -> Iterator[None]:
    """What ``datasets`` raises while it opens a set, as a sentence that says what to do about it."""
    from datasets.exceptions import DatasetsError

    try:
        yield
    except ConnectionError as error:
        raise _unreachable(label, error) from None
    except RuntimeError as error:
        if "scripts are no longer supported" not in str(error):
            raise
        raise CorpusError(
            f"{label}: is a script, which `datasets` runs no more ({error}); set data.revision=refs/convert/parquet"
        ) from None
    except (DatasetsError, FileNotFoundError, ValueError) as error:
        cause = f": {error.__cause__}" if error.__cause__ else ""
        raise CorpusError(
            f"{label}: cannot be opened ({type(error).__name__}: {error}{cause}); "
            "see data.name, data.config and data.path"
        ) from None


def _unreachable(label: str, error: Exception) -> CorpusError:
    return CorpusError(
        f"{label}: the Hugging Face hub cannot be reached ({type(error).__name__}: {error}) "
        "and the cache holds no copy. Download it on another machine and set data.path=DIR, "
        "or use data=cldr, which needs no network"
    )
