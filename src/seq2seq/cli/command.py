"""What the small commands share: how they end, where they read a model from and where they write."""

import argparse
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from seq2seq.errors import ConfigError, UserError


def run(
    parser: argparse.ArgumentParser, work: Callable[[argparse.Namespace], None], arguments: Sequence[str] | None
) -> None:
    """Parses the command line and does the work; a user's mistake ends as one message."""
    options = parser.parse_args(arguments)
    try:
        work(options)
    except UserError as error:
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:
        leave_to_signals()
        sys.exit(130)


def leave_to_signals() -> None:
    """Lets Ctrl-C end the program at once from here on: there is nothing left to interrupt but the way out."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def add_model(parser: argparse.ArgumentParser) -> None:
    """The arguments that name a model."""
    parser.add_argument(
        "model", type=Path, metavar="RUN_DIR", help="of a finished run, a shared folder, or a checkpoint"
    )
    add_trust(parser)


def add_trust(parser: argparse.ArgumentParser) -> None:
    """The option that lets a checkpoint name other packages."""
    parser.add_argument(
        "--trust",
        action="append",
        default=[],
        metavar="PACKAGE",
        help="a package of your own that a checkpoint names",
    )


def check_new(folder: Path) -> None:
    """Makes sure that nothing would be written over.

    Raises:
        ConfigError: it exists and is not empty.
    """
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise ConfigError(f"--out {folder} exists already: name another folder")
