"""A table of text as CSV, Markdown and cells of a page."""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Grid:
    """Rows of text under headers.

    Args:
        name: of its files, without an ending.
        title: what is in it, for people.
        headers: one a column.
        rows: as many cells each as there are headers; an empty cell says that there is no such number.
        text: headers of the columns of words; all others but the first hold numbers.
    """

    name: str
    title: str
    headers: Sequence[str]
    rows: Sequence[Sequence[str]]
    text: Sequence[str] = ()

    def csv(self) -> str:
        """Comma-separated values with a header line."""
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([self.headers, *self.rows])
        return text.getvalue()

    def markdown(self) -> str:
        """A table in GitHub's Markdown, numbers aligned to the right."""
        rule = ["---" if header in (self.headers[0], *self.text) else "---:" for header in self.headers]
        lines = [
            [_escaped(header) for header in self.headers],
            rule,
            *([_escaped(cell) for cell in row] for row in self.rows),
        ]
        return f"{self.title}\n\n" + "".join(f"| {' | '.join(line)} |\n" for line in lines)

    def save(self, folder: Path) -> None:
        """Writes both forms into ``folder``."""
        (folder / f"{self.name}.csv").write_text(self.csv(), encoding="utf-8")
        (folder / f"{self.name}.md").write_text(self.markdown(), encoding="utf-8")


def _escaped(cell: str) -> str:
    return cell.replace("|", "\\|").replace("\n", " ")
