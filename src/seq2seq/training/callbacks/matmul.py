"""Cheaper matrix products while training, exact ones while measuring."""

import torch
from lightning import Callback, LightningModule, Trainer
from lightning.pytorch.trainer.states import TrainerFn

from seq2seq.errors import ConfigError

EXACT = "highest"
PRECISIONS = (EXACT, "high", "medium")


class MatmulPrecision(Callback):
    """Sets how exactly 32-bit matrix products are computed in training; validation and test are always exact.

    With ``medium``, processors that can do so round the factors to bfloat16 and sum up in 32 bits: about twice as fast on
    a CPU with AVX-512 BF16. Elsewhere it changes nothing, or on a GPU uses TF32.

    Args:
        training: ``highest``, ``high`` or ``medium``, as ``torch.set_float32_matmul_precision`` has it.

    Raises:
        ConfigError: it is none of these.
    """

    def __init__(self, training: str = "medium"):
        if training not in PRECISIONS:
            raise ConfigError(f"matmul_precision must be one of {', '.join(PRECISIONS)}, found {training!r}")
        self.training = training

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        torch.set_float32_matmul_precision(self.training)

    def on_validation_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        torch.set_float32_matmul_precision(EXACT)

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if trainer.state.fn == TrainerFn.FITTING:
            torch.set_float32_matmul_precision(self.training)

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        torch.set_float32_matmul_precision(EXACT)

    def on_exception(self, trainer: Trainer, pl_module: LightningModule, exception: BaseException) -> None:
        torch.set_float32_matmul_precision(EXACT)
