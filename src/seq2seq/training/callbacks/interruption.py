"""Ctrl-C and SIGTERM: the step at hand is finished and a checkpoint written before the training stops."""

import signal
import sys
import threading
from pathlib import Path
from types import FrameType
from typing import Any

from lightning import LightningModule, Trainer
from lightning.pytorch.callbacks import Checkpoint

from seq2seq.training.saving import between_steps

SIGNALS = (signal.SIGINT, signal.SIGTERM)


# The base class makes it one of the last callbacks, after those that have a state to save.
class Interruption(Checkpoint):
    """Writes ``last.ckpt`` once the step in which a signal came is over, and ends the program as that signal does.

    A validation that is due is done before, as is one in which the signal comes. A second signal ends the program at once.
    With several processes, all stop after the same step.

    Args:
        folder: of the checkpoints.
    """

    def __init__(self, folder: str) -> None:
        self.path = Path(folder) / "last.ckpt"
        self._signal: int | None = None
        self._saved = False
        self._before: dict[int, Any] = {}

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._signal, self._saved = None, False
        # Python lets no other thread listen.
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._remember) for number in SIGNALS}

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        if between_steps(trainer, batch_idx):
            self._save_if_asked(trainer)

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._save_if_asked(trainer)

    # What was logged with the last step is written between its end and the next one's beginning.
    def on_train_batch_start(self, trainer: Trainer, pl_module: LightningModule, batch: Any, batch_idx: int) -> None:
        self._leave_if_saved(trainer)

    def on_train_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._leave_if_saved(trainer)

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._save_if_asked(trainer)
        self._leave_if_saved(trainer)
        self._restore()

    def on_exception(self, trainer: Trainer, pl_module: LightningModule, exception: BaseException) -> None:
        self._restore()

    def _save_if_asked(self, trainer: Trainer) -> None:
        if not self._saved and trainer.strategy.reduce_boolean_decision(self._signal is not None, all=False):
            trainer.save_checkpoint(self.path)
            self._saved = True

    def _leave_if_saved(self, trainer: Trainer) -> None:
        if not self._saved:
            return
        if trainer.is_global_zero:
            print(f"stopped after step {trainer.global_step}; resume=last goes on from {self.path}", file=sys.stderr)
        # As a shell reports a program that a signal ended. Lightning would make 1 of a KeyboardInterrupt.
        sys.exit(128 + (self._signal or signal.SIGTERM))

    def _remember(self, number: int, frame: FrameType | None) -> None:
        self._signal = number
        self._restore()

    def _restore(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before = {}
