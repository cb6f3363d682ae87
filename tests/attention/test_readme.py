"""The README's own attention, taken from its text, keeps the contract of the family."""

import re

import pytest
import torch

from seq2seq.attention.base import build_attention
from seq2seq.types import Memory
from tests.tiny import CONF

README = (CONF.parent / "README.md").read_text(encoding="utf-8")


@pytest.fixture
def attention():
    (code,) = (block for block in re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL) if "(Attention)" in block)
    names = {}
    exec(code, names)
    torch.manual_seed(0)
    return build_attention(names["DistanceAttention"], query_size=8, memory_size=10)


def test_the_nearest_key_weighs_most_and_padding_nothing(attention):
    states = torch.randn(2, 5, 10)
    memory = Memory(states, torch.arange(5) < torch.tensor([[5], [3]]), torch.randn(2, 10))
    bound = attention.bind(memory)
    weights = attention(bound.keys[:, 1:2], bound).weights
    assert weights.shape == (2, 1, 5)
    assert weights[:, 0].argmax(dim=-1).tolist() == [1, 1]
    assert (weights[1, 0, 3:] == 0).all()
