"""Run folders, read: what a finished run left behind, checked for being whole, and nothing of how it came about.

A folder is read completely or not at all. What is missing or half-written is said in one sentence, so that a report over
many runs can name the folder, leave it out and go on.
"""

import csv
import json
import re
import zipfile
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, takewhile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from seq2seq.errors import ConfigError
from seq2seq.report.settings import read_settings

SCORES, HYPOTHESES, PROGRESS = "scores.json", "hypotheses.tsv", "metrics.csv"
WEIGHTS, PROBES, CONFIG, ERROR = "attention.npz", "probes.npz", "config.yaml", "error.txt"
COLUMNS = ["id", "source", "reference", "hypothesis"]
NEEDED_SCORES = ("attention", "data", "seed", "bleu", "bleu_signature", "chrf", "n", "parameters")
NEEDED_SCORES += ("train_tokens", "train_seconds", "train_tokens_per_s")
NEEDED_PROBES = ("ids", "accuracy_correct", "accuracy_count", "item_sentence", "item_position", "item_count")
NEEDED_PROBES += ("item_recalled", "gradient_norm", "gradient_length", "gradient_distance")
NEEDED_PROBES += ("entropy", "coverage")
NEEDED_PROBES += ("alignment_found", "alignment_predicted", "alignment_true")
BROKEN_ARCHIVE = (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error)


class Weights(NamedTuple):
    """Attention weights of one test sentence, from 0 to 1, with the tokens of both sides.

    ``weights`` are ``[T, S]``; ``heads`` ``[H, T, S]`` of a multi-head attention, None where the model has none; ``encoder``
    ``[H, S, S]`` for each layer of self-attention.
    """

    weights: np.ndarray
    source: tuple[str, ...]
    target: tuple[str, ...]
    heads: np.ndarray | None = None
    encoder: tuple[np.ndarray, ...] = ()


@dataclass(frozen=True, eq=False)
class Run:
    """A finished run. All sentence-wise fields are in the order of ``ids``.

    Args:
        folder: where it was read from.
        scores: ``scores.json`` as it is.
        ids: rows of the test split.
        sources, references, hypotheses: raw text.
        progress: the validations of ``metrics.csv`` by column, NaN where a row has no value; empty if nothing was logged.
        weights: ``attention.npz`` by sentence id; empty if no weights were kept.
        probes: ``probes.npz`` by array, or None if the run was not probed.
        settings: ``config.yaml``, every value under its dotted name; empty if it is missing.
    """

    folder: Path
    scores: Mapping[str, Any]
    ids: tuple[int, ...]
    sources: tuple[str, ...]
    references: tuple[str, ...]
    hypotheses: tuple[str, ...]
    progress: Mapping[str, np.ndarray]
    weights: Mapping[int, Weights]
    probes: Mapping[str, np.ndarray] | None
    settings: Mapping[str, str]

    @property
    def attention(self) -> str:
        return str(self.scores["attention"])

    @property
    def seed(self) -> int:
        return int(self.scores["seed"])

    @property
    def tokenizer(self) -> str:
        """The name of the tokenizer that sacreBLEU scored this run with."""
        found = re.search(r"tok:([^|]+)", self.scores["bleu_signature"])
        return found[1] if found else "13a"


class Failed(NamedTuple):
    """A run folder that is left out, and why."""

    folder: Path
    reason: str


def find_runs(paths: Iterable[Path | str]) -> tuple[list[Run], list[Failed]]:
    """Reads every run at ``paths``; each is a run folder, or a sweep's folder with run folders in it.

    Raises:
        ConfigError: a path does not exist or holds no run, or no run at all can be read.
    """
    folders: dict[Path, Path] = {}
    for path in map(Path, paths):
        if not path.is_dir():
            raise ConfigError(f"{path} is no folder; name run folders, or a sweep's folder that holds them")
        found = [path] if _is_run(path) else sorted(filter(_is_run, path.iterdir()), key=_by_number)
        if not found:
            raise ConfigError(f"{path} is neither a run folder nor a folder with run folders in it")
        folders |= {folder.resolve(): folder for folder in found}
    runs, failed = [], []
    for folder in folders.values():
        try:
            runs.append(read_run(folder))
        except ConfigError as error:
            failed.append(Failed(folder, str(error)))
    if not runs:
        raise ConfigError("no finished run: " + "; ".join(f"{folder}: {reason}" for folder, reason in failed))
    return runs, failed


def read_run(folder: Path | str) -> Run:
    """Reads one run folder.

    Raises:
        ConfigError: a file is missing or half-written; the message starts with its name.
    """
    folder = Path(folder)
    scores = _scores(folder)
    rows = _hypotheses(folder / HYPOTHESES, scores["n"])
    ids, sources, references, hypotheses = zip(*rows, strict=True)
    probes = _arrays(folder / PROBES)
    if probes is not None and (lacking := [name for name in NEEDED_PROBES if name not in probes]):
        raise ConfigError(f"{PROBES} lacks {', '.join(lacking)}")
    return Run(
        folder,
        scores,
        tuple(map(int, ids)),
        sources,
        references,
        hypotheses,
        _progress(folder / PROGRESS),
        _weights(folder / WEIGHTS),
        probes,
        read_settings(folder / CONFIG),
    )


