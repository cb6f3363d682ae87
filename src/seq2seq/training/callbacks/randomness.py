"""The random numbers of a training that goes on where it stopped."""

from typing import Any

import torch
from lightning import Callback, LightningModule, Trainer

from seq2seq.training.ranks import gathered


class Randomness(Callback):
    """Keeps the state of torch's generators in every checkpoint, so that a resumed training draws the same dropout masks.

    Nothing else draws while it trains: the plans of batches and of subwords have seeds of their own.
    """

    def __init__(self) -> None:
        self._resumed: list[dict[str, Any]] = []

    def state_dict(self) -> dict[str, Any]:
        own = {"cpu": torch.get_rng_state()}
        if torch.cuda.is_available() and torch.cuda.is_initialized():
            own["cuda"] = torch.cuda.get_rng_state()
        return {"ranks": gathered(own)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self._resumed = state_dict["ranks"]

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        # With more processes than before, the new ones go on from their seeds.
        if trainer.global_rank < len(self._resumed):
            own = self._resumed[trainer.global_rank]
            torch.set_rng_state(own["cpu"])
            if "cuda" in own and pl_module.device.type == "cuda":
                torch.cuda.set_rng_state(own["cuda"], pl_module.device)
        self._resumed = []
