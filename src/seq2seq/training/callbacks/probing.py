"""The probes, run over the test split with the weights that are tested, as arrays in the run folder."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int, Num
from lightning import Callback, LightningModule, Trainer

from seq2seq.data.store import Store
from seq2seq.errors import ConfigError
from seq2seq.probes.accuracy import accuracy_by_position, token_hits
from seq2seq.probes.alignment import (
    NO_ITEM,
    LinkCounts,
    alignment_error_rate,
    count_links,
    coverage,
    entropy,
    item_of_tokens,
    predicted_links,
)
from seq2seq.probes.gradients import source_gradients
from seq2seq.probes.recall import recalled
from seq2seq.training.files import write_arrays
from seq2seq.training.ranks import merged
from seq2seq.training.selection import spread_over_lengths
from seq2seq.training.task import Translated
from seq2seq.types import PAD, Batch

NO_LINKS = LinkCounts(0, 0, 0)


class Probing(Callback):
    """Writes ``probes.npz`` at the end of the test, before any callback's ``on_test_end``.

    ==========================  ==========  =====================================================================
    ``ids``                     ``[N]``     rows of the test sentences in the corpus, rising
    ``accuracy_correct``        ``[P]``     tokens predicted under teacher forcing, by target position
    ``accuracy_count``          ``[P]``     all tokens there, ``EOS`` included
    ``item_sentence``           ``[I]``     row of the sentence of every item; empty if the corpus knows no items
    ``item_position``           ``[I]``     its place among the items of the source, from 0
    ``item_count``              ``[I]``     how many items its sentence has
    ``item_recalled``           ``[I]``     True if the free translation holds it
    ``gradient_norm``           ``[G, S]``  of the loss at every source token, NaN beyond a sentence's end
    ``gradient_length``         ``[G]``     source tokens of these sentences, ``EOS`` included
    ``gradient_distance``       ``[G, S]``  recurrent steps from each of them to the fixed vector, -1 beyond the end
    ``entropy``                 ``[N]``     of the weights, in nats; NaN for an attention without weights
    ``coverage``                ``[N]``     by the weights, 0 to 1; NaN for an attention without weights
    ``alignment_found``         ``[N]``     links between items, right ones;
    ``alignment_predicted``     ``[N]``     all that were predicted;
    ``alignment_true``          ``[N]``     the true ones
    ==========================  ==========  =====================================================================

    Counts are whole numbers, measures have single precision.

    Args:
        folder: the run folder.
        gradient_sentences: how many sentences are measured for gradients, which take a backward pass; spread evenly over
            source lengths.

    Attributes:
        summary: ``alignment_error_rate``, ``entropy``, ``coverage`` and ``item_recall`` of the last test, over all its
            sentences or items; None for what cannot be said of this corpus or attention.

    Raises:
        ConfigError: ``gradient_sentences`` is negative.
    """

    def __init__(self, folder: str, gradient_sentences: int = 100):
        if gradient_sentences < 0:
            raise ConfigError(f"callbacks.probing.gradient_sentences={gradient_sentences}: must be at least 0")
        self.folder = Path(folder)
        self.gradient_sentences = gradient_sentences
        self.summary: dict[str, float | None] = {}
        self._measured: dict[int, _Measured] = {}
        self._wanted: frozenset[int] = frozenset()

    def on_test_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        lengths = trainer.datamodule.store.split("test").lengths[:, 0]
        self._wanted = spread_over_lengths(lengths, self.gradient_sentences)
        self._measured = {}

    def on_test_batch_end(
        self,
        trainer: Trainer,
        pl_module: LightningModule,
        outputs: Translated,
        batch: Batch,
        batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:
        store, model = trainer.datamodule.store, pl_module.model
        is_source, is_target = batch.source != PAD, batch.targets != PAD
        decoded = model(batch.source, batch.inputs)
        hits = token_hits(model, decoded, batch.targets).cpu().numpy()
        entropies = entropy(decoded.weights, is_target).tolist()
        coverages = coverage(decoded.weights, is_target, is_source).tolist()
        weights = decoded.weights.float().cpu().numpy()
        lengths = zip(is_source.sum(dim=1).tolist(), is_target.sum(dim=1).tolist(), strict=True)
        gradients = self._gradients(pl_module, outputs, batch)
        for place, (source_length, target_length) in enumerate(lengths):
            sentence = outputs.ids[place]
            gradient = gradients.get(place)
            links, found = _items(store, sentence, weights[place, :target_length, :source_length], outputs.texts[place])
            self._measured[store.split("test").row(sentence)] = _Measured(
                hits[place, :target_length],
                entropies[place],
                coverages[place],
                links,
                found,
                None if gradient is None else gradient[:source_length],
                None if gradient is None else model.encoder.distances(source_length).numpy(),
            )

    def on_test_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        measured = merged(self._measured)
        self._measured = {}
        if trainer.is_global_zero:
            arrays = _arrays(measured)
            write_arrays(self.folder / "probes.npz", arrays)
            self.summary = _summary(arrays)

    def _gradients(
        self, pl_module: LightningModule, outputs: Translated, batch: Batch
    ) -> dict[int, Float[np.ndarray, "S"]]:
        """By place in the batch, for those sentences that are wanted."""
        places = [place for place, sentence in enumerate(outputs.ids) if sentence in self._wanted]
        if not places:
            return {}
        chosen = Batch(*(field[places] for field in batch[:-1]), batch.loss_denominator)
        norms = source_gradients(pl_module.model, chosen).float().cpu().numpy()
        return dict(zip(places, norms, strict=True))


class _Measured(NamedTuple):
    """One test sentence."""

    hits: Bool[np.ndarray, "T"]
    entropy: float
    coverage: float
    links: LinkCounts
    recalled: Bool[np.ndarray, "I"]
    """In the order of the source."""
    gradient: Float[np.ndarray, "S"] | None
    distance: Int[np.ndarray, "S"] | None


def _items(
    store: Store, sentence: int, weights: Float[np.ndarray, "T S"], hypothesis: str
) -> tuple[LinkCounts, Bool[np.ndarray, "I"]]:
    """What became of a sentence's items: their links, and which of them the hypothesis holds."""
    test, tokenizers = store.split("test"), store.tokenizers
    spans = sorted(test.spans(sentence))
    if not spans:
        return NO_LINKS, np.zeros(0, bool)
    source, target = test.source_text(sentence), test.target_text(sentence)
    target_ranges = [(span.target_from, span.target_to) for span in spans]
    of_source = item_of_tokens(
        tokenizers.source.offsets(source), [(span.source_from, span.source_to) for span in spans]
    )
    of_target = item_of_tokens(tokenizers.target.offsets(target), target_ranges)
    # EOS stands after the last token of either side.
    links = predicted_links(weights, np.append(of_source, NO_ITEM), np.append(of_target, NO_ITEM), len(spans))
    normalise = tokenizers.target.normalised
    return count_links(links), recalled(target, target_ranges, normalise(hypothesis), normalise)


