"""``seq2seq-average CHECKPOINT... --out FILE``: one checkpoint with the mean of the weights of several."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from seq2seq.cli.command import run
from seq2seq.errors import ConfigError


def main(arguments: Sequence[str] | None = None) -> None:
    """Parses the command line and writes the mean."""
    run(_parser(), _average, arguments)


def _average(options: argparse.Namespace) -> None:
    from seq2seq.sharing import checkpoint_in
    from seq2seq.training.checkpoint import average
    from seq2seq.training.files import serialised, written

    if len(options.checkpoints) < 2:
        raise ConfigError("name at least two checkpoints: the mean of one is that one")
    if options.out.exists():
        raise ConfigError(f"--out {options.out} exists already: name another file")
    checkpoint = average([checkpoint_in(path) for path in options.checkpoints])
    try:
        with written(options.out) as file:
            file.write(serialised(checkpoint))
    except OSError as error:
        raise ConfigError(f"--out {options.out} cannot be written: {' '.join(str(error).split())[:200]}") from error
    print(f"mean of {len(options.checkpoints)} checkpoints: {options.out}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="seq2seq-average", description="Writes a checkpoint with the mean of the weights of several."
    )
    parser.add_argument(
        "checkpoints",
        nargs="+",
        type=Path,
        metavar="CHECKPOINT",
        help="of one run, see callbacks=recent; of a run's folder, its best",
    )
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="the checkpoint to write")
    return parser


if __name__ == "__main__":
    main()
