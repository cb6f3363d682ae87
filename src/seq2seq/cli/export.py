"""``seq2seq-export RUN_DIR --out DIR``: a trained model as ONNX files, for programs without torch."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from seq2seq.cli.folders import best_of, check_new
from seq2seq.errors import ConfigError, UserError


def main(arguments: Sequence[str] | None = None) -> None:
    """Parses the command line and writes the files."""
    options = _parser().parse_args(arguments)
    try:
        _export(options)
    except UserError as error:
        sys.exit(f"error: {error}")


def _export(options: argparse.Namespace) -> None:
    from seq2seq.export import export
    from seq2seq.models.recipe import trusting
    from seq2seq.training.checkpoint import load

    check_new(options.out)
    model, tokenizers = load(best_of(options.model), trusting(options.trust))
    try:
        options.out.mkdir(parents=True, exist_ok=True)
        export(model, tokenizers, options.out)
    except OSError as error:
        raise ConfigError(f"--out {options.out} cannot be written: {error}") from error
    print(f"ONNX files: {options.out}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="seq2seq-export", description=__doc__)
    parser.add_argument("model", type=Path, metavar="RUN_DIR", help="of a finished run, or the path of a checkpoint")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="a new folder")
    parser.add_argument(
        "--trust", action="append", default=[], metavar="PACKAGE", help="a package of your own that the model names"
    )
    return parser


if __name__ == "__main__":
    main()
