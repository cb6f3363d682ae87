"""One tokenised split: a memory-mapped Arrow file, from which batches are cut without a copy in between."""

import os
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pyarrow as pa
import torch
from jaxtyping import Int

from seq2seq.data.corpus import Span
from seq2seq.data.subwords import Subwords
from seq2seq.types import BOS, EOS, PAD, Batch

ROWS = 8192
"""Pairs in a record batch: all but the last hold as many, so that a position says where it lies."""

SCHEMA = pa.schema(
    {
        "source_ids": pa.list_(pa.int32()),  # without EOS
        "target_ids": pa.list_(pa.int32()),
        "source": pa.string(),
        "target": pa.string(),
        "spans": pa.list_(pa.int32()),  # four numbers a span, in the order of Span
        "row": pa.int64(),  # in the corpus, before anything was dropped
    }
)
_SIDES = ("source_ids", "target_ids")


def _batch(
    ids: Int[np.ndarray, "B"],
    source: Int[np.ndarray, "B S"],
    targets: Int[np.ndarray, "B T"],
    loss_denominator: float,
) -> Batch:
    inputs = np.empty_like(targets)
    inputs[:, 0] = BOS
    inputs[:, 1:] = np.where(targets[:, :-1] == EOS, PAD, targets[:, :-1])
    return Batch(
        torch.from_numpy(ids.astype(np.int64)),
        torch.from_numpy(source),
        torch.from_numpy(inputs),
        torch.from_numpy(targets),
        torch.tensor(loss_denominator, dtype=torch.float32),
    )


def _rows(lines: list[list[int]]) -> Int[np.ndarray, "B length"]:
    """Closed with ``EOS`` and filled up with ``PAD``."""
    rows = np.full((len(lines), max(map(len, lines)) + 1), PAD, np.int64)
    for row, line in zip(rows, lines, strict=True):
        row[: len(line) + 1] = [*line, EOS]
    return rows


class TokenisedSplit:
    """The pairs of one split, by position."""

    lengths: Int[np.ndarray, "N 2"]
    """Source and target tokens of every pair, ``EOS`` included."""

    def __init__(self, path: Path) -> None:
        """Map the file into memory.

        Raises:
            ValueError, OSError: it is not a whole file of the form that :func:`seq2seq.data.writing.write_split` writes.
        """
        self._path = path
        whole = pa.memory_map(os.fspath(path)).read_buffer()
        reader = pa.ipc.open_file(pa.BufferReader(whole))
        if reader.schema != SCHEMA:
            raise ValueError(f"{path.name} has other columns than expected")
        self._chunks = [reader.get_batch(index) for index in range(reader.num_record_batches)]
        self._rows = len(self._chunks[0]) if self._chunks else 1
        # All lists of ids lie in the mapped file, seen here as one long row of numbers: the ids of many pairs are then two
        # look-ups away, and nothing but the lengths is kept per pair.
        self._numbers = np.frombuffer(whole, np.int32, whole.size // 4)
        places = [[self._places(chunk.column(side), whole.address) for side in _SIDES] for chunk in self._chunks]
        self._offsets, self._values = np.array(places, np.int64).reshape(-1, 2, 2).transpose(2, 0, 1)
        self.lengths = np.empty((sum(map(len, self._chunks)), 2), np.int32)
        for index, chunk in enumerate(self._chunks):
            for side, start in enumerate(self._offsets[index]):
                offsets = self._numbers[start : start + len(chunk) + 1]
                first = index * self._rows
                np.subtract(offsets[1:], offsets[:-1], out=self.lengths[first : first + len(chunk), side])
        self.lengths += 1

    @staticmethod
    def _places(ids: pa.ListArray, base: int) -> tuple[int, int]:
        """Where, in numbers from the start of the file, the offsets and the values of a column begin."""
        _, offsets, _, values = ids.buffers()
        return (offsets.address - base) // 4, (values.address - base) // 4

    def __reduce__(self) -> tuple[type["TokenisedSplit"], tuple[Path]]:
        return TokenisedSplit, (self._path,)

    def __len__(self) -> int:
        return len(self.lengths)

    def batch(self, ids: Int[np.ndarray, "B"], loss_denominator: float = 1.0) -> Batch:
        """The pairs at the positions ``ids``, padded."""
        return _batch(ids, self._padded(ids, 0), self._padded(ids, 1), loss_denominator)

    def sampled_batch(
        self, ids: Int[np.ndarray, "B"], loss_denominator: float, subwords: tuple[Subwords, Subwords], seed: int
    ) -> Batch:
        """As ``batch``, with the pieces of both sides drawn by ``subwords``.

        The loss's denominator grows with the number of target tokens.
        """
        sources, targets = (list(side) for side in zip(*self.texts(ids.tolist()), strict=True))
        source = _rows(subwords[0].encode(sources, seed))
        target = _rows(subwords[1].encode(targets, seed + 1))
        growth = np.count_nonzero(target) / self.lengths[ids, 1].sum(dtype=np.int64)
        return _batch(ids, source, target, loss_denominator * float(growth))

    def _padded(self, ids: Int[np.ndarray, "B"], side: int) -> Int[np.ndarray, "B length"]:
        """The ids of one side, each row closed with ``EOS`` and filled up with ``PAD``."""
        chunk, row = np.divmod(ids.astype(np.int64), self._rows)
        starts = self._values[chunk, side] + self._numbers[self._offsets[chunk, side] + row]
        last = self.lengths[ids, side].astype(np.int64) - 1
        column = np.arange(last.max() + 1)
        # Rows shorter than the longest read on into what follows them in the file, and are cut off after that.
        places = np.minimum(starts[:, None] + column, len(self._numbers) - 1)
        padded = np.where(column < last[:, None], self._numbers[places], PAD).astype(np.int64)
        padded[np.arange(len(ids)), last] = EOS
        return padded

    def source_text(self, index: int) -> str:
        """The source of one pair as the corpus gave it."""
        return self._cell("source", index)

    def target_text(self, index: int) -> str:
        """The target of one pair as the corpus gave it."""
        return self._cell("target", index)

    def texts(self, ids: Int[torch.Tensor, "K"] | Iterable[int]) -> list[tuple[str, str]]:
        """Source and target of many pairs."""
        return [(self.source_text(index), self.target_text(index)) for index in map(int, ids)]

    def row(self, index: int) -> int:
        """The position of one pair in the corpus, before any pair was dropped."""
        return self._cell("row", index)

    def spans(self, index: int) -> tuple[Span, ...]:
        """The true alignment of one pair; empty if the corpus has none."""
        flat = self._cell("spans", index)
        return tuple(Span(*flat[start : start + 4]) for start in range(0, len(flat), 4))

    def _cell(self, column: str, index: int) -> object:
        if not 0 <= index < len(self):
            raise IndexError(f"position {index} of a split of {len(self)} pairs")
        chunk, row = divmod(index, self._rows)
        return self._chunks[chunk].column(column)[row].as_py()
