"""How Lightning's checkpoints come onto the disk: whole, or not at all."""

from pathlib import Path
from typing import Any

from lightning import LightningModule, Trainer
from lightning.pytorch.callbacks import ModelCheckpoint
from lightning.pytorch.plugins.io import TorchCheckpointIO

from seq2seq.errors import TrainingError
from seq2seq.training.files import serialised, written


class WholeCheckpoints(TorchCheckpointIO):
    """Writes a checkpoint beside its place and moves it there.

    Lightning's own way leads through the folder for temporary files, which is often on another disk: from there a file is
    copied over the earlier one, and a kill or a full disk meanwhile costs both.
    """

    def save_checkpoint(self, checkpoint: dict[str, Any], path: str | Path, storage_options: Any = None) -> None:
        """Writes one.

        Raises:
            TrainingError: the disk is full, or the file cannot be written for another reason; an earlier one stays.
        """
        path = Path(path)
        content = serialised(checkpoint)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with written(path) as file:
                file.write(content)
        except OSError as error:
            stays = "the one that was there before is as it was" if path.exists() else "there was none before"
            raise TrainingError(
                f"the checkpoint {path} of {content.nbytes / 1e6:,.1f} MB cannot be written ({error}); {stays}: make room, "
                "or choose another run_dir, and go on with resume=last"
            ) from error


def between_steps(trainer: Trainer, batch_idx: int) -> bool:
    """Whether a checkpoint that is written when this batch ends holds all that a resumed training needs.

    Not between batches whose gradients are added up, which no checkpoint holds; nor before a validation, which Lightning
    would leave out of the resumed training. The end of the epoch, after its validation, is always a moment to write one.
    """
    last = trainer.is_last_batch or batch_idx + 1 >= trainer.num_training_batches
    if last or (batch_idx + 1) % trainer.accumulate_grad_batches:
        return False
    every = trainer.val_check_batch
    seen = trainer.fit_loop.total_batch_idx if trainer.check_val_every_n_epoch is None else batch_idx
    return not isinstance(every, int) or every < 1 or (seen + 1) % every != 0


class Periodic(ModelCheckpoint):
    """Lightning's own, which puts off a checkpoint that is due until a resumed training could go on from it."""

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        if between_steps(trainer, batch_idx):
            super().on_train_batch_end(trainer, pl_module, outputs, batch, batch_idx)
