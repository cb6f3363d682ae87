"""``seq2seq-bench data``: what a corpus costs before and while a model learns from it."""

import argparse
import time
import tracemalloc
from collections.abc import Callable
from itertools import islice
from typing import TypeVar

from seq2seq.cli.benching import begin, composed, finish, print_rows

Found = TypeVar("Found")


def bench_data(options: argparse.Namespace) -> None:
    """Times every stage between a corpus and its batches, and counts the memory that grows with the corpus.

    Memory is what Python and NumPy allocate at most while the tokenised corpus is opened and two epochs are planned one
    after the other, counted in a pass of its own; the corpus itself stays in a file that is mapped.

    Raises:
        ConfigError: a setting does not fit.
        CorpusError: the corpus cannot be read.
    """
    from hydra.utils import instantiate

    begin(options, "data", "batches")
    config = composed(options.conf, options.overrides)

    def opened() -> tuple:
        data = instantiate(config.datamodule)
        data.setup()
        return data, data.train_dataloader()

    prepare_s, folder = _timed(lambda: _prepare(instantiate(config.datamodule)))
    cached_s, _ = _timed(lambda: _prepare(instantiate(config.datamodule)))
    open_s, (data, loader) = _timed(opened)
    plan_s, _ = _timed(lambda: _plan(loader.sampler, 1))
    batches_s, batches = _timed(lambda: list(islice(loader, options.batches)))
    tokens = sum(int((batch.targets != 0).sum()) for batch in batches)
    lengths = data.store.split("train").lengths
    row = {
        "name": "corpus",
        "pairs": len(lengths),
        "batches": loader.sampler.plan.batches,
        "padding": round(loader.sampler.plan.padding_share(lengths), 4),
        "prepare_s": round(prepare_s, 2),
        "cached_s": round(cached_s, 2),
        "open_s": round(open_s, 2),
        "plan_s": round(plan_s, 2),
        "batch_ms": round(1000 * batches_s / len(batches), 2),
        "tokens_per_s": round(tokens / batches_s),
    }
    del data, loader, batches, lengths
    tracemalloc.start()
    _plan(opened()[1].sampler, 1)
    row["memory_mb"] = round(tracemalloc.get_traced_memory()[1] / 1e6, 1)
    tracemalloc.stop()
    names = {
        "pairs": "pairs",
        "padding": "padding",
        "prepare_s": "prepare s",
        "cached_s": "again s",
        "open_s": "open and plan s",
        "plan_s": "next plan s",
        "batch_ms": "ms a batch",
        "memory_mb": "MB",
    }
    print_rows(f"data in {folder}", {"name": ""} | names, [row])
    finish("data", [row], options)


def _prepare(data) -> object:
    data.prepare_data()
    return data.folder


def _plan(sampler, epoch: int) -> None:
    sampler.set_epoch(epoch)
    len(sampler)


def _timed(work: Callable[[], Found]) -> tuple[float, Found]:
    begun = time.perf_counter()
    found = work()
    return time.perf_counter() - begun, found
