"""``seq2seq-export RUN_DIR --out DIR``: a trained model as ONNX files, for programs without torch."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from seq2seq.cli.command import add_model, check_new, run
from seq2seq.errors import ConfigError


def main(arguments: Sequence[str] | None = None) -> None:
    """Parses the command line and writes the files."""
    run(_parser(), _export, arguments)


def _export(options: argparse.Namespace) -> None:
    from seq2seq.export import export
    from seq2seq.models.recipe import trusting
    from seq2seq.sharing import checkpoint_in
    from seq2seq.training.checkpoint import load

    check_new(options.out)
    model, tokenizers = load(checkpoint_in(options.model), trusting(options.trust))
    try:
        options.out.mkdir(parents=True, exist_ok=True)
        export(model, tokenizers, options.out)
    except OSError as error:
        raise ConfigError(f"--out {options.out} cannot be written: {error}") from error
    print(f"ONNX files: {options.out}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="seq2seq-export", description=__doc__)
    add_model(parser)
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="a new folder")
    return parser


if __name__ == "__main__":
    main()
