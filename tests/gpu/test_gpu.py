"""On a CUDA GPU: every attention in every decoder learns and translates there, as on the CPU, through cuDNN.

`pytest -m gpu -n 0 -s` takes a few minutes and prints tokens/s; without a GPU everything here is skipped.
"""

import json
import subprocess
import sys
import time

import pytest
import torch

from seq2seq.decoding.beam import Beam
from seq2seq.decoding.greedy import Greedy
from seq2seq.types import PAD
from tests.tiny import ATTENTIONS, CONF, MODELS, SMALL, VOCABULARY, batch_of, loss_of, tiny_model

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="torch finds no CUDA GPU here"),
]
SOURCES = [[5, 6, 7], [8, 9], [10], [11, 12, 13, 14]]
TARGETS = [[10, 11], [12, 13, 14], [15], [16, 17]]


def on_gpu(batch):
    return batch._replace(**{name: value.cuda() for name, value in batch._asdict().items()})


@pytest.fixture(autouse=True)
def exact_products():
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    allowed, torch.backends.cudnn.allow_tf32 = torch.backends.cudnn.allow_tf32, False
    yield
    torch.set_float32_matmul_precision(before)
    torch.backends.cudnn.allow_tf32 = allowed


@pytest.mark.parametrize("cell", ["gru", "lstm", "rnn"])
@pytest.mark.parametrize("attention", ATTENTIONS)
@pytest.mark.parametrize("model", MODELS)
def test_loss_gradients_and_translations_are_those_of_the_cpu(model, attention, cell):
    here, there = (tiny_model(attention, model=model, cell=cell, layers=3) for _ in range(2))
    there.cuda()
    batch = batch_of(SOURCES, TARGETS)
    losses = [loss_of(here.train(), batch), loss_of(there.train(), on_gpu(batch))]
    torch.testing.assert_close(losses[1].cpu(), losses[0], rtol=1e-4, atol=1e-5)
    for loss in losses:
        loss.backward()
    for (name, one), other in zip(here.named_parameters(), there.parameters(), strict=True):
        torch.testing.assert_close(other.grad.cpu(), one.grad, rtol=1e-3, atol=1e-5, msg=name)
    for search in (Greedy(), Beam(3)):
        found, expected = search(there.eval(), batch.source.cuda()), search(here.eval(), batch.source)
        assert [hypothesis.tokens for hypothesis in found] == [hypothesis.tokens for hypothesis in expected]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["fp32", "bf16"])
@pytest.mark.parametrize("attention", ATTENTIONS)
@pytest.mark.parametrize("model", MODELS)
def test_every_attention_learns_by_heart(model, attention, dtype):
    network = tiny_model(attention, model=model, size=32, embedding_size=16).cuda().train()
    batch = on_gpu(batch_of(SOURCES, TARGETS))
    optimizer = torch.optim.Adam(network.parameters(), lr=0.01)
    for _ in range(300):
        with torch.autocast("cuda", dtype, enabled=dtype != torch.float32):
            loss = loss_of(network, batch)
        if loss < 0.02:
            break
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
    assert loss < 0.02
    assert [hypothesis.tokens for hypothesis in Greedy()(network.eval(), batch.source)] == TARGETS


@pytest.mark.parametrize("cell", ["gru", "lstm", "rnn"])
def test_recurrent_networks_run_in_cudnn(cell):
    model = tiny_model(cell=cell).cuda().train()
    batch = on_gpu(batch_of(SOURCES, TARGETS))
    with torch.profiler.profile() as profile:
        loss_of(model, batch).backward()
    names = {event.key for event in profile.key_averages()}
    assert "aten::_cudnn_rnn" in names
    assert "aten::_cudnn_rnn_backward" in names


@pytest.mark.parametrize("precision", ["32-true", "bf16-mixed", "16-mixed"])
def test_a_whole_run(tmp_path, precision):
    command = [sys.executable, CONF.parent / "train.py", *SMALL, "trainer=gpu", f"trainer.precision={precision}"]
    outcome = subprocess.run(
        [*command, "cache_dir=cache", "run_dir=run"], cwd=tmp_path, capture_output=True, text=True, timeout=200
    )
    assert outcome.returncode == 0, outcome.stderr
    assert json.loads((tmp_path / "run/scores.json").read_text())["n"] > 0


@pytest.mark.parametrize("attention", ["none", "additive", "scaled"])
@pytest.mark.parametrize("model", MODELS)
def test_tokens_a_second(model, attention):
    network = tiny_model(attention, model=model, size=512, embedding_size=256).cuda().train()
    words = torch.randint(4, VOCABULARY, (128, 30)).tolist()
    batch = on_gpu(batch_of(words, words))
    optimizer = torch.optim.AdamW(network.parameters(), fused=True)
    for step in range(25):
        if step == 5:
            torch.cuda.synchronize()
            begun = time.perf_counter()
        with torch.autocast("cuda", torch.bfloat16):
            loss = loss_of(network, batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    torch.cuda.synchronize()
    rate = 20 * int((batch.targets != PAD).sum()) / (time.perf_counter() - begun)
    print(f"\n{model} {attention}: {rate:,.0f} target tokens/s in training, batches of 128, states of 512, bf16")
    assert rate > 0