def _arrays(measured: Mapping[int, _Measured]) -> dict[str, np.ndarray]:
    """The content of ``probes.npz``."""
    ids = sorted(measured)
    sentences = [measured[sentence] for sentence in ids]
    positions = accuracy_by_position([sentence.hits for sentence in sentences])
    counts = np.array([len(sentence.recalled) for sentence in sentences], np.int64)
    links = np.array([sentence.links for sentence in sentences], np.int64).reshape(-1, len(LinkCounts._fields))
    probed = [sentence for sentence in sentences if sentence.gradient is not None]
    gradients = [sentence.gradient for sentence in probed]
    arrays = {
        "ids": np.array(ids, np.int64),
        "accuracy_correct": positions.correct,
        "accuracy_count": positions.count,
        "item_sentence": np.repeat(np.array(ids, np.int64), counts),
        "item_position": np.concatenate([np.arange(count) for count in counts] or [counts]),
        "item_count": np.repeat(counts, counts),
        "item_recalled": np.concatenate([sentence.recalled for sentence in sentences] or [np.zeros(0, bool)]),
        "gradient_norm": _padded(gradients, np.nan, np.float32),
        "gradient_length": np.array([len(gradient) for gradient in gradients], np.int64),
        "gradient_distance": _padded([sentence.distance for sentence in probed], -1, np.int64),
        "entropy": np.array([sentence.entropy for sentence in sentences], np.float32),
        "coverage": np.array([sentence.coverage for sentence in sentences], np.float32),
    }
    return arrays | {f"alignment_{name}": links[:, column] for column, name in enumerate(LinkCounts._fields)}


def _padded(rows: Sequence[np.ndarray], beyond: int | float, dtype: type[np.number]) -> Num[np.ndarray, "G S"]:
    """One row a sentence, ``beyond`` after its end."""
    padded = np.full((len(rows), max(map(len, rows), default=0)), beyond, dtype)
    for place, row in enumerate(rows):
        padded[place, : len(row)] = row
    return padded


def _summary(arrays: Mapping[str, np.ndarray]) -> dict[str, float | None]:
    links = LinkCounts(*(int(arrays[f"alignment_{name}"].sum()) for name in LinkCounts._fields))
    means = {name: arrays[name][~np.isnan(arrays[name])] for name in ("entropy", "coverage")}
    means["item_recall"] = arrays["item_recalled"]
    return {"alignment_error_rate": alignment_error_rate(links)} | {
        name: float(values.mean(dtype=np.float64)) if len(values) else None for name, values in means.items()
    }
