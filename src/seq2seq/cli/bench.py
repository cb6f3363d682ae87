"""``seq2seq-bench train|choices|attention|decode|scaling|data``: how fast, beside what is possible."""

import argparse
import os
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path

from seq2seq.cli.command import run


def main(arguments: Sequence[str] | None = None) -> None:
    """Parses the command line, measures, prints a table and one line of JSON."""
    os.environ.setdefault("KINETO_LOG_LEVEL", "6")  # torch's profiler tells when it starts and stops
    run(_parser(), lambda options: options.run(options), arguments)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="seq2seq-bench", description="Measures speed beside the machine's own limit.")
    commands = parser.add_subparsers(dest="command", required=True)

    train = commands.add_parser("train", help="training steps: their limit, their parts, what Lightning adds")
    choices = commands.add_parser("choices", help="what each thing that makes a training step fast brings")
    for command, attentions in ((train, "none,additive,scaled"), (choices, "additive")):
        command.add_argument(
            "overrides", nargs="*", help="settings as for train.py, such as data=multi30k data.path=DIR"
        )
        command.add_argument("--attention", default=attentions, help="which ones, separated by commas")
        command.add_argument(
            "--model", default="parallel", help="which decoders, separated by commas: parallel,bahdanau,luong"
        )
        command.add_argument("--batches", type=int, default=10, help="batches a repetition, spread over an epoch")

    attention = commands.add_parser(
        "attention", help="each attention alone: its limit, and what it keeps for its gradient"
    )
    attention.add_argument("--attention", default=None, help="which ones, separated by commas; all if not given")
    attention.add_argument("--batch", type=int, default=128, help="sentences (128)")
    attention.add_argument("--source", type=int, default=20, help="source tokens of each (20)")
    attention.add_argument("--target", type=int, default=20, help="target tokens of each (20)")
    attention.add_argument("--size", type=int, default=256, help="of queries, keys and values (256)")

    decode = commands.add_parser("decode", help="translating, greedy and with a beam")
    decode.add_argument("source", type=Path, help="a file with a sentence a line")
    decode.add_argument("--checkpoint", type=Path, required=True, help="a run's checkpoints/best.ckpt")
    decode.add_argument("--beams", default="1,5", help="which sizes, separated by commas; 1 is greedy (1,5)")

    scaling = commands.add_parser("scaling", help="how a step's time grows with each size, and a figure of it")
    scaling.add_argument("overrides", nargs="*", help="settings as for train.py, such as attention=additive")
    scaling.add_argument("--out", type=Path, required=True, help="a new folder for the figure")

    data = commands.add_parser("data", help="tokenising, opening, planning and loading a corpus, and its memory")
    data.add_argument("overrides", nargs="*", help="settings as for train.py, such as data.train_size=5000000")
    data.add_argument("--batches", type=int, default=500, help="batches to load, those of the epoch at most")

    for name, command, repetitions in (
        ("train", train, 7),
        ("choices", choices, 7),
        ("attention", attention, 7),
        ("decode", decode, 5),
        ("scaling", scaling, 5),
        ("data", data, 1),
    ):
        command.set_defaults(run=_bench(name))
        command.add_argument(
            "--compare", type=Path, metavar="FILE", help="what an earlier one printed: prints the ratios"
        )
        command.add_argument("--threads", type=int, default=2, help="CPU threads (2)")
        if command is not data:
            command.add_argument(
                "--repetitions", type=int, default=repetitions, help="counted repetitions, after one that is not"
            )
        if command is not decode:
            command.add_argument("--conf", type=Path, default=Path("conf"), help="the folder of the configs")
    return parser


def _bench(name: str) -> Callable[[argparse.Namespace], None]:
    """What the command runs, loaded when it does: torch takes seconds."""
    return lambda options: getattr(import_module(f"seq2seq.cli.bench_{name}"), f"bench_{name}")(options)


if __name__ == "__main__":
    main()
