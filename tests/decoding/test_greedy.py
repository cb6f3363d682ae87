"""Greedy search against a plain loop over one sentence, and its independence of the batch."""

import math

import pytest
import torch

from seq2seq.decoding.greedy import LOOK_EVERY, Greedy
from seq2seq.errors import ConfigError
from seq2seq.models.seq2seq import Seq2Seq
from seq2seq.types import BOS, EOS, PAD, Bound, State
from tests.tiny import ATTENTIONS, padded, tiny_model


def sources(count, seed=0):
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(0, 12, (count,), generator=generator).tolist()
    return [[*torch.randint(4, 20, (length,), generator=generator).tolist(), EOS] for length in lengths]


def plain_loop(model, source, cap):
    """The definition: the whole prefix through teacher forcing, again for every token, one sentence."""
    tokens, total = [], 0.0
    while True:
        decoded = model(torch.tensor([source]), torch.tensor([[BOS, *tokens]]))
        scores = model.output(decoded.features[0, -1]).log_softmax(-1)
        allowed = scores.clone()
        allowed[[PAD, BOS]] = -math.inf
        # What may not be chosen takes no part in the distribution either.
        allowed = allowed.log_softmax(-1)
        best = int(allowed.argmax())
        if best == EOS:
            return tokens, total + float(allowed[best]), False, decoded.weights[0]
        if len(tokens) == cap:
            return tokens, total, True, decoded.weights[0, : len(tokens)]
        tokens.append(best)
        total += float(allowed[best])


@pytest.mark.parametrize("every", [1, 3, 8])
@pytest.mark.parametrize("attention", ATTENTIONS)
def test_equals_the_definition_however_seldom_it_looks_what_has_ended(attention, every, monkeypatch):
    monkeypatch.setitem(LOOK_EVERY, "cpu", every)
    model = tiny_model(attention, seed=5)
    rows = sources(9)
    search = Greedy(cap_ratio=1.5, cap_extra=4)
    found = search(model, padded(rows), with_weights=True)
    with torch.no_grad():
        for row, hypothesis in zip(rows, found, strict=True):
            tokens, total, truncated, weights = plain_loop(model, row, int(1.5 * (len(row) - 1)) + 4)
            assert hypothesis.tokens == tokens
            assert hypothesis.truncated == truncated
            assert hypothesis.log_probability == pytest.approx(total, abs=1e-4)
            torch.testing.assert_close(hypothesis.weights, weights[: len(tokens) + (not truncated)])


@pytest.mark.parametrize("attention", ATTENTIONS)
def test_batches_of_1_7_and_64_agree(attention):
    model = tiny_model(attention, seed=5)
    rows = sources(64, seed=1)
    search = Greedy()

    def translations(size):
        starts = range(0, len(rows), size)
        return [found.tokens for start in starts for found in search(model, padded(rows[start : start + size]))]

    alone = translations(1)
    assert translations(7) == alone
    assert translations(64) == alone


class Scripted(Seq2Seq):
    """Says what its script says: ``length`` times token 7, then EOS, the length being the first source token."""

    def __init__(self):
        torch.nn.Module.__init__(self)

    def start(self, source):
        left = source[:, :1].float()
        return State((left,), Bound(left, left, source != PAD))

    def step(self, tokens, state):
        left = state.recurrent[0]
        logits = torch.zeros(len(tokens), 10)
        logits[:, 7] = (left[:, 0] > 0) * 5.0
        logits[:, EOS] = (left[:, 0] <= 0) * 5.0
        weights = torch.zeros(len(tokens), state.bound.is_token.shape[1])
        return logits, weights, State((left - 1,), state.bound)


@pytest.mark.parametrize(
    ("length", "tokens", "truncated"), [(1, 1, False), (6, 6, False), (7, 7, False), (8, 7, True), (9, 7, True)]
)
def test_the_cap_is_2_s_plus_5_and_counts_neither_side_s_eos(length, tokens, truncated):
    """One source token before EOS: the cap is 2 * 1 + 5 = 7 tokens."""
    hypothesis = Greedy(cap_ratio=2.0, cap_extra=5)(Scripted(), torch.tensor([[length, EOS]]))[0]
    assert hypothesis.tokens == [7] * tokens
    assert hypothesis.truncated is truncated


def test_each_row_ends_by_its_own_cap():
    rows = torch.tensor([[9, EOS, PAD, PAD], [9, 9, 9, EOS]])
    found = Greedy(cap_ratio=1.0, cap_extra=2)(Scripted(), rows)
    assert [len(hypothesis.tokens) for hypothesis in found] == [3, 5]
    assert [hypothesis.truncated for hypothesis in found] == [True, True]


@pytest.mark.parametrize(("ratio", "extra"), [(-1.0, 5), (2.0, 0)])
def test_a_cap_that_leaves_nothing_is_refused(ratio, extra):
    with pytest.raises(ConfigError, match=r"decoding\.cap_"):
        Greedy(ratio, extra)
