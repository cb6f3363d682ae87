"""``seq2seq-share RUN_DIR --out DIR`` or ``--push NAME/MODEL``: a trained model and its card, for others to load."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from seq2seq.cli.command import add_model, check_new, run
from seq2seq.errors import ConfigError, UserError


def main(arguments: Sequence[str] | None = None) -> None:
    """Parses the command line and shares the model."""
    run(_parser(), _share, arguments)


def _share(options: argparse.Namespace) -> None:
    from seq2seq.models.recipe import trusting
    from seq2seq.translator import Translator

    if options.out is not None:
        check_new(options.out)
    translator = Translator.load(options.model, trusted=trusting(options.trust))
    if options.out is not None:
        try:
            translator.save_pretrained(options.out, model_card_kwargs={"name": options.name or str(options.out)})
        except OSError as error:
            raise ConfigError(f"--out {options.out} cannot be written: {error}") from error
        print(f"model and card: {options.out}")
        return
    try:
        place = translator.push_to_hub(
            options.push, private=options.private, model_card_kwargs={"name": options.name or options.push}
        )
    except UserError:
        raise
    except Exception as error:
        # The network libraries below the hub's share no class of errors.
        reason = " ".join(str(error).split())[:300]
        raise ConfigError(
            f"--push {options.push} failed ({reason}): check the name and the connection, and log in with `hf auth login`; "
            "--out DIR writes the same to a folder"
        ) from error
    print(f"model and card: {place}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="seq2seq-share", description=__doc__)
    add_model(parser)
    place = parser.add_mutually_exclusive_group(required=True)
    place.add_argument("--out", type=Path, metavar="DIR", help="writes to a new folder")
    place.add_argument("--push", metavar="NAME/MODEL", help="uploads to the Hugging Face hub")
    parser.add_argument("--private", action="store_true", help="on the hub, for you alone")
    parser.add_argument("--name", help="of the model, in its card (that of the folder or of the upload)")
    return parser


if __name__ == "__main__":
    main()
