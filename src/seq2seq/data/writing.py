"""A split of a corpus, tokenised into an Arrow file: some thousands of pairs at a time, large ones in several processes."""

import multiprocessing
import os
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from seq2seq.data.corpus import Pair
from seq2seq.data.split import ROWS, SCHEMA
from seq2seq.data.tokenizer import Tokenizers
from seq2seq.errors import CorpusError

ALONE = 16
"""Chunks that one process tokenises before others help: those need seconds to start."""

COUNTED = ("kept", "empty", "too_long", "too_many_words")
"""What becomes of a pair."""

Chunk = list[tuple[int, Pair]]
"""Pairs and where in the corpus they stand."""


class Limits(NamedTuple):
    """Longer pairs are dropped; None for no limit."""

    length: int | None = None
    """Tokens of either side, ``EOS`` not counted."""
    words: int | None = None
    """Words between white space of either side."""


UNLIMITED = Limits()


def write_split(
    path: Path,
    pairs: Iterable[Pair],
    tokenizers: Tokenizers,
    limits: Limits = UNLIMITED,
    rows: int = ROWS,
    alone: int = ALONE,
    advance: Callable[[int], None] | None = None,
) -> dict[str, int]:
    """Tokenise ``pairs`` into the file ``path``; count those kept, and those dropped by reason.

    Args:
        path: of the new file.
        pairs: read once, a few chunks ahead of what is written.
        tokenizers: of both sides.
        limits: on the pairs.
        rows: pairs of a chunk, and of a record batch of the file.
        alone: chunks before other processes help.
        advance: called with the number of pairs of every chunk that is done.

    Raises:
        CorpusError: ``pairs`` raises it, or a process that helped was killed.
    """
    counts = dict.fromkeys(COUNTED, 0)
    with pa.OSFile(os.fspath(path), "wb") as sink, pa.ipc.new_file(sink, SCHEMA) as writer:
        waiting: list[pa.RecordBatch] = []
        for batch, counted in _tokenise(_chunks(pairs, rows), tokenizers, limits, alone):
            for name, count in counted.items():
                counts[name] += count
            waiting.append(batch)
            if sum(map(len, waiting)) >= rows:
                whole = pa.concat_batches(waiting)
                writer.write_batch(pa.concat_batches([whole.slice(0, rows)]))
                waiting = [whole.slice(rows)]
            if advance is not None:
                advance(sum(counted.values()))
        if any(map(len, waiting)):
            writer.write_batch(pa.concat_batches(waiting))
    return counts


def cores() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _chunks(pairs: Iterable[Pair], rows: int) -> Iterator[Chunk]:
    numbered = enumerate(pairs)
    while chunk := list(islice(numbered, rows)):
        yield chunk


def _tokenise(
    chunks: Iterator[Chunk], tokenizers: Tokenizers, limits: Limits, alone: int
) -> Iterator[tuple[pa.RecordBatch, dict[str, int]]]:
    """Every chunk as a record batch and its counts, in order."""
    threads = cores()
    for chunk in islice(chunks, alone):
        yield _encode(chunk, tokenizers, limits, threads)
    for chunk in islice(chunks, 1):  # there is more
        yield from _in_processes(chain([chunk], chunks), tokenizers, limits, threads)


def _in_processes(
    chunks: Iterator[Chunk], tokenizers: Tokenizers, limits: Limits, processes: int
) -> Iterator[tuple[pa.RecordBatch, dict[str, int]]]:
    # Started anew rather than forked: a copy of a process with threads may hang.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(processes, context, _prepare, (tokenizers, limits))
    try:
        ahead: deque[Future] = deque()
        for chunk in chunks:
            ahead.append(pool.submit(_encode_here, chunk))
            if len(ahead) > 2 * processes:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()
    except BrokenProcessPool as error:
        raise CorpusError(
            "a process that tokenised the corpus was killed from outside, most likely for want of memory: free some, or "
            "let fewer cores help, as in `taskset -c 0,1 python train.py ...`"
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


_here: tuple[Tokenizers, Limits] | None = None
"""What a helping process works with."""


def _prepare(tokenizers: Tokenizers, limits: Limits) -> None:
    global _here
    _here = tokenizers, limits
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the first process ends the others


def _encode_here(chunk: Chunk) -> tuple[pa.RecordBatch, dict[str, int]]:
    assert _here is not None
    return _encode(chunk, *_here, threads=1)


def _encode(
    chunk: Chunk, tokenizers: Tokenizers, limits: Limits, threads: int
) -> tuple[pa.RecordBatch, dict[str, int]]:
    counts = dict.fromkeys(COUNTED, 0)
    sources = tokenizers.source.encode([pair.source for _, pair in chunk], threads)
    targets = tokenizers.target.encode([pair.target for _, pair in chunk], threads)
    kept: list[tuple[list[int], list[int], str, str, list[int], int]] = []
    for (row, pair), source, target in zip(chunk, sources, targets, strict=True):
        if not (source and target and pair.source.strip() and pair.target.strip()):
            counts["empty"] += 1
        elif limits.length is not None and max(len(source), len(target)) > limits.length:
            counts["too_long"] += 1
        elif limits.words is not None and max(len(side.split()) for side in pair[:2]) > limits.words:
            counts["too_many_words"] += 1
        else:
            spans = [number for span in pair.spans for number in span]
            kept.append((source, target, pair.source, pair.target, spans, row))
    counts["kept"] = len(kept)
    columns = zip(*kept, strict=True) if kept else ((),) * len(SCHEMA)
    batch = pa.record_batch([pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)], schema=SCHEMA)
    return batch, counts
