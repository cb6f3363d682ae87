"""Products are rounded in training at the most, never where something is measured."""

import pytest
import torch
from lightning import Callback

from seq2seq.training.callbacks.matmul import MatmulPrecision
from tests.training.conftest import make_task, make_trainer


class Seen(Callback):
    def __init__(self):
        self.values = {"train": set(), "valid": set(), "test": set()}

    def on_train_batch_start(self, trainer, pl_module, batch, batch_idx):
        self.values["train"].add(torch.get_float32_matmul_precision())

    def on_validation_batch_start(self, trainer, pl_module, batch, batch_idx, dataloader_idx=0):
        self.values["valid"].add(torch.get_float32_matmul_precision())

    def on_test_batch_start(self, trainer, pl_module, batch, batch_idx, dataloader_idx=0):
        self.values["test"].add(torch.get_float32_matmul_precision())


def test_training_rounds_and_measuring_does_not(make_data, tmp_path):
    data, seen = make_data(), Seen()
    trainer = make_trainer(tmp_path, 2, [MatmulPrecision("medium"), seen])
    task = make_task(data)
    trainer.fit(task, data)
    trainer.test(task, data, verbose=False)
    assert seen.values == {"train": {"medium"}, "valid": {"highest"}, "test": {"highest"}}
    assert torch.get_float32_matmul_precision() == "highest"


def test_a_failure_leaves_exact_products_behind(make_data, tmp_path):
    class Failing(Callback):
        def on_train_batch_end(self, *arguments):
            raise ArithmeticError("as planned")

    data = make_data()
    with pytest.raises(ArithmeticError, match="as planned"):
        make_trainer(tmp_path, 1, [MatmulPrecision("medium"), Failing()]).fit(make_task(data), data)
    assert torch.get_float32_matmul_precision() == "highest"
