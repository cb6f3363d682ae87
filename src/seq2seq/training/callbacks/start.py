"""The attention before it has learned anything."""

from typing import Any

from lightning import Callback, LightningModule, Trainer

from seq2seq.probes.scores import score_statistics


class Start(Callback):
    """Measures the scores of the untrained attention on the first batch of the validation split.

    Attributes:
        scores: ``deviation``, ``entropy`` and ``gradient`` as ``ScoreStatistics`` has them; None before training, and for an
            attention that gives no score to each pair of tokens. Kept in checkpoints, as a resumed run has learned already.
    """

    def __init__(self) -> None:
        self.scores: dict[str, float] | None = None

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if trainer.global_step:
            return
        batch = next(iter(trainer.datamodule.val_dataloader()), None)
        if batch is None:
            return
        batch = pl_module.transfer_batch_to_device(batch, pl_module.device, 0)
        model = pl_module.model
        learning = model.training
        found = score_statistics(model.eval(), batch)
        model.train(learning)
        self.scores = found and found._asdict()

    def state_dict(self) -> dict[str, Any]:
        return {"scores": self.scores}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.scores = state_dict["scores"]
