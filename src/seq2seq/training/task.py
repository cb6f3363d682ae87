"""The Lightning module: what is minimised, what is measured, what a checkpoint holds."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from jaxtyping import Float, Int
from lightning import LightningModule
from torch import Tensor
from torch.optim import Optimizer
from torchmetrics import MeanMetric
from torchmetrics.text import SacreBLEUScore

from seq2seq.data.tokenizer import Tokenizers
from seq2seq.decoding.greedy import Search
from seq2seq.errors import ConfigError
from seq2seq.metrics.chrf import ChrF
from seq2seq.metrics.corpus import bleu_tokenizer
from seq2seq.models.loss import summed_loss
from seq2seq.models.seq2seq import Seq2Seq
from seq2seq.training.checkpoint import pack
from seq2seq.types import PAD, Batch, Builder, Decoded, Hypothesis, Split


class Translated(NamedTuple):
    """A batch as it was decoded freely: positions in the split, what was found, and its text."""

    ids: list[int]
    hypotheses: list[Hypothesis]
    texts: list[str]
    references: list[str]


class Translation(LightningModule):
    """Trains a model by cross-entropy and measures it by the translations it finds on its own.

    Losses are nats per target token, BLEU and chrF 0 to 100. ``valid/bleu`` and ``valid/chrf`` come from free decoding.

    Args:
        model: the network.
        recipe: what ``model`` was built from, as plain data; goes into the checkpoint.
        tokenizers: of both sides; go into the checkpoint.
        search: decodes.
        optimizer: waits for the parameters.
        scheduler: waits for the optimizer and ``total_steps``.
        label_smoothing: share of the target distribution spread over the whole vocabulary (Szegedy et al. 2016,
            arXiv:1512.00567).
        language: of the target; decides how BLEU tokenises.
        forward: what training calls as ``forward(model, source, inputs)``.
    """

    def __init__(
        self,
        model: Seq2Seq,
        recipe: Mapping[str, Any],
        tokenizers: Tokenizers,
        search: Search,
        optimizer: Builder,
        scheduler: Builder,
        label_smoothing: float = 0.0,
        language: str = "en",
        forward: Callable[..., Decoded] = Seq2Seq.__call__,
    ):
        super().__init__()
        if not 0 <= label_smoothing < 1:
            raise ConfigError(f"label_smoothing must be at least 0 and below 1, found {label_smoothing}")
        self.model = model
        self.recipe = recipe
        self.tokenizers = tokenizers
        self.search = search
        self.build_optimizer = optimizer
        self.build_scheduler = scheduler
        self.label_smoothing = label_smoothing
        self.learning_forward = forward
        self.valid_loss, self.test_loss = MeanMetric(), MeanMetric()
        self.bleu = SacreBLEUScore(tokenize=bleu_tokenizer(language))
        self.chrf = ChrF()

    def training_step(self, batch: Batch, batch_index: int) -> Tensor:
        loss, per_token = self.loss(batch)
        self.log("train/loss", per_token, prog_bar=True)
        return loss

    def loss(self, batch: Batch) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
        """What training minimises, and the same, detached, as nats per target token of this batch alone."""
        summed, count = self._summed_loss(batch, self.label_smoothing, self.learning_forward)
        return summed / batch.loss_denominator, summed.detach() / count

    def validation_step(self, batch: Batch, batch_index: int) -> Translated:
        summed, count = self._summed_loss(batch)
        self.valid_loss.update(summed / count, weight=count)
        translated = self.translate(batch, "valid")
        self.bleu.update(translated.texts, [[reference] for reference in translated.references])
        self.chrf.update(translated.texts, translated.references)
        return translated

    def on_validation_epoch_end(self) -> None:
        self.log("valid/loss", self.valid_loss.compute())
        self.log("valid/bleu", 100 * self.bleu.compute(), prog_bar=True)
        self.log("valid/chrf", self.chrf.compute())
        for metric in (self.valid_loss, self.bleu, self.chrf):
            metric.reset()

    def test_step(self, batch: Batch, batch_index: int) -> Translated:
        summed, count = self._summed_loss(batch)
        self.test_loss.update(summed / count, weight=count)
        return self.translate(batch, "test", with_weights=True)

    def on_test_epoch_end(self) -> None:
        self.log("test/loss", self.test_loss.compute())
        self.test_loss.reset()

    def translate(self, batch: Batch, split: Split, with_weights: bool = False) -> Translated:
        """Decodes freely; the references are the corpus's own raw text."""
        hypotheses = self.search(self.model, batch.source, with_weights)
        texts = self.tokenizers.target.decode([hypothesis.tokens for hypothesis in hypotheses])
        ids = batch.ids.tolist()
        references = [target for _, target in self.trainer.datamodule.texts(split, ids)]
        return Translated(ids, hypotheses, texts, references)

    def make_optimizer(self) -> Optimizer:
        """One for all weights that learn.

        Raises:
            ConfigError: its settings do not fit.
        """
        try:
            return self.build_optimizer([parameter for parameter in self.parameters() if parameter.requires_grad])
        except (ValueError, TypeError) as error:
            raise ConfigError(f"optimizer.* (learning_rate among them) does not fit: {error}") from error

    def configure_optimizers(self) -> dict[str, Any]:
        optimizer = self.make_optimizer()
        total_steps = int(self.trainer.estimated_stepping_batches)
        try:
            scheduler = self.build_scheduler(optimizer, total_steps=total_steps)
        except (ValueError, TypeError) as error:
            raise ConfigError(f"scheduler.* does not fit: {error}") from error
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "interval": "step", "name": "lr"}}

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        checkpoint.update(pack(self.recipe, self.tokenizers))

    def _summed_loss(
        self, batch: Batch, label_smoothing: float = 0.0, forward: Callable[..., Decoded] = Seq2Seq.__call__
    ) -> tuple[Float[Tensor, ""], int]:
        """Cross-entropy summed over real target tokens, and how many they are."""
        decoded = forward(self.model, batch.source, batch.inputs)
        # The output layer is the largest product of all: it sees no padding.
        places = (batch.targets.flatten() != PAD).nonzero().squeeze(1)  # [N]
        features = decoded.features.flatten(0, 1).index_select(0, places)  # [N, E]
        targets: Int[Tensor, N] = batch.targets.flatten().index_select(0, places)
        return summed_loss(self.model.output, features, targets, label_smoothing), targets.numel()
