"""A corpus made ready for training, on disk: one folder per content, built once, reused by every later start.

The folder holds ``joint.model`` or ``source.model`` and ``target.model``, an Arrow file per split, and ``counts.json``.
"""

import errno
import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Literal, NamedTuple, get_args

import sentencepiece
from filelock import FileLock

from seq2seq.data.corpus import Corpus, Pair
from seq2seq.data.split import TokenisedSplit
from seq2seq.data.tokenizer import Kind, Normalization, Tokenizer, Tokenizers
from seq2seq.data.writing import UNLIMITED, Limits, write_split
from seq2seq.errors import CheckpointError, ConfigError, CorpusError
from seq2seq.progress import progress
from seq2seq.spread import thinned
from seq2seq.types import Split

EVERY = 1_000_000
"""Pairs after which a line tells how far the tokenising is."""
FORMAT = 1
"""Goes up when the content of a folder changes its meaning, so that older folders are left alone."""


@dataclass(frozen=True)
class TokenizerSettings:
    """How the tokenizers of a corpus are trained."""

    kind: str = "bpe"
    """``bpe``, ``unigram``, ``char`` or ``word``."""
    vocabulary_size: int = 2000
    """Ids of each tokenizer, the four control symbols among them."""
    joint: bool = True
    """One tokenizer for both languages, or one for each."""
    normalization: str = "nmt_nfkc"
    """How SentencePiece changes a text before it is cut: ``nmt_nfkc``, ``nfkc``, either with ``_cf``, or ``identity``."""
    most_pairs: int = 1_000_000
    """It is learned from at most so many training pairs, and from no less than half as many of a larger corpus: every
    second, fourth, eighth ... of them."""

    def __post_init__(self) -> None:
        """Check the settings.

        Raises:
            ConfigError: a name is unknown, or a number out of its range; says what is possible.
        """
        if not isinstance(self.most_pairs, int) or self.most_pairs < 2:
            raise ConfigError(f"tokenizer.most_pairs={self.most_pairs} is not possible: give at least 2")
        for key, value, possible in (
            ("kind", self.kind, get_args(Kind)),
            ("normalization", self.normalization, get_args(Normalization)),
        ):
            if value not in possible:
                raise ConfigError(f"tokenizer.{key}={value} is unknown; possible: {', '.join(possible)}")


class Counts(NamedTuple):
    """What became of the pairs of one split."""

    kept: int
    empty: int
    """Dropped because a side holds no text."""
    too_long: int
    """Dropped because a side has more than ``max_length`` tokens; in the training split only."""
    too_many_words: int = 0
    """Dropped because a side has more than ``max_words`` words; in the training split only."""


