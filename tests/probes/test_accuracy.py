"""Accuracy by target position, for a model whose errors are known."""

import numpy as np
import torch

from seq2seq.probes.accuracy import accuracy_by_position, token_hits
from seq2seq.types import EOS, PAD
from tests.tiny import batch_of, tiny_model


def always(token):
    """A model that holds one token for the likeliest, whatever it reads."""
    model = tiny_model(tying="none")
    with torch.no_grad():
        model.output.weight.zero_()
        model.output.bias.zero_()
        model.output.bias[token] = 1.0
    return model


def measured(model, batch):
    hits = token_hits(model, model(batch.source, batch.inputs), batch.targets)
    return hits, [row[is_token].numpy() for row, is_token in zip(hits, batch.targets != PAD, strict=True)]


def test_known_errors():
    """Targets 7 7 8 EOS, 9 7 EOS and EOS alone, and every guess is 7."""
    batch = batch_of([[5], [6], [5, 6]], [[7, 7, 8], [9, 7], []])
    hits, rows = measured(always(7), batch)
    assert hits.tolist() == [[True, True, False, False], [False, True, False, False], [False] * 4]
    correct, count = accuracy_by_position(rows)
    assert correct.tolist() == [1, 2, 0, 0]
    assert count.tolist() == [3, 2, 2, 1]


def test_the_end_of_a_sentence_counts_and_padding_does_not():
    batch = batch_of([[5], [6], [5, 6]], [[7, 7, 8], [9, 7], []])
    correct, count = accuracy_by_position(measured(always(EOS), batch)[1])
    assert correct.tolist() == [1, 0, 1, 1]
    assert count.tolist() == [3, 2, 2, 1]
    assert not measured(always(PAD), batch)[0].any()


def test_no_sentence_has_no_position():
    assert [part.tolist() for part in accuracy_by_position([])] == [[], []]


def test_each_prediction_is_for_its_own_position():
    """The hits are those of the output layer's scores, position by position."""
    model, batch = tiny_model("additive"), batch_of([[5, 6, 7], [8]], [[9, 10, 11, 12], [13, 14]])
    logits = model.output(model(batch.source, batch.inputs).features)
    expected = (logits.argmax(-1) == batch.targets) & (batch.targets != PAD)
    hits = measured(model, batch)[0]
    assert np.array_equal(hits.numpy(), expected.numpy())
