"""``seq2seq-compare RUN_DIR... --out DIR``: the report over finished runs."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from seq2seq.cli.command import run
from seq2seq.errors import ConfigError

SCORES = ("system", "seeds", "BLEU", "chrF", "Δ BLEU", "95%", "max p")
COSTS = ("system", "parameters", "tokens seen", "minutes", "tokens/s", "peak MiB")


def main(arguments: Sequence[str] | None = None) -> None:
    """Parses the command line, writes the report, prints its table and where it lies."""
    run(_parser(), _compare, arguments)


def _compare(options: argparse.Namespace) -> None:
    from rich.box import SIMPLE
    from rich.console import Console
    from rich.table import Table

    from seq2seq.report.compare import write
    from seq2seq.report.comparison import gather
    from seq2seq.report.table import results_grid

    comparison = gather(
        options.runs,
        baseline=options.baseline,
        bins=options.bins,
        edges=None if options.edges is None else _edges(options.edges),
        by=options.by,
        resamples=options.resamples,
    )
    page = write(comparison, options.out)
    console = Console()
    grid = results_grid(comparison.rows)
    # All columns at once are wider than most terminals.
    for title, headers in ((grid.title, SCORES), ("Costs", COSTS)):
        table = Table(title=title, box=SIMPLE, padding=(0, 1, 0, 0))
        places = [grid.headers.index(header) for header in headers]
        for header in headers:
            table.add_column(header, justify="left" if header == "system" else "right")
        for row in grid.rows:
            table.add_row(*(row[place] for place in places))
        console.print(table)
    for failed in comparison.failed:
        console.print(f"left out {failed.folder}: {failed.reason}", soft_wrap=True, highlight=False, markup=False)
    console.print(f"report: {page}", soft_wrap=True, highlight=False, markup=False)


def _edges(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise ConfigError(f"--edges {text}: whole numbers separated by commas, such as 5,10,20") from None


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="seq2seq-compare", description="Writes the report over finished runs.")
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN_DIR", help="run folders, or sweeps' folders")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="the report's folder")
    parser.add_argument("--baseline", help="what the others are compared to (none)")
    lengths = parser.add_mutually_exclusive_group()
    lengths.add_argument("--bins", type=int, default=6, help="source-length bins of about equal size (6)")
    lengths.add_argument("--edges", help="last length of each bin but the last, such as 5,10,20")
    parser.add_argument("--by", choices=("words", "items"), default="words", help="unit of source lengths (words)")
    parser.add_argument(
        "--resamples", type=int, default=1000, help="resampled test sets for intervals and tests (1000)"
    )
    return parser


if __name__ == "__main__":
    main()
