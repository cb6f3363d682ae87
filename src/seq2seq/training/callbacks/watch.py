"""A training that goes wrong stops before its weights take harm, and says at which batch."""

import torch
from jaxtyping import Float
from lightning import Callback, LightningModule, Trainer
from torch import Tensor

from seq2seq.errors import TrainingError
from seq2seq.training.callbacks.lookup import callback_of
from seq2seq.types import Batch

SHOWN = 8
"""Sentences of a batch that a message names."""


class Watch(Callback):
    """Looks at the loss of every batch before anything is learned from it.

    Attributes:
        batch: the one at hand, None before the first.
    """

    def __init__(self) -> None:
        self.batch: Batch | None = None

    def on_train_batch_start(self, trainer: Trainer, pl_module: LightningModule, batch: Batch, batch_idx: int) -> None:
        self.batch = batch

    def on_before_backward(self, trainer: Trainer, pl_module: LightningModule, loss: Float[Tensor, ""]) -> None:
        """Refuses a loss that is no number.

        Raises:
            TrainingError: it is not; with the step, the sentences and the learning rate.
        """
        if torch.isfinite(loss):
            return
        rate = trainer.optimizers[0].param_groups[0]["lr"]
        raise TrainingError(
            f"the loss is {loss.item()} in step {trainer.global_step + 1}, with a learning rate of {rate:.3g}, on "
            f"{self.described()}: lower learning_rate, or look at these sentences; checkpoints are as they were before"
        )

    def described(self) -> str:
        """The batch at hand in words."""
        if self.batch is None:
            return "no batch yet"
        ids = self.batch.ids.tolist()
        shown = ", ".join(map(str, ids[:SHOWN])) + (f" and {len(ids) - SHOWN} more" if len(ids) > SHOWN else "")
        return (
            f"a batch of {len(ids)} sentences with up to {self.batch.source.shape[1]} source and "
            f"{self.batch.targets.shape[1]} target tokens (positions in the training split: {shown})"
        )


def out_of_memory(error: RuntimeError, trainer: Trainer) -> TrainingError | None:
    """What to say if memory ran out; None if something else went wrong.

    Args:
        error: as torch raised it.
        trainer: that was at work.
    """
    message = str(error)
    if not isinstance(error, torch.OutOfMemoryError) and "allocate" not in message:
        return None
    watch = callback_of(trainer, Watch) or Watch()
    return TrainingError(
        f"out of memory on {watch.described()}: lower max_tokens or max_sentences, max_length or "
        f"hidden_size ({' '.join(message.split())[:160]})"
    )
