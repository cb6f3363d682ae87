"""What `compile=true` computes, and what a machine without a compiler is told."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from seq2seq.training.compiling import not_compiled

COMPARED = """
import json, torch
from seq2seq.dropout import Dropout
from seq2seq.training.compiling import compiled_forward
from tests.tiny import batch_of, tiny_model

forward, compiled, plain = compiled_forward(), tiny_model("additive").train(), tiny_model("additive").train()
furthest = 0.0
for rows in ([[4, 5, 6], [7, 8]], [[9, 10, 11, 12], [4, 5], [6, 7, 8]]):
    batch = batch_of(rows, [row[::-1] for row in rows])
    for model, run in ((compiled, forward), (plain, type(plain).forward)):
        model.zero_grad()
        model.output(run(model, batch.source, batch.inputs).features).square().sum().backward()
    for found, wanted in zip(compiled.parameters(), plain.parameters(), strict=True):
        furthest = max(furthest, float((found.grad - wanted.grad).abs().max() / wanted.grad.abs().max()))
dropped = torch.compile(Dropout(0.25).train(), dynamic=True)(torch.ones(1003, 50))
print(json.dumps([furthest, float((dropped == 0).float().mean()), float(dropped.mean())]))
"""


@pytest.mark.nightly
def test_gradients_are_those_of_the_plain_model_and_dropout_keeps_its_rate_and_mean():
    # In a process without the checks of shapes that the tests run under, through which the compiler cannot see.
    done = subprocess.run(
        [sys.executable, "-c", COMPARED], cwd=Path(__file__).parents[2], capture_output=True, text=True
    )
    furthest, rate, mean = json.loads(done.stdout.splitlines()[-1])
    assert 0 < furthest < 1e-4  # not the same operations
    assert rate == pytest.approx(0.25, abs=0.01)
    assert mean == pytest.approx(1, abs=0.01)


@pytest.mark.filterwarnings("ignore")  # torch's compiler uses parts of torch that torch calls outdated
def test_without_a_compiler_it_says_what_to_do(monkeypatch):
    monkeypatch.setattr("torch._inductor.config.cpp.cxx", (None, "/nowhere/g++"))
    monkeypatch.setattr("torch._inductor.config.force_disable_caches", True)
    with pytest.raises(RuntimeError) as raised:
        torch.compile(nn.Tanh())(torch.ones(5))
    assert "No working C++ compiler" in (said := str(not_compiled(raised.value)))
    assert "Set compile=false" in said
    assert not_compiled(RuntimeError("something else")) is None
