"""The attention before it has learned anything."""

from typing import Any

import numpy as np
import torch
from lightning import Callback, LightningModule, Trainer
from lightning.pytorch.trainer.states import TrainerFn

from seq2seq.probes.scores import score_statistics
from seq2seq.training.callbacks.matmul import EXACT
from seq2seq.training.selection import spread_over_lengths


class Start(Callback):
    """Measures the scores of the untrained attention on some sentences of the validation split; changes nothing of the run.

    Args:
        sentences: how many, spread evenly over source lengths; one batch.

    Attributes:
        scores: ``deviation``, ``entropy`` and ``gradient`` as ``ScoreStatistics`` has them; None before training, and for an
            attention that gives no score to each pair of tokens. Kept in checkpoints, as a resumed run has learned already.
    """

    def __init__(self, sentences: int = 32) -> None:
        self.sentences = sentences
        self.scores: dict[str, float] | None = None
        self._fitting = True

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        self._fitting = stage == TrainerFn.FITTING

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        valid = trainer.datamodule.store.split("valid")
        if trainer.global_step or not len(valid) or not self.sentences:
            return
        chosen = np.array(sorted(spread_over_lengths(valid.lengths[:, 0], self.sentences)))
        batch = pl_module.transfer_batch_to_device(valid.batch(chosen), pl_module.device, 0)
        model, precision = pl_module.model, torch.get_float32_matmul_precision()
        learning = model.training
        torch.set_float32_matmul_precision(EXACT)
        try:
            found = score_statistics(model.eval(), batch)
        finally:
            model.train(learning)
            torch.set_float32_matmul_precision(precision)
        self.scores = found and found._asdict()

    def state_dict(self) -> dict[str, Any]:
        return {"scores": self.scores}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        if self._fitting:
            self.scores = state_dict["scores"]
