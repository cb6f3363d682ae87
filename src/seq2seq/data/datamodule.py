"""Tokenised corpora as Lightning wants them."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import lightning
import numpy as np
import torch
from jaxtyping import Int
from lightning.pytorch.utilities import rank_zero_only
from torch.utils.data import DataLoader, Dataset

from seq2seq.data.batching import ceilings
from seq2seq.data.corpus import Corpus
from seq2seq.data.sampler import EvaluationSampler, PlannedSampler, Request
from seq2seq.data.split import TokenisedSplit
from seq2seq.data.store import Store, TokenizerSettings, build, open_store, store_path
from seq2seq.data.subwords import Subwords
from seq2seq.data.tokenizer import Tokenizers
from seq2seq.errors import ConfigError
from seq2seq.types import Batch, Split


class TranslationData(lightning.LightningDataModule):
    """A corpus, tokenised and cached, in batches. Use it with ``Trainer(use_distributed_sampler=False)``."""

    def __init__(
        self,
        corpus: Corpus,
        tokenizer: TokenizerSettings,
        max_length: int | None,
        max_tokens: int | None,
        max_sentences: int | None,
        cache_dir: str,
        seed: int,
        evaluation_max_sentences: int | None = 64,
        evaluation_max_tokens: int | None = 16384,
        workers: int = 0,
        max_words: int | None = None,
        subword_dropout: float = 0.0,
    ) -> None:
        """Keep the settings; nothing is read before :meth:`prepare_data`.

        Args:
            corpus: where the pairs come from.
            tokenizer: how the tokenizers are trained.
            max_length: training pairs with more tokens on either side are dropped; None keeps all.
            max_tokens: ceiling on the padded tokens of a training batch, both sides, per process.
            max_sentences: ceiling on the pairs of a training batch, per process.
            cache_dir: folder for tokenised corpora.
            seed: decides the batches of every epoch.
            evaluation_max_sentences: ceiling on the pairs of a validation or test batch.
            evaluation_max_tokens: ceiling on their padded tokens; a longer pair is a batch of its own.
            workers: processes that load batches; 0 loads them in the training process.
            max_words: training pairs with more words on either side are dropped; None keeps all.
            subword_dropout: cuts the training text into other pieces in every epoch, see ``Subwords``. Batches are
                planned for the usual pieces, so that some then hold more tokens than ``max_tokens``.

        Raises:
            ConfigError: a number is out of its range, or both ceilings of a kind of batch are None.
        """
        super().__init__()
        ceilings(max_tokens, max_sentences)
        ceilings(evaluation_max_tokens, evaluation_max_sentences, "evaluation_")
        for name, limit in (("max_length", max_length), ("max_words", max_words)):
            if limit is not None and limit < 1:
                raise ConfigError(f"{name}={limit} is not possible: give at least 1, or null to keep all pairs")
        if seed < 0:
            raise ConfigError(f"seed={seed} is not possible: give 0 or more")
        if not str(cache_dir).strip():
            raise ConfigError("cache_dir is empty: name a folder")
        if not isinstance(workers, int) or workers < 0:
            raise ConfigError(
                f"workers={workers} is not possible: give 0 to load batches in the training process, or more"
            )
        if not 0 <= subword_dropout < 1:
            raise ConfigError(f"subword_dropout={subword_dropout} is not possible: give 0 or more, less than 1")
        if subword_dropout and tokenizer.kind != "bpe":
            raise ConfigError(
                f"subword_dropout={subword_dropout} leaves out merges, and tokenizer={tokenizer.kind} has none: set "
                "tokenizer=bpe or subword_dropout=0"
            )
        self.corpus = corpus
        self.subword_dropout = subword_dropout
        self.settings = tokenizer
        self.max_length, self.max_words = max_length, max_words
        self.max_tokens, self.max_sentences = max_tokens, max_sentences
        self.evaluation_max_tokens, self.evaluation_max_sentences = evaluation_max_tokens, evaluation_max_sentences
        self.cache_dir, self.seed, self.workers = cache_dir, seed, workers
        self._store: Store | None = None
        self._training: _PlannedLoader | None = None
        self._resumed: dict[str, int] | None = None
        self._reported = False

    def prepare_data(self) -> None:
        """Build the cache unless it is there, and print what each split holds and what was dropped from it."""
        folder = build(self.corpus, self.settings, self.max_length, self.cache_dir, _say, self.max_words)
        if self._reported:
            return
        self._reported = True
        for split, counts in open_store(folder).counts.items():
            dropped = [f"{counts.empty:,} empty"] if counts.empty else []
            if counts.too_long:
                dropped.append(f"{counts.too_long:,} longer than max_length={self.max_length} tokens")
            if counts.too_many_words:
                dropped.append(f"{counts.too_many_words:,} longer than max_words={self.max_words} words")
            _say(f"{split}: {counts.kept:,} pairs" + (f" (dropped: {', '.join(dropped)})" if dropped else ""))

    def setup(self, stage: str | None = None) -> None:
        """Open the cache that :meth:`prepare_data` built."""
        if self._store is None:
            self._store = open_store(self.folder)

    @property
    def folder(self) -> Path:
        """Where this corpus is cached."""
        return store_path(self.corpus, self.settings, self.max_length, self.cache_dir, self.max_words)

    @property
    def store(self) -> Store:
        """The opened cache."""
        if self._store is None:
            raise RuntimeError("call prepare_data() and setup() first")
        return self._store

    @property
    def tokenizers(self) -> Tokenizers:
        """The tokenizers of both sides."""
        return self.store.tokenizers

    def texts(self, split: Split, ids: Int[torch.Tensor, "K"] | Iterable[int]) -> list[tuple[str, str]]:
        """Source and reference of the pairs ``ids``, as the corpus gave them."""
        return self.store.split(split).texts(ids)

    def train_dataloader(self) -> DataLoader:
        """Training batches of this rank, planned anew for every epoch."""
        data = self.store.split("train")
        world, rank = self._place()
        sampler = PlannedSampler(
            data.lengths,
            self.max_tokens,
            self.max_sentences,
            ids=self._affordable(data),
            world=world,
            rank=rank,
            accumulate=self.trainer.accumulate_grad_batches if self.trainer else 1,
            seed=self.seed,
            reshuffle=not (self.trainer and self.trainer.overfit_batches),
        )
        self._training = _PlannedLoader(_Requested(data, self._subwords()), sampler=sampler, **self._loading())
        if self._resumed is not None:
            self._training.load_state_dict(self._resumed)
            self._resumed = None
        return self._training

    def state_dict(self) -> dict[str, int]:
        """Which training batch comes next, for a checkpoint."""
        return {} if self._training is None else self._training.state_dict()

    def load_state_dict(self, state_dict: dict[str, int]) -> None:
        """Has the next training loader begin where a checkpoint was written."""
        self._resumed = state_dict or None

    def val_dataloader(self) -> DataLoader:
        """Validation batches of this rank."""
        return self._evaluation("valid")

    def test_dataloader(self) -> DataLoader:
        """Test batches of this rank."""
        return self._evaluation("test")

    def _evaluation(self, split: Split) -> DataLoader:
        data = self.store.split(split)
        world, rank = self._place()
        sampler = EvaluationSampler(
            data.lengths, self.evaluation_max_tokens, self.evaluation_max_sentences, world=world, rank=rank
        )
        return DataLoader(_Requested(data), sampler=sampler, **self._loading())

    def _subwords(self) -> tuple[Subwords, Subwords] | None:
        """What cuts the two sides of the training text; None where they are cut as ever."""
        if not self.subword_dropout:
            return None
        source = Subwords(self.tokenizers.source, self.subword_dropout)
        return source, source if self.tokenizers.joint else Subwords(self.tokenizers.target, self.subword_dropout)

    def _loading(self) -> dict[str, object]:
        """What all loaders have in common."""
        return {
            "batch_size": None,
            "collate_fn": _unchanged,
            "num_workers": self.workers,
            "persistent_workers": self.workers > 0,
            # Workers that stay get their seed once a start, which must not shift what a resumed training draws.
            "generator": torch.Generator() if self.workers else None,
        }

    def _place(self) -> tuple[int, int]:
        """Number of ranks, and which one this is."""
        return (self.trainer.world_size, self.trainer.global_rank) if self.trainer else (1, 0)

    def _affordable(self, data: TokenisedSplit) -> Int[np.ndarray, "K"] | None:
        """The pairs that fit into a batch at all; None if all do.

        Raises:
            ConfigError: no pair does.
        """
        if self.max_tokens is None:
            return None
        costs = data.lengths.sum(axis=1, dtype=np.int32)
        fits = np.flatnonzero(costs <= self.max_tokens)
        if not len(fits):
            raise ConfigError(
                f"max_tokens={self.max_tokens} is less than the {costs.min()} tokens of the shortest training pair, source "
                "and target together: raise max_tokens"
            )
        if len(fits) == len(data):
            return None
        _say(f"train: {len(data) - len(fits):,} pairs left out, each alone over max_tokens={self.max_tokens}")
        return fits.astype(np.int32)


class _PlannedLoader(DataLoader):
    """Knows which batch of its epoch comes next, so that a training can go on inside an epoch."""

    _given = 0

    def __iter__(self) -> Iterator[Batch]:
        self._given = self.sampler.start_step
        # torch draws a seed whenever an epoch begins; one that is gone on with has drawn its own.
        before = torch.get_rng_state()
        batches = super().__iter__()
        if self._given:
            torch.set_rng_state(before)
        for batch in batches:
            self._given += 1
            yield batch

    def state_dict(self) -> dict[str, int]:
        return {"epoch": self.sampler.epoch, "step": self._given}

    def load_state_dict(self, state: Mapping[str, int]) -> None:
        self.sampler.start_at(state["epoch"], state["step"])


class _Requested(Dataset):
    """Batches on request."""

    def __init__(self, data: TokenisedSplit, subwords: tuple[Subwords, Subwords] | None = None) -> None:
        self._data, self._subwords = data, subwords

    def __getitem__(self, request: Request) -> Batch:
        ids, denominator, seed = request
        if self._subwords is None:
            return self._data.batch(ids, denominator)
        return self._data.sampled_batch(ids, denominator, self._subwords, seed)


def _unchanged(batch: Batch) -> Batch:
    return batch


@rank_zero_only
def _say(line: str) -> None:
    print(line, flush=True)
