"""How figures look: colours that colour-blind readers tell apart, and a marker and a line of its own for each system.

Source: Okabe & Ito 2008, "Color Universal Design", the palette without its yellow, which white paper swallows.
"""

import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

COLOURS = ("#d55e00", "#0072b2", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
LINES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))
INK = "#1b1b1a"
"""All text and axes; a page replaces it by the colour of its own text."""
WIDTH, HEIGHT = 5.6, 3.5
MOST_COLUMNS = 4
KEY_WIDTH, LETTER_WIDTH, ROW_HEIGHT = 0.65, 0.087, 0.22
"""Of a legend's entries, in inches: line, gap and margin; a letter; a row."""
SETTINGS = {
    "font.family": ["DejaVu Sans", "sans-serif"],
    "font.size": 10.5,
    "svg.hashsalt": "seq2seq",
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
}
# The same numbers give the same bytes.
NO_METADATA = {"Date": None, "Creator": None}
# What only a file of its own needs; in a page the names of XML's vocabularies would read like addresses.
NOT_INLINE = re.compile(r"<\?xml.*?\?>|<!DOCTYPE.*?>|<metadata>.*?</metadata>| xmlns(:\w+)?=\"[^\"]*\"", re.DOTALL)
IDS = re.compile(r"(\bid=\"|url\(#|href=\"#)")


class Look(NamedTuple):
    """Of one system's line."""

    color: str
    marker: str
    linestyle: str | tuple


def looks(names: Sequence[str]) -> dict[str, Look]:
    """One look a system; with more than a few, colours repeat in other combinations with markers and lines."""
    return {
        name: Look(COLOURS[at % len(COLOURS)], MARKERS[at % len(MARKERS)], LINES[at % len(LINES)])
        for at, name in enumerate(names)
    }


def new_figure(panels: int = 1) -> tuple[Figure, list[Axes]]:
    """Panels one below the other, sharing what runs along."""
    with matplotlib.rc_context(SETTINGS):
        figure = Figure(figsize=(WIDTH, HEIGHT if panels == 1 else 2.5 * panels), layout="constrained")
        axes = list(figure.subplots(panels, 1, sharex=True, squeeze=False)[:, 0])
        for each in axes:
            each.grid(axis="y", color="#888888", alpha=0.3, linewidth=0.7)
            each.spines[["top", "right"]].set_visible(False)
    return figure, axes


def legend(figure: Figure, axes: Axes) -> None:
    """Above the panels, where it covers no line: as many columns as the longest label allows, on a taller figure."""
    handles, labels = axes.get_legend_handles_labels()
    widest = KEY_WIDTH + LETTER_WIDTH * max(map(len, labels), default=0)
    columns = max(1, min(len(labels), MOST_COLUMNS, int(WIDTH / widest)))
    rows = -(-len(labels) // columns)
    figure.set_figheight(figure.get_figheight() + ROW_HEIGHT * max(rows - 1, 0))
    with matplotlib.rc_context(SETTINGS):
        figure.legend(handles, labels, loc="outside upper center", ncols=columns, frameon=False)


def save(figure: Figure, folder: Path, name: str) -> str:
    """Writes ``name.png`` and ``name.svg`` on white, and returns the SVG for a page: transparent, text in its colour."""
    with matplotlib.rc_context(SETTINGS):
        figure.savefig(folder / f"{name}.png", dpi=160, facecolor="white")
        figure.savefig(folder / f"{name}.svg", metadata=NO_METADATA, facecolor="white")
    drawing = io.StringIO()
    # A page's text stays text: small, searchable, in the page's own font. A file of its own brings its letters along.
    with matplotlib.rc_context(SETTINGS | {"svg.fonttype": "none"}):
        figure.savefig(drawing, format="svg", metadata=NO_METADATA, transparent=True)
    return inline(drawing.getvalue(), name)


def inline(svg: str, name: str) -> str:
    """An SVG file as part of a page: names prefixed with ``name``, colours as variables that a dark page can lighten."""
    text = IDS.sub(rf"\g<1>{name}-", NOT_INLINE.sub("", svg)).strip()
    text = text.replace(INK, "currentColor")
    for at, colour in enumerate(COLOURS):
        text = text.replace(colour, f"var(--series-{at}, {colour})")
    return re.sub(
        r'<svg [^>]*?(viewBox="[^"]*")[^>]*>', r"<svg \1 aria-hidden='true' focusable='false'>", text, count=1
    )