def check_same_test(runs: Sequence[Run]) -> None:
    """Scores are comparable on the same test sentences only.

    Raises:
        ConfigError: two runs differ in their ids, sources, references or sacreBLEU's tokenizer; names the first difference.
    """
    first = runs[0]
    for other in runs[1:]:
        two_folders = f"{first.folder} and {other.folder}"
        both = f"{two_folders} were not tested on the same sentences"
        if len(first.ids) != len(other.ids):
            raise ConfigError(f"{both}: {len(first.ids)} and {len(other.ids)} of them; compare runs on one test set")
        for name in ("ids", "sources", "references"):
            for place, (one, two) in enumerate(zip(getattr(first, name), getattr(other, name), strict=True)):
                if one != two:
                    raise ConfigError(
                        f"{both}: the first difference is in row {place + 1} of {HYPOTHESES}, {name.removesuffix('s')} "
                        f"{one!r} and {two!r}; compare runs on one test set"
                    )
        if first.tokenizer != other.tokenizer:
            raise ConfigError(
                f"{two_folders} were scored with different tokenizers: {first.tokenizer} and {other.tokenizer}"
            )


def _is_run(folder: Path) -> bool:
    return any((folder / name).is_file() for name in (CONFIG, SCORES, HYPOTHESES, PROGRESS, WEIGHTS, ERROR))


def _by_number(folder: Path) -> list[tuple[int, str]]:
    # The tenth cell comes after the second.
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", folder.name) if part]


def _scores(folder: Path) -> dict[str, Any]:
    try:
        scores = json.loads((folder / SCORES).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(_why_unfinished(folder)) from None
    except ValueError as error:
        raise ConfigError(f"{SCORES} is no whole JSON file ({error})") from error
    if not isinstance(scores, dict):
        raise ConfigError(f"{SCORES} holds no scores by name")
    if lacking := [name for name in NEEDED_SCORES if name not in scores]:
        raise ConfigError(f"{SCORES} lacks {', '.join(lacking)}")
    return scores


def _why_unfinished(folder: Path) -> str:
    path = folder / ERROR
    lines = path.read_text(encoding="utf-8", errors="replace").strip().splitlines() if path.is_file() else []
    return lines[-1].strip() if lines else f"{SCORES} is missing: the run is not finished"


def _hypotheses(path: Path, count: int) -> list[list[str]]:
    if not path.is_file():
        raise ConfigError(f"{path.name} is missing")
    header, *rows = [line.split("\t") for line in _text(path).removesuffix("\n").split("\n")]
    if header != COLUMNS:
        raise ConfigError(f"{path.name} starts with {header} instead of {COLUMNS}")
    for number, row in enumerate(rows, start=2):
        if len(row) != len(COLUMNS) or not row[0].isdigit():
            raise ConfigError(f"{path.name}, line {number} is no row of {', '.join(COLUMNS)}: half-written?")
    if not rows or len(rows) != count:
        raise ConfigError(f"{path.name} has {len(rows)} sentences, {SCORES} says {count}: half-written?")
    return rows


def _progress(path: Path) -> dict[str, np.ndarray]:
    if not path.is_file():
        return {}
    rows = list(csv.DictReader(_text(path).splitlines()))
    if any(None in row or None in row.values() for row in rows):
        raise ConfigError(f"{path.name} has a row that is not as long as its header: half-written?")
    # Steps that a resumed run repeats are in the file twice; the later row is the one that counts.
    validations = {row["step"]: row for row in rows if row.get("valid/bleu") and row.get("step")}
    try:
        values = {int(step): row for step, row in validations.items()}
        columns = rows[0] if rows else {}
        return {name: np.array([float(values[step][name] or "nan") for step in sorted(values)]) for name in columns}
    except ValueError as error:
        raise ConfigError(f"{path.name} holds something else than numbers ({error}): half-written?") from error


def _text(path: Path) -> str:
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path.name} is no UTF-8 text ({error})") from error
    if not text.endswith("\n"):
        raise ConfigError(f"{path.name} ends in the middle of a line: half-written?")
    return text


def _weights(path: Path) -> dict[int, Weights]:
    arrays = _arrays(path) or {"ids": np.array([], dtype=np.int64)}
    try:
        return {
            sentence: Weights(
                arrays[f"weights_{sentence}"],
                tuple(arrays[f"source_{sentence}"].tolist()),
                tuple(arrays[f"target_{sentence}"].tolist()),
                arrays.get(f"heads_{sentence}"),
                tuple(
                    takewhile(
                        lambda each: each is not None, (arrays.get(f"encoder_{sentence}_{at}") for at in count(1))
                    )
                ),
            )
            for sentence in arrays["ids"].tolist()
        }
    except KeyError as error:
        raise ConfigError(f"{path.name} lacks {error}") from error


def _arrays(path: Path) -> dict[str, np.ndarray] | None:
    if not path.is_file():
        return None
    try:
        with np.load(path, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except BROKEN_ARCHIVE as error:
        raise ConfigError(f"{path.name} cannot be read ({error}): half-written?") from error
