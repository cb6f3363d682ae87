"""The table at the end of a run, from its ``scores.json``."""

import json
from pathlib import Path

from rich.console import Console
from rich.table import Table


def print_summary(run_folder: Path, console: Console | None = None) -> None:
    """Scores, sizes, speed and BLEU by source length of a finished run, and where its files lie."""
    console = console or Console()
    scores = json.loads((run_folder / "scores.json").read_text(encoding="utf-8"))
    console.print(_overview(scores))
    console.print(_by_length(scores))
    console.print(f"BLEU {scores['bleu_signature']}   chrF {scores['chrf_signature']}", soft_wrap=True, highlight=False)
    if scores["truncated"]:
        console.print(f"{scores['truncated']} of {scores['n']} hypotheses were cut at the length cap")
    console.print(f"files in {run_folder}: {', '.join(_files(run_folder))}", soft_wrap=True, highlight=False)


def _overview(scores: dict) -> Table:
    columns = {
        "attention": scores["attention"],
        "data": scores["data"],
        "BLEU": f"{scores['bleu']:.2f}",
        "chrF": f"{scores['chrf']:.2f}",
        "loss": f"{scores['loss']:.3f}",
        "parameters": f"{scores['parameters']['total']:,}",
        "minutes": f"{scores['train_seconds'] / 60:.1f}",
        "tokens/s": f"{scores['train_tokens_per_s']:,.0f}",
    }
    table = Table(title=f"test: {scores['n']:,} sentences, seed {scores['seed']}")
    for name in columns:
        table.add_column(name, justify="left" if name in ("attention", "data") else "right")
    table.add_row(*(str(value) for value in columns.values()))
    return table


def _by_length(scores: dict) -> Table:
    table = Table(title="corpus BLEU by words of the source")
    bins = scores["by_source_length"]
    table.add_column("words")
    for part in bins:
        table.add_column(f"{part['from']}-{part['to']}", justify="right")
    table.add_row("BLEU", *(f"{part['bleu']:.1f}" for part in bins))
    table.add_row("n", *(str(part["n"]) for part in bins))
    return table


def _files(run_folder: Path) -> list[str]:
    return sorted(
        f"{path.name}/" if path.is_dir() else path.name
        for path in run_folder.iterdir()
        if not path.name.startswith(".")
    )
