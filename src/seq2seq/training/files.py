"""Files of a run folder, written so that no reader ever sees half of one, and no failure costs the one before."""

import io
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import torch


def write_text(path: Path, text: str) -> None:
    """Writes ``text`` as UTF-8."""
    with written(path) as file:
        file.write(text.encode("utf-8"))


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Writes arrays by name, compressed; ``numpy.load`` reads them without pickle."""
    with written(path) as file:
        np.savez_compressed(file, **arrays)


def serialised(content: Mapping[str, Any]) -> memoryview:
    """Tensors and plain data as the bytes of a file that ``torch.load`` reads.

    Not written by torch itself, which makes an error without a reason of a disk that is full.
    """
    memory = io.BytesIO()
    torch.save(content, memory)
    return memory.getbuffer()


@contextmanager
def written(path: Path) -> Iterator[BinaryIO]:
    """A file beside ``path`` that takes its place once it is whole and on the disk.

    It lies in the same folder, as only within one file system a file takes another's place at once.

    Raises:
        OSError: it could not be written; whatever was at ``path`` is as it was.
    """
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with aside.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)
