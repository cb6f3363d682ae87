"""What all benchmarks need: settings of a training, medians with their range, a table, a line of JSON, an earlier one."""

import argparse
import json
import os
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from seq2seq.cli.command import MOST_A_CORE
from seq2seq.data.text import sentences
from seq2seq.errors import ConfigError

if TYPE_CHECKING:
    from omegaconf import DictConfig

LARGEST = 1_000_000
WIDEST = 200
"""Columns of a table that no terminal shows."""
UNTOLD = ("run", "command", "compare", "conf", "out")
"""Options that change no figure."""


class Figure(NamedTuple):
    """What was measured several times; in JSON a list of three numbers."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float], digits: int = 1) -> "Figure":
        return cls(*(round(each, digits or None) for each in (statistics.median(values), min(values), max(values))))

    def __str__(self) -> str:
        return f"{self.median:,} ({self.low:,} to {self.high:,})"


def composed(conf: Path, overrides: Sequence[str], folder: Path | None = None) -> "DictConfig":
    """The settings of a training, as ``train.py`` would have them.

    Args:
        conf: the folder of the configs.
        overrides: as one types them.
        folder: the run folder, where callbacks are to be built, too.

    Raises:
        ConfigError: a setting does not fit, or ``conf`` is another folder.
    """
    from hydra import compose, initialize_config_dir
    from hydra.core.global_hydra import GlobalHydra
    from hydra.core.hydra_config import HydraConfig

    from seq2seq.cli import settings
    from seq2seq.cli.checks import check_settings
    from seq2seq.cli.entry import register_resolvers

    if not (conf / "train.yaml").is_file():
        raise ConfigError(f"--conf {conf} holds no train.yaml: run this in the project's folder, or name its conf")
    settings.register()
    register_resolvers()
    GlobalHydra.instance().clear()
    try:
        with initialize_config_dir(str(conf.resolve()), version_base="1.3"):
            config = compose("train", list(overrides), return_hydra_config=folder is not None)
    except Exception as error:
        raise ConfigError(str(error)) from error
    check_settings(config)
    if folder is not None:
        config.hydra.runtime.output_dir = str(folder)
        HydraConfig.instance().set_config(config)
    return config


def listed(options: argparse.Namespace, name: str) -> list[str]:
    """What an option names with commas between, each once.

    Raises:
        ConfigError: it names nothing.
    """
    found = [part.strip() for part in getattr(options, name).split(",")]
    if not all(found):
        raise ConfigError(
            f"--{name} {getattr(options, name)!r} has an empty name in it: give names with commas between"
        )
    return list(dict.fromkeys(found))


def print_table(title: str, names: Sequence[str], numbers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Prints rows of text, names to the left and numbers to the right; in a file as wide as they are."""
    from rich.console import Console
    from rich.table import Table

    console = Console()
    if not console.is_terminal:
        console = Console(width=WIDEST)

    table = Table(*names, title=title)
    for header in numbers:
        table.add_column(header, justify="right")
    for row in rows:
        table.add_row(*row)
    console.print(table)


def print_rows(title: str, columns: Mapping[str, str], rows: Sequence[Mapping[str, Any]]) -> None:
    """A table of some of the rows' entries.

    Args:
        title: above it.
        columns: headers by the entries they stand for; ``name`` comes first.
        rows: each with a ``name``.
    """
    cells = [[_written(row.get(key)) for key in columns] for row in rows]
    headers = list(columns.values())
    print_table(title, headers[:1], headers[1:], cells)


def print_columns(title: str, lines: Mapping[str, str], rows: Sequence[Mapping[str, Any]]) -> None:
    """The same with a column for each row and a line for each entry, where the entries are many."""
    cells = [[header, *(_written(row.get(key)) for row in rows)] for key, header in lines.items() if key != "name"]
    print_table(title, [lines.get("name", "")], [row["name"] for row in rows], cells)


def _written(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int | float) else str(value)


