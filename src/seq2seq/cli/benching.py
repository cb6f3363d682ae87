"""What all benchmarks need: the settings of a training, and a table."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from seq2seq.errors import ConfigError

if TYPE_CHECKING:
    from omegaconf import DictConfig


def composed(conf: Path, overrides: Sequence[str]) -> "DictConfig":
    """The settings of a training, as ``train.py`` would have them.

    Raises:
        ConfigError: a setting does not fit, or ``conf`` is another folder.
    """
    from hydra import compose, initialize_config_dir
    from hydra.core.global_hydra import GlobalHydra

    from seq2seq.cli import settings
    from seq2seq.cli.entry import register_resolvers

    if not (conf / "train.yaml").is_file():
        raise ConfigError(f"--conf {conf} holds no train.yaml: run this in the project's folder, or name its conf")
    settings.register()
    register_resolvers()
    GlobalHydra.instance().clear()
    try:
        with initialize_config_dir(str(conf.resolve()), version_base="1.3"):
            return compose("train", list(overrides))
    except Exception as error:
        raise ConfigError(str(error)) from error


def print_table(title: str, names: Sequence[str], numbers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Prints rows of text, names to the left and numbers to the right."""
    from rich.console import Console
    from rich.table import Table

    table = Table(*names, title=title)
    for header in numbers:
        table.add_column(header, justify="right")
    for row in rows:
        table.add_row(*row)
    Console().print(table)