class Store:
    """An opened folder: tokenizers, splits and counts."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.counts: dict[Split, Counts] = {
            split: Counts(**counts) for split, counts in json.loads((folder / "counts.json").read_text("utf-8")).items()
        }
        joint = (folder / "joint.model").exists()
        source = Tokenizer((folder / ("joint.model" if joint else "source.model")).read_bytes())
        target = source if joint else Tokenizer((folder / "target.model").read_bytes())
        self.tokenizers = Tokenizers(source, target, joint)
        self._splits = {split: TokenisedSplit(folder / f"{split}.arrow") for split in get_args(Split)}

    def split(self, name: Split) -> TokenisedSplit:
        """The pairs of one split."""
        return self._splits[name]


def open_store(folder: Path) -> Store:
    """Open a folder that :func:`build` made.

    Raises:
        CheckpointError: a file in it is missing or damaged.
    """
    try:
        return Store(folder)
    except (OSError, ValueError, TypeError, CheckpointError) as error:  # pyarrow.ArrowInvalid is a ValueError
        raise CheckpointError(f"the cache {folder} is damaged ({error}): delete this folder and start again") from error


def store_path(
    corpus: Corpus,
    settings: TokenizerSettings,
    max_length: int | None,
    cache_dir: str | Path,
    max_words: int | None = None,
) -> Path:
    """The folder for this content: another one for every other corpus, setting or version of the format."""
    content = {
        "corpus": corpus.identity(),
        "tokenizer": asdict(settings),
        "max_length": max_length,
        "max_words": max_words,
        "format": FORMAT,
        "sentencepiece": sentencepiece.__version__,
    }
    canonical = json.dumps(content, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return Path(cache_dir) / blake2b(canonical.encode(), digest_size=16).hexdigest()


def build(
    corpus: Corpus,
    settings: TokenizerSettings,
    max_length: int | None,
    cache_dir: str | Path,
    note: Callable[[str], None] = print,
    max_words: int | None = None,
) -> Path:
    """Make the folder of this content unless it is there, and return its path.

    It is written aside and renamed, under a lock: processes that start together make it once, and one that is killed
    leaves nothing that could be taken for a whole folder. A damaged folder is made anew.

    Args:
        corpus: where the pairs come from.
        settings: how the tokenizers are trained, on the training split.
        max_length: training pairs with more tokens on either side are dropped, ``EOS`` not counted; None keeps all.
        cache_dir: the folder for all such folders.
        note: called with a line of text when something unexpected was put right, and once every million pairs.
        max_words: training pairs with more words between white space on either side are dropped; None keeps all.

    Raises:
        ConfigError: ``cache_dir`` cannot be written, or the vocabulary size does not fit the corpus.
        CorpusError: the corpus cannot be read, a split is left without pairs, or source and target are the same.
    """
    folder = store_path(corpus, settings, max_length, cache_dir, max_words)
    if _is_whole(folder):
        return folder
    aside = folder.with_name(f"{folder.name}.partial")
    lock = FileLock(folder.with_name(f"{folder.name}.lock"))
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except OSError as error:
        raise _unwritable(cache_dir, error) from error
    try:
        if _is_whole(folder):  # another process made it while this one waited
            return folder
        if folder.exists():
            note(f"the cache {folder} is damaged and is made anew")
        shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree(aside, ignore_errors=True)
        aside.mkdir()
        _write(corpus, settings, Limits(max_length, max_words), aside, note)
        os.replace(aside, folder)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise _unwritable(cache_dir, error) from error
    finally:
        shutil.rmtree(aside, ignore_errors=True)
        lock.release()
    return folder


def _unwritable(cache_dir: str | Path, error: OSError) -> ConfigError:
    return ConfigError(f"cache_dir={cache_dir} cannot be written ({error}): choose another with cache_dir=PATH")


def _is_whole(folder: Path) -> bool:
    if not folder.exists():
        return False
    try:
        open_store(folder)
    except CheckpointError:
        return False
    return True


def _write(
    corpus: Corpus, settings: TokenizerSettings, limits: Limits, folder: Path, note: Callable[[str], None]
) -> None:
    tokenizers = _train(corpus, settings)
    models = (
        {"joint": tokenizers.source} if settings.joint else {"source": tokenizers.source, "target": tokenizers.target}
    )
    for name, tokenizer in models.items():
        (folder / f"{name}.model").write_bytes(tokenizer.model)
    counts: dict[Split, Counts] = {}
    for split in get_args(Split):
        limited = limits if split == "train" else UNLIMITED
        with _counted(f"{split}: tokenised", note) as advance:
            counted = write_split(folder / f"{split}.arrow", corpus.pairs(split), tokenizers, limited, advance=advance)
        counts[split] = Counts(**counted)
        if not counts[split].kept:
            raise _nothing_left(split, counts[split], limited)
    text = json.dumps({split: counted._asdict() for split, counted in counts.items()}, indent=2)
    (folder / "counts.json").write_text(text + "\n", "utf-8")


@contextmanager
def _counted(what: str, note: Callable[[str], None]) -> Iterator[Callable[[int], None]]:
    """Shows how many pairs are done, in a terminal at once and by ``note`` once every million."""
    done = 0
    with progress(what, "pairs") as show:

        def advance(pairs: int) -> None:
            nonlocal done
            before = done // EVERY
            done += pairs
            show(pairs)
            if done // EVERY > before:
                note(f"{what} {done:,} pairs")

        yield advance


def _train(corpus: Corpus, settings: TokenizerSettings) -> Tokenizers:
    pairs = thinned(_usable(corpus), settings.most_pairs)

    def learn(*sides: Literal["source", "target"]) -> Tokenizer:
        lines = (getattr(pair, side) for pair in pairs for side in sides)
        try:
            return Tokenizer.train(lines, settings.vocabulary_size, settings.kind, settings.normalization)
        except ConfigError as error:
            raise ConfigError(f"{' and '.join(sides)}: {error}") from None

    if settings.joint:
        both = learn("source", "target")
        return Tokenizers(both, both, True)
    return Tokenizers(learn("source"), learn("target"), False)


def _usable(corpus: Corpus) -> Iterator[Pair]:
    """The training pairs with text on both sides.

    Raises:
        CorpusError: there is none, or every source is its own translation.
    """
    kept = empty = same = 0
    for pair in corpus.pairs("train"):
        if not pair.source.strip() or not pair.target.strip():
            empty += 1
            continue
        kept += 1
        same += pair.source == pair.target
        yield pair
    if not kept:
        raise _nothing_left("train", Counts(0, empty, 0))
    if same == kept:
        raise CorpusError(
            f"in all {kept} training pairs source ({corpus.source}) and target ({corpus.target}) are the same text: "
            "check that two different files, fields or languages are given"
        )


def _nothing_left(split: Split, counts: Counts, limits: Limits = UNLIMITED) -> CorpusError:
    read = sum(counts)
    if not read:
        return CorpusError(f"the {split} split holds no pairs: check the corpus, or give it other data")
    found, cure = [f"{counts.empty} empty on a side"], []
    for count, limit, unit in (
        (counts.too_long, f"max_length={limits.length}", "tokens"),
        (counts.too_many_words, f"max_words={limits.words}", "words"),
    ):
        if count:
            found.append(f"{count} longer than {limit} {unit}")
            cure.append(f"raise {limit.partition('=')[0]}")
    return CorpusError(
        f"no usable pair is left of the {read} in the {split} split: {', '.join(found)}: "
        + (" and ".join(cure) or "check the corpus")
    )