def finish(kind: str, rows: Sequence[Mapping[str, Any]], options: argparse.Namespace, **facts: Any) -> None:
    """Prints the ratios to an earlier benchmark, if one is asked for, and one line of JSON.

    Args:
        kind: the benchmark's name.
        rows: each with a ``name``, numbers and ``Figure``s.
        options: with ``threads`` and ``compare``.
        facts: whatever else is true of all rows.

    Raises:
        ConfigError: the earlier benchmark is none, or of another kind.
    """
    import torch

    asked = {name: str(value) for name, value in vars(options).items() if name not in UNTOLD and value is not None}
    found = {"bench": kind, "threads": options.threads, "torch": torch.__version__, "options": asked, **facts}
    found["rows"] = list(rows)
    if options.compare is not None:
        _compare(_earlier(options.compare, kind), found, options.compare)
    print(json.dumps(found))


def begin(options: argparse.Namespace, kind: str, *counts: str) -> None:
    """Looks at what was asked for before anything is measured, and settles threads and memory as a training has them.

    Args:
        options: with ``threads`` and ``compare``.
        kind: the benchmark's name.
        counts: options that have to be at least 1, as ``threads`` has.

    Raises:
        ConfigError: a number is out of range, or the earlier benchmark is none, or of another kind.
    """
    import torch

    from seq2seq.cli.memory import keep_few_preparations, keep_freed_memory

    most = {"threads": MOST_A_CORE * (os.cpu_count() or 1)}
    for name in (*counts, "threads"):
        if not 1 <= getattr(options, name) <= most.get(name, LARGEST):
            raise ConfigError(
                f"--{name} must be at least 1 and at most {most.get(name, LARGEST):,}, found {getattr(options, name)}"
            )
    if options.compare is not None:
        _earlier(options.compare, kind)
    torch.set_num_threads(options.threads)
    keep_few_preparations()
    keep_freed_memory()


def _earlier(path: Path, kind: str) -> dict[str, Any]:
    for line in reversed(list(sentences(path))):
        try:
            found = json.loads(line)
        except ValueError:
            continue
        if isinstance(found, dict) and isinstance(found.get("rows"), list) and "bench" in found:
            if not all(isinstance(row, dict) and isinstance(row.get("name"), str) for row in found["rows"]):
                raise ConfigError(f"--compare {path} holds a line of JSON with rows that are none")
            if found["bench"] != kind:
                raise ConfigError(f"--compare {path} holds `seq2seq-bench {found['bench']}`, this is {kind}")
            return found
    raise ConfigError(f"--compare {path} holds no line of JSON that `seq2seq-bench {kind}` has printed")


def _compare(earlier: Mapping[str, Any], now: Mapping[str, Any], path: Path) -> None:
    """A ratio, now to then, for every number that both have."""
    then = {row["name"]: row for row in earlier["rows"]}
    rows, keys = [], {}
    for row in now["rows"]:
        ratios = {
            key: f"{_number(value) / _number(then[row['name']][key]):.2f}"
            for key, value in row.items()
            if _number(value) is not None and _number(then.get(row["name"], {}).get(key))
        }
        keys |= dict.fromkeys(ratios)
        rows.append({"name": row["name"], **ratios})
    asked = earlier["options"] if isinstance(earlier.get("options"), dict) else {}
    other = [f"torch {earlier.get('torch')}"] if earlier.get("torch") != now["torch"] else []
    other += [
        f"{key} {asked.get(key, 'not given')}"
        for key in sorted(asked.keys() | now["options"].keys())
        if asked.get(key) != now["options"].get(key)
    ]
    title = f"ratios to {path}" + (f", which has {', '.join(other)}" if other else "")
    print_columns(title, {key: key for key in keys}, rows)
    if missing := sorted(then.keys() - {row["name"] for row in rows}):
        print(f"only in {path}: {', '.join(missing)}")


def _number(value: Any) -> float | None:
    if isinstance(value, list | tuple):
        value = value[0] if value else None
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
