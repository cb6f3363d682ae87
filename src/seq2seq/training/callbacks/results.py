"""The test's results as files of the run folder: hypotheses, scores, attention weights."""

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch.distributed
from lightning import Callback, LightningModule, Trainer

from seq2seq.data.store import Store
from seq2seq.metrics.by_length import bleu_by_source_length
from seq2seq.metrics.corpus import bleu_tokenizer, corpus_scores
from seq2seq.training.callbacks.clock import Clock
from seq2seq.training.task import Translated, sample_ids
from seq2seq.types import Batch, Hypothesis

EOS_LABEL = "</s>"
LINE_BREAKERS = re.compile(r"[\t\n\r]")


class Results(Callback):
    """Writes ``hypotheses.tsv``, ``scores.json`` and ``attention.npz`` after the test.

    Args:
        folder: the run folder.
        facts: what describes the run, copied into ``scores.json``: attention, data, seed.
        sentences: how many test sentences keep their attention weights, spread evenly over source lengths.
        bins: how many source-length bins.
    """

    def __init__(self, folder: str, facts: Mapping[str, Any], sentences: int = 8, bins: int = 6):
        self.folder = Path(folder)
        self.facts = dict(facts)
        self.sentences = sentences
        self.bins = bins
        self._rows: dict[int, tuple[str, bool]] = {}
        self._weights: dict[int, Hypothesis] = {}
        self._wanted: frozenset[int] = frozenset()

    def on_test_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        lengths = trainer.datamodule.store.split("test").lengths[:, 0]
        by_length = np.argsort(lengths, kind="stable")
        self._wanted = frozenset(int(by_length[place]) for place in sample_ids(len(lengths), self.sentences))
        self._rows, self._weights = {}, {}

    def on_test_batch_end(
        self,
        trainer: Trainer,
        pl_module: LightningModule,
        outputs: Translated,
        batch: Batch,
        batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:
        for sentence, text, hypothesis in zip(outputs.ids, outputs.texts, outputs.hypotheses, strict=True):
            self._rows[sentence] = (text, hypothesis.truncated)
            if sentence in self._wanted:
                self._weights[sentence] = hypothesis

    def on_test_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        rows, weights = _merged(self._rows), _merged(self._weights)
        if not trainer.is_global_zero:
            return
        store = trainer.datamodule.store
        test = store.split("test")
        ids = sorted(rows)
        sources, references = (list(side) for side in zip(*test.texts(ids), strict=True))
        hypotheses = [rows[sentence][0] for sentence in ids]
        columns = zip(map(test.row, ids), sources, references, hypotheses, strict=True)
        _write_tsv(self.folder / "hypotheses.tsv", ("id", "source", "reference", "hypothesis"), columns)
        self._write_attention(store, weights)

        tokenizer = bleu_tokenizer(trainer.datamodule.corpus.target)
        clock = next((callback for callback in trainer.callbacks if isinstance(callback, Clock)), Clock())
        bins = bleu_by_source_length(sources, hypotheses, references, tokenizer, self.bins)
        scores = self.facts | corpus_scores(hypotheses, references, tokenizer)._asdict()
        scores |= {
            "loss": float(trainer.callback_metrics["test/loss"]),
            "n": len(ids),
            "by_source_length": [{"from": bin.first, "to": bin.last, "n": bin.n, "bleu": bin.bleu} for bin in bins],
            "truncated": sum(truncated for _, truncated in rows.values()),
            "parameters": pl_module.model.parameter_counts(),
            "train_steps": trainer.global_step,
            "train_tokens": clock.tokens * trainer.world_size,
            "train_seconds": clock.seconds,
            "train_tokens_per_s": clock.tokens_per_s * trainer.world_size,
            "best_valid_bleu": _best_score(trainer),
            "pairs": {split: counts._asdict() for split, counts in store.counts.items()},
        }
        write_aside(self.folder / "scores.json", json.dumps(scores, indent=2, ensure_ascii=False) + "\n")

    def _write_attention(self, store: Store, found: Mapping[int, Hypothesis]) -> None:
        arrays: dict[str, np.ndarray] = {"ids": np.array(sorted(found), dtype=np.int64)}
        for sentence, hypothesis in found.items():
            source_ids = store.split("test").batch(np.array([sentence])).source[0].tolist()
            source = store.tokenizers.source.pieces(source_ids[:-1])
            target = store.tokenizers.target.pieces(hypothesis.tokens)
            ends = [] if hypothesis.truncated else [EOS_LABEL]
            arrays[f"weights_{sentence}"] = hypothesis.weights.numpy()
            arrays[f"source_{sentence}"] = np.array([*source, EOS_LABEL], dtype=np.str_)
            arrays[f"target_{sentence}"] = np.array([*target, *ends], dtype=np.str_)
        np.savez_compressed(self.folder / "attention.npz", **arrays)


def write_aside(path: Path, text: str) -> None:
    """Writes a file so that no reader ever sees half of it."""
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    aside.write_text(text, encoding="utf-8")
    aside.replace(path)


def _write_tsv(path: Path, header: tuple[str, ...], rows: Any) -> None:
    # A tab or a line end inside a sentence would shift what follows; no score sees which white space it was.
    lines = ["\t".join(LINE_BREAKERS.sub(" ", str(cell)) for cell in row) for row in (header, *rows)]
    write_aside(path, "\n".join(lines) + "\n")


def _merged(part: dict) -> dict:
    """The entries of all ranks."""
    if not (torch.distributed.is_available() and torch.distributed.is_initialized()):
        return part
    parts: list[dict] = [{} for _ in range(torch.distributed.get_world_size())]
    torch.distributed.all_gather_object(parts, part)
    return {key: value for piece in parts for key, value in piece.items()}


def _best_score(trainer: Trainer) -> float | None:
    score = getattr(trainer.checkpoint_callback, "best_model_score", None)
    return None if score is None else float(score)
