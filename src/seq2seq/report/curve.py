"""Corpus BLEU by source length for several runs: the picture of the bottleneck, drawn from their ``scores.json``.

``python -m seq2seq.report.curve RUN_DIR... --out FILE.png``
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

# Okabe & Ito's palette: told apart by most colour-blind readers.
COLOURS = {"none": "#D55E00", "additive": "#0072B2", "scaled": "#009E73"}
MARKERS = {"none": "o", "additive": "s", "scaled": "^"}


def draw_curve(runs: Sequence[dict], path: Path) -> None:
    """One line a run over the middles of its length bins.

    Args:
        runs: contents of ``scores.json``, all with the same bins.
        path: where to save; its ending decides the format.

    Raises:
        ValueError: the runs were binned differently, or tested on different numbers of sentences.
    """
    bins = [(part["from"], part["to"], part["n"]) for part in runs[0]["by_source_length"]]
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    places = range(len(bins))
    for scores in runs:
        if [(part["from"], part["to"], part["n"]) for part in scores["by_source_length"]] != bins:
            raise ValueError("the runs were not tested on the same sentences: their length bins differ")
        name = scores["attention"]
        values = [part["bleu"] for part in scores["by_source_length"]]
        axes.plot(places, values, marker=MARKERS.get(name, "D"), color=COLOURS.get(name), label=name)
        axes.annotate(f"{values[-1]:.0f}", (places[-1], values[-1]), (8, -3), textcoords="offset points")
    axes.set_xticks(places, [f"{first}-{last}\nn={n}" for first, last, n in bins])
    axes.set_xlabel("words of the source sentence")
    axes.set_ylabel("corpus BLEU")
    axes.set_ylim(0, 104)
    axes.grid(axis="y", alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(title="attention", frameon=False)
    axes.set_title(f"{runs[0]['data']}: translation quality by length")
    figure.savefig(path, dpi=150)


def main() -> None:
    """Draws the runs named on the command line."""
    parser = argparse.ArgumentParser(prog="python -m seq2seq.report.curve", description=__doc__)
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN_DIR")
    parser.add_argument("--out", type=Path, required=True, help="picture to write, such as curve.png or curve.svg")
    options = parser.parse_args()
    missing = [str(run) for run in options.runs if not (run / "scores.json").is_file()]
    if missing:
        parser.error(f"no scores.json in {', '.join(missing)}: is the run finished?")
    runs = [json.loads((run / "scores.json").read_text(encoding="utf-8")) for run in options.runs]
    try:
        draw_curve(runs, options.out)
    except ValueError as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
