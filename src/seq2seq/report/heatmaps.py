"""Attention weights as pictures, drawn from a run folder's ``attention.npz``."""

from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from seq2seq.spread import evenly

INCHES_PER_TOKEN = 0.28
MOST_INCHES = 40.0
MOST_LABELS = int(MOST_INCHES / INCHES_PER_TOKEN)
"""Longer sentences get smaller cells, and not every token its label."""


def draw_heatmaps(run_folder: Path, most: int = 8) -> list[Path]:
    """One PNG a sentence: source tokens across, target tokens down, dark where the weight is near 1.

    Args:
        run_folder: with ``attention.npz``.
        most: how many of the sentences in it, spread evenly over source lengths.
    """
    drawn = []
    folder = run_folder / "attention"
    folder.mkdir(exist_ok=True)
    with np.load(run_folder / "attention.npz", allow_pickle=False) as arrays:
        by_length = sorted(arrays["ids"].tolist(), key=lambda sentence: (len(arrays[f"source_{sentence}"]), sentence))
        for sentence in (by_length[place] for place in evenly(len(by_length), most)):
            # An attention that looks at no single token has nothing but zeros to show.
            weights = arrays[f"weights_{sentence}"]
            if not weights.any():
                continue
            figure = heatmap(weights, arrays[f"source_{sentence}"], arrays[f"target_{sentence}"])
            path = folder / f"{sentence}.png"
            figure.savefig(path, dpi=120)
            drawn.append(path)
    return drawn


def heatmap(weights: np.ndarray, source: np.ndarray, target: np.ndarray) -> Figure:
    """A figure of one sentence's weights.

    Args:
        weights: ``[T, S]``, 0 to 1.
        source: ``S`` labels.
        target: ``T`` labels.
    """
    with matplotlib.rc_context({"font.family": ["DejaVu Sans", "sans-serif"], "font.size": 8}):
        width, height = (min(INCHES_PER_TOKEN * len(labels), MOST_INCHES) + 1.4 for labels in (source, target))
        figure = Figure(figsize=(max(width, 3.0), max(height, 2.0)), layout="constrained")
        axes = figure.subplots()
        image = axes.imshow(weights, cmap="Blues", vmin=0.0, vmax=1.0, aspect="auto", interpolation="nearest")
        columns, rows = (evenly(len(labels), MOST_LABELS) for labels in (source, target))
        axes.set_xticks(columns, [_label(source[at]) for at in columns], rotation=90)
        axes.set_yticks(rows, [_label(target[at]) for at in rows])
        axes.xaxis.tick_top()
        axes.xaxis.set_label_position("top")
        axes.set_xlabel("source")
        axes.set_ylabel("target")
        figure.colorbar(image, ax=axes, fraction=0.04, label="weight")
    return figure


def _label(token: str) -> str:
    # A dollar sign would start a formula.
    return str(token).replace("$", r"\$")
