"""What the small commands share: how they end, where they read a model from and where they write."""

import argparse
import errno
import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

from seq2seq.errors import ConfigError, UserError

MOST_A_CORE = 8
"""Threads or processes; more would only wait for one another."""
UNWRITTEN = (errno.EPIPE, errno.ENOSPC, errno.EDQUOT)
"""What happens where a program writes to."""


def run(
    parser: argparse.ArgumentParser, work: Callable[[argparse.Namespace], None], arguments: Sequence[str] | None
) -> None:
    """Parses the command line and does the work; a user's mistake ends as one message.

    Settings as for ``train.py`` may stand anywhere, where a command takes some.
    """
    options, rest = parser.parse_known_args(arguments)
    if rest and not (hasattr(options, "overrides") and not any(each.startswith("-") for each in rest)):
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    if rest:
        options.overrides += rest
    try:
        work(options)
    except UserError as error:
        sys.exit(f"error: {error}")
    except Exception as error:
        if isinstance(error, OSError) and error.errno in UNWRITTEN:
            leave_output(error)
        from seq2seq.cli.messages import user_message

        message = user_message(error)
        if message is None:
            raise
        sys.exit(f"error: {message}")
    except KeyboardInterrupt:
        leave_to_signals()
        sys.exit(130)


def leave_output(error: OSError) -> NoReturn:
    """Ends the program where standard output cannot be written."""
    # What could not be written must not be tried again on the way out.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    # Whoever read the output has seen enough, as `| head` does.
    sys.exit(1 if isinstance(error, BrokenPipeError) else f"error: {error}")


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
        ConfigError: it exists and is not empty, or cannot be made.
    """
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise ConfigError(f"--out {folder} exists already: name another folder")
    if (place := unwritable(folder)) is not None:
        raise ConfigError(f"--out {folder} cannot be written: {place} is no writable folder")


def unwritable(folder: Path) -> Path | None:
    """What stands in the way of writing into a folder that may have to be made: it, or the nearest above that is there."""
    nearest = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    return None if nearest.is_dir() and os.access(nearest, os.W_OK | os.X_OK) else nearest
