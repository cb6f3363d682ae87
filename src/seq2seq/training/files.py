"""Files of a run folder, written so that no reader ever sees half of one."""

import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np


def write_text(path: Path, text: str) -> None:
    """Writes ``text`` as UTF-8."""
    aside = _aside(path)
    aside.write_text(text, encoding="utf-8")
    aside.replace(path)


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Writes arrays by name, compressed; ``numpy.load`` reads them without pickle."""
    aside = _aside(path)
    with aside.open("wb") as file:
        np.savez_compressed(file, **arrays)
    aside.replace(path)


def _aside(path: Path) -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}")
