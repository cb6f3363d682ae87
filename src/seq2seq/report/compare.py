"""Run folders in, a report out: one page, and every table and figure as files beside it."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from seq2seq.errors import ConfigError
from seq2seq.report.alignments import sentences
from seq2seq.report.comparison import Comparison, gather
from seq2seq.report.page import render
from seq2seq.report.sections import Sections

MOST_NAMES = 4
"""More systems than this are counted in the page's title instead of named."""


def compare(paths: Iterable[Path | str], out: Path | str, **options: Any) -> Path:
    """Writes the report over runs into a folder.

    Args:
        paths: run folders, or sweeps' folders that hold them.
        out: the report's folder; files of an earlier report in it are replaced.
        options: what else ``gather`` takes.

    Returns:
        The path of ``index.html``.

    Raises:
        ConfigError: an argument does not fit, no run is readable, or the runs cannot be compared.
    """
    return write(gather(paths, **options), out)


def write(comparison: Comparison, out: Path | str) -> Path:
    """Draws and writes what was computed.

    Returns:
        The path of ``index.html``.

    Raises:
        ConfigError: ``out`` cannot be written.
    """
    out = Path(out)
    try:
        for folder in (out / "figures", out / "tables"):
            folder.mkdir(parents=True, exist_ok=True)
        sections = Sections(comparison, out).all()
        weights = sentences(comparison.systems, [each.id for each in comparison.differences])
        page = render(_title(comparison), comparison.headline, sections, weights)
        (out / "index.html").write_text(page, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"--out {out} cannot be written: {error}") from error
    return out / "index.html"


def _title(comparison: Comparison) -> str:
    names = [system.name for system in comparison.systems]
    data = ", ".join(sorted({str(run.scores["data"]) for system in comparison.systems for run in system.runs}))
    return f"Attention compared: {', '.join(names) if len(names) <= MOST_NAMES else f'{len(names)} systems'} on {data}"
