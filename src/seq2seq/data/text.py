"""Parallel sentences from the user's own text files: two aligned files a split, or one of tab-separated pairs."""

import hashlib
import itertools
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from seq2seq.data.corpus import Pair
from seq2seq.errors import ConfigError, CorpusError
from seq2seq.types import Split

BOM = b"\xef\xbb\xbf"
ONE_LINE = str.maketrans("\t\n\r\0", "    ")
"""Characters that would break a sentence apart in a table of results, each as a space."""
EXAMPLE = (
    "data.train=[train.en,train.de] data.valid=[valid.en,valid.de] data.test=[test.en,test.de], or data.train=train.tsv"
)


class TextCorpus:
    r"""UTF-8 text, one sentence a line.

    Only ``\n`` and ``\r\n`` end a line; a form feed or U+2028 stays where it stands in its sentence, so no line count
    shifts. A byte order mark at the start of a file is dropped; a NUL, a carriage return inside a line and, where each
    side has its own file, a tab become a space. The files are read line by line.

    Args:
        train, valid, test: of each split, one path to lines of ``source<TAB>target``, or two paths, source and target.
        source, target: language codes of the two sides.

    Raises:
        ConfigError: a split is missing, or is neither one path nor two.
        CorpusError: a file is missing or a folder, or is named twice.
    """

    def __init__(
        self,
        train: Any = None,
        valid: Any = None,
        test: Any = None,
        source: str = "en",
        target: str = "de",
    ) -> None:
        self.source, self.target = source, target
        given: dict[Split, Any] = {"train": train, "valid": valid, "test": test}
        self.files: dict[Split, tuple[Path, ...]] = {split: _paths(split, value) for split, value in given.items()}
        for path in itertools.chain.from_iterable(self.files.values()):
            _check_file(path)
        self._check_distinct()

    def identity(self) -> dict[str, object]:
        """The languages, and a digest of every file's bytes, wherever it lies."""
        digests = {split: [file_digest(path) for path in paths] for split, paths in self.files.items()}
        return {"corpus": "text", "source": self.source, "target": self.target, "files": digests}

    def pairs(self, split: Split) -> Iterator[Pair]:
        """The pairs of one split, in the order of the file.

        Raises:
            CorpusError: a file is empty, is not UTF-8 or has a line without exactly two fields; or two files have
                unequal numbers of lines. Names the file, and the line counted from 1.
        """
        paths = self.files[split]
        for path in paths:
            _check_kind(path)
        counts = [sum(1 for _ in _lines(path)) for path in paths]
        for path, count in zip(paths, counts, strict=True):
            if count == 0:
                raise CorpusError(f"{path}: holds no line; data.{split} needs at least one pair")
        if len(paths) == 1:
            yield from _tab_separated(paths[0])
            return
        if counts[0] != counts[1]:
            longer = paths[counts[1] > counts[0]]
            raise CorpusError(
                f"{paths[0]} has {counts[0]} lines, {paths[1]} has {counts[1]}: line {min(counts) + 1} of {longer} "
                f"has no partner; data.{split} needs files in which line n of one translates line n of the other"
            )
        for source, target in zip(sentences(paths[0]), sentences(paths[1]), strict=True):
            yield Pair(source.translate(ONE_LINE), target.translate(ONE_LINE))

    def _check_distinct(self) -> None:
        """No file twice: as both sides it teaches copying, in two splits it tests on what was taught."""
        uses: dict[Path, str] = {}
        for split, paths in self.files.items():
            if len(paths) == 2 and paths[0].samefile(paths[1]):
                raise CorpusError(
                    f"data.{split}: identical source and target, both are the file {paths[0]}; name the translation second"
                )
            for path in paths:
                key = f"data.{split}"
                if uses.setdefault(path.resolve(), key) != key:
                    raise CorpusError(
                        f"{path} is in both {uses[path.resolve()]} and {key}; give each split its own file"
                    )


def _paths(split: Split, value: Any) -> tuple[Path, ...]:
    if value is None:
        raise ConfigError(f"data.{split} is not set: name your files, as in `python train.py data=text {EXAMPLE} ...`")
    several = isinstance(value, Sequence) and not isinstance(value, str)
    names = list(value) if several else [value]
    if len(names) not in (1, 2) or not all(isinstance(name, str | os.PathLike) and str(name) for name in names):
        raise ConfigError(f"data.{split}={names}: must be one path or two, as in {EXAMPLE}")
    return tuple(Path(name).expanduser() for name in names)


def _check_file(path: Path) -> None:
    if path.is_dir():
        raise CorpusError(f"{path}: is a folder; name the file in it")
    if not path.exists():
        raise CorpusError(f"{path}: no such file; paths count from {Path.cwd()}")
    if not os.access(path, os.R_OK):
        raise CorpusError(f"{path}: may not be read; see its permissions")


def _check_kind(path: Path) -> None:
    """Other kinds of files that hold text, which line by line would look like damaged UTF-8."""
    if not path.is_file():
        return  # what is read from a pipe is gone
    with path.open("rb") as file:
        start = file.read(4)
    if start.startswith(b"\x1f\x8b"):
        raise CorpusError(f"{path}: is compressed; unpack it first, as in `gunzip --keep {path}`")
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise CorpusError(f"{path}: is UTF-16; convert it, as in `iconv -f UTF-16 -t UTF-8 {path} > new`")


def file_digest(path: str | Path) -> str:
    """BLAKE2b of a file's bytes, in hexadecimal."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Every line's offset in the file and its bytes, without byte order mark and line end."""
    _check_file(path)
    offset = 0
    with path.open("rb") as file:
        for line in file:  # a binary file knows no other line end than \n
            start = offset
            offset += len(line)
            if start == 0 and line.startswith(BOM):
                line, start = line[len(BOM) :], len(BOM)
                if not line:
                    return
            yield start, line.removesuffix(b"\n").removesuffix(b"\r")


def sentences(path: Path) -> Iterator[str]:
    """The lines of a file, without byte order mark and line ends.

    Raises:
        CorpusError: it cannot be read, is compressed or UTF-16, or a line is not UTF-8; names the file and the line.
    """
    _check_file(path)
    _check_kind(path)
    for number, (start, line) in enumerate(_lines(path), start=1):
        try:
            yield line.decode("utf-8")
        except UnicodeDecodeError as error:
            raise CorpusError(
                f"{path}, line {number}: byte 0x{line[error.start]:02x} at offset {start + error.start} of the file "
                f"is not valid UTF-8 ({error.reason}); convert it, as in `iconv -f LATIN1 -t UTF-8 {path} > new`"
            ) from None


def _tab_separated(path: Path) -> Iterator[Pair]:
    for number, line in enumerate(sentences(path), start=1):
        fields = line.split("\t")
        if len(fields) != 2:
            raise CorpusError(
                f"{path}, line {number}: found {len(fields)} fields, must be 2, source<TAB>target; "
                f"the line starts with {line[:60]!r}"
            )
        yield Pair(fields[0].translate(ONE_LINE), fields[1].translate(ONE_LINE))
