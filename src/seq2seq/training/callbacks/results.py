"""The test's results as files of the run folder: hypotheses, scores, attention weights."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from lightning import Callback, LightningModule, Trainer

from seq2seq.data.store import Store
from seq2seq.data.tokenizer import EOS_LABEL
from seq2seq.metrics.by_length import bleu_by_source_length
from seq2seq.metrics.corpus import bleu_tokenizer, corpus_scores
from seq2seq.probes.heads import looks
from seq2seq.training.callbacks.clock import Clock
from seq2seq.training.callbacks.lookup import callback_of
from seq2seq.training.callbacks.probing import Probing
from seq2seq.training.callbacks.start import Start
from seq2seq.training.environment import environment
from seq2seq.training.files import write_arrays, write_text
from seq2seq.training.ranks import merged
from seq2seq.training.selection import spread_over_lengths
from seq2seq.training.task import Translated
from seq2seq.types import BOS, Batch, Hypothesis

LINE_BREAKERS = re.compile(r"[\t\n\r]")


class Results(Callback):
    """Writes ``hypotheses.tsv``, ``attention.npz`` and, last of all, ``scores.json`` after the test.

    Sentences go by their row in the corpus. ``scores.json`` also says how training went, if the trainer has a ``Clock``, and
    what ``Probing`` and ``Start`` found, null without them.

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
        self._wanted = spread_over_lengths(trainer.datamodule.store.split("test").lengths[:, 0], self.sentences)
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
        rows, weights = merged(self._rows), merged(self._weights)
        if not trainer.is_global_zero:
            return
        store = trainer.datamodule.store
        test = store.split("test")
        ids = sorted(rows)
        sources, references = (list(side) for side in zip(*test.texts(ids), strict=True))
        hypotheses = [rows[sentence][0] for sentence in ids]
        columns = zip(map(test.row, ids), sources, references, hypotheses, strict=True)
        _write_tsv(self.folder / "hypotheses.tsv", ("id", "source", "reference", "hypothesis"), columns)
        self._write_attention(store, weights, pl_module)

        tokenizer = bleu_tokenizer(trainer.datamodule.corpus.target)
        clock, probing = callback_of(trainer, Clock) or Clock(), callback_of(trainer, Probing)
        start = callback_of(trainer, Start)
        bins = bleu_by_source_length(sources, hypotheses, references, tokenizer, self.bins)
        scores = self.facts | corpus_scores(hypotheses, references, tokenizer)._asdict()
        scores |= {
            "languages": [trainer.datamodule.corpus.source, trainer.datamodule.corpus.target],
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
            "probes": probing.summary if probing else None,
            "scores_at_start": start.scores if start else None,
        }
        scores |= environment(pl_module.device)
        write_text(self.folder / "scores.json", json.dumps(scores, indent=2, ensure_ascii=False) + "\n")

    def _write_attention(self, store: Store, found: Mapping[int, Hypothesis], pl_module: LightningModule) -> None:
        test = store.split("test")
        rows = {sentence: test.row(sentence) for sentence in sorted(found)}
        arrays: dict[str, np.ndarray] = {"ids": np.array(list(rows.values()), dtype=np.int64)}
        for sentence, row in rows.items():
            hypothesis = found[sentence]
            source_ids = test.batch(np.array([sentence])).source[0]
            source = store.tokenizers.source.pieces(source_ids[:-1].tolist())
            target = store.tokenizers.target.pieces(hypothesis.tokens)
            ends = [] if hypothesis.truncated else [EOS_LABEL]
            arrays[f"weights_{row}"] = hypothesis.weights.numpy()
            inputs = torch.tensor([BOS, *hypothesis.tokens], device=pl_module.device)
            heads, encoder = looks(pl_module.model, source_ids.to(pl_module.device), inputs)
            if heads is not None:
                # Where the search stopped at the length cap, the last row's token was never taken.
                arrays[f"heads_{row}"] = heads[:, : len(hypothesis.weights)].half().numpy()
            for layer, weights in enumerate(encoder, start=1):
                arrays[f"encoder_{row}_{layer}"] = weights.half().numpy()
            arrays[f"source_{row}"] = np.array([*source, EOS_LABEL], dtype=np.str_)
            arrays[f"target_{row}"] = np.array([*target, *ends], dtype=np.str_)
        write_arrays(self.folder / "attention.npz", arrays)


def _write_tsv(path: Path, header: tuple[str, ...], rows: Any) -> None:
    # A tab or a line end inside a sentence would shift what follows; no score sees which white space it was.
    lines = ["\t".join(LINE_BREAKERS.sub(" ", str(cell)) for cell in row) for row in (header, *rows)]
    write_text(path, "\n".join(lines) + "\n")


def _best_score(trainer: Trainer) -> float | None:
    score = getattr(trainer.checkpoint_callback, "best_model_score", None)
    return None if score is None else float(score)
