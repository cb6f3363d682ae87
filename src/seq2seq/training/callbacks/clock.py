"""How long training took and how many target tokens it read."""

import time
from typing import Any

from lightning import Callback, LightningModule, Trainer
from lightning.pytorch.trainer.states import TrainerFn

from seq2seq.types import PAD, Batch


class Clock(Callback):
    """Counts seconds and target tokens, also over a resumed training.

    Logs ``train/tokens_per_s`` while training, and with every validation, beside its scores, ``train/tokens_seen``, target
    tokens of all ranks since the beginning, and ``train/minutes``, wall time since then.

    Attributes:
        seconds: wall time from the start of fitting to its end, validation included.
        step_seconds: wall time of training steps and of loading their batches alone.
        tokens: real target tokens read on this rank, ``EOS`` included.
    """

    def __init__(self) -> None:
        self.seconds = self.step_seconds = 0.0
        self.tokens = 0
        self._fit_from = self._step_from = time.perf_counter()
        self._logged_tokens, self._logged_seconds = 0, 0.0
        self._fitting = True

    @property
    def tokens_per_s(self) -> float:
        """Target tokens a second of training, validation left out."""
        return self.tokens / self.step_seconds if self.step_seconds else 0.0

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        self._fitting = stage == TrainerFn.FITTING

    def on_fit_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._fit_from = time.perf_counter()

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        # A training that goes on inside an epoch does not start it.
        self._step_from = time.perf_counter()

    def on_train_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._step_from = time.perf_counter()

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Batch, batch_idx: int
    ) -> None:
        now = time.perf_counter()
        self.step_seconds += now - self._step_from
        self._step_from = now
        self.tokens += int((batch.targets != PAD).sum())
        if trainer.global_step % trainer.log_every_n_steps == 0:
            seconds, tokens = self.step_seconds - self._logged_seconds, self.tokens - self._logged_tokens
            self._logged_seconds, self._logged_tokens = self.step_seconds, self.tokens
            pl_module.log("train/tokens_per_s", float(tokens) / max(seconds, 1e-9), prog_bar=True)

    def on_validation_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if trainer.state.fn == TrainerFn.FITTING:
            self._stop_watch()
            pl_module.log("train/tokens_seen", float(self.tokens), reduce_fx="sum", sync_dist=True)
            pl_module.log("train/minutes", self.seconds / 60, sync_dist=True)

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        # A validation inside an epoch is no training time.
        self._step_from = time.perf_counter()

    def on_fit_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._stop_watch()

    def state_dict(self) -> dict[str, Any]:
        self._stop_watch()
        return {"seconds": self.seconds, "step_seconds": self.step_seconds, "tokens": self.tokens}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        # A test restores callbacks along with the best weights, which may lie some epochs back.
        if not self._fitting:
            return
        self.seconds, self.step_seconds = state_dict["seconds"], state_dict["step_seconds"]
        self.tokens = state_dict["tokens"]
        self._logged_tokens, self._logged_seconds = self.tokens, self.step_seconds

    def _stop_watch(self) -> None:
        now = time.perf_counter()
        self.seconds += now - self._fit_from
        self._fit_from = now
