"""Sample translations at every validation: what the numbers look like as sentences."""

from lightning import Callback, LightningModule, Trainer
from lightning.pytorch.utilities import rank_zero_only

from seq2seq.spread import evenly
from seq2seq.training.task import Translated
from seq2seq.types import Batch


class Samples(Callback):
    """Prints the scores of each validation and the translations of the same few sentences.

    Args:
        count: how many sentences, spread evenly over the validation split.
    """

    def __init__(self, count: int = 3):
        self.count = count
        self._found: dict[int, tuple[str, str]] = {}

    def on_validation_batch_end(
        self,
        trainer: Trainer,
        pl_module: LightningModule,
        outputs: Translated,
        batch: Batch,
        batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:
        wanted = evenly(len(trainer.datamodule.store.split("valid")), self.count)
        for place, sentence in enumerate(outputs.ids):
            if sentence in wanted:
                self._found[sentence] = (outputs.texts[place], outputs.references[place])

    @rank_zero_only
    def on_validation_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        # Other ranks decoded other sentences; those of this rank are sample enough.
        if not trainer.sanity_checking:
            lines = [f"epoch {trainer.current_epoch + 1}, step {trainer.global_step}"]
            for sentence in sorted(self._found):
                source = trainer.datamodule.store.split("valid").source_text(sentence)
                hypothesis, reference = self._found[sentence]
                lines += [f"  source     {source}", f"  reference  {reference}", f"  hypothesis {hypothesis}", ""]
            pl_module.print("\n".join(lines))
        self._found = {}

    @rank_zero_only
    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if not trainer.sanity_checking:
            metrics = trainer.callback_metrics
            scores = {
                name: float(metrics[name]) for name in ("valid/loss", "valid/bleu", "valid/chrf") if name in metrics
            }
            pl_module.print("  ".join(f"{name} {value:.2f}" for name, value in scores.items()))
