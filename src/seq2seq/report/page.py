"""The report as one page: a file that needs nothing but a browser, online or not."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined

from seq2seq.report.differences import Difference
from seq2seq.report.grid import Grid
from seq2seq.report.runs import Failed


class Picture(NamedTuple):
    """A figure for the page: the name of its files, its SVG, and what it shows in words."""

    name: str
    svg: str
    caption: str


@dataclass(frozen=True)
class Section:
    """A part of the page.

    Args:
        key: its anchor.
        title: its heading.
        text: paragraphs.
        pictures, grids: tables fold under pictures where there are any.
        failed: run folders that are left out.
        differences: sentences, with the names of the system and its baseline.
    """

    key: str
    title: str
    text: Sequence[str] = ()
    pictures: Sequence[Picture] = ()
    grids: Sequence[Grid] = ()
    failed: Sequence[Failed] = ()
    differences: Sequence[Difference] = ()
    names: Sequence[str] = ()


def render(title: str, headline: Sequence[str], sections: Sequence[Section], weights: Mapping[str, Any]) -> str:
    """The page's HTML, style, script and data included.

    Args:
        title: of the page.
        headline: sentences at its top.
        sections: in their order.
        weights: what ``alignments.sentences`` returns.
    """
    environment = Environment(
        loader=PackageLoader("seq2seq.report"), autoescape=True, undefined=StrictUndefined, keep_trailing_newline=True
    )
    css, script = (environment.loader.get_source(environment, name)[0] for name in ("page.css", "page.js"))
    # A closing tag inside a sentence would end the script that holds it.
    data = json.dumps(weights, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    return environment.get_template("page.html").render(
        title=title,
        headline=headline,
        sections=sections,
        weights=weights,
        weights_json=data,
        css=css,
        script=script,
    )
