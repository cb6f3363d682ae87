"""The gradient probe against finite differences, and what it must leave alone."""

import pytest
import torch

from seq2seq.probes.gradients import source_gradients
from seq2seq.types import PAD, Batch
from tests.tiny import ATTENTIONS, batch_of, tiny_model

BATCH = batch_of([[5, 6, 7], [8]], [[9, 10, 11, 12], [13, 14]])
STEP = 1e-5


def loss_of(model, batch, row, shift):
    """Summed cross-entropy of one sentence, ``shift`` being added to what the encoder reads."""
    hook = model.source_embedding.register_forward_hook(lambda module, arguments, embedded: embedded + shift)
    with torch.no_grad():
        log_probabilities = model.output(model(batch.source, batch.inputs).features).log_softmax(-1)[row]
    hook.remove()
    targets = batch.targets[row]
    return -sum(log_probabilities[t, token].item() for t, token in enumerate(targets.tolist()) if token != PAD)


def finite_differences(model, batch):
    rows, width = batch.source.shape
    size = model.source_embedding.table.embedding_dim
    norms = torch.zeros(rows, width, dtype=torch.float64)
    for row in range(rows):
        for place in range(width):
            slopes = torch.zeros(size, dtype=torch.float64)
            for number in range(size):
                shift = torch.zeros(rows, width, size, dtype=torch.float64)
                shift[row, place, number] = STEP
                difference = loss_of(model, batch, row, shift) - loss_of(model, batch, row, -shift)
                slopes[number] = difference / (2 * STEP)
            norms[row, place] = slopes.norm()
    return norms


@pytest.mark.parametrize("cell", ["gru", "lstm"])
@pytest.mark.parametrize("attention", ATTENTIONS)
def test_agrees_with_finite_differences(attention, cell):
    # The source has a table of its own, so that a shift of it does not move the target's.
    model = tiny_model(attention, cell=cell, tying="target").double()
    found = source_gradients(model, BATCH)
    torch.testing.assert_close(found, finite_differences(model, BATCH), rtol=1e-6, atol=1e-8)
    assert (found[BATCH.source != PAD] > 0).all()
    assert (found[BATCH.source == PAD] == 0).all()


def test_a_shared_table_changes_nothing_but_the_way_to_it():
    """Only the path through the encoder counts, although the target is embedded by the same table."""
    shared, apart = tiny_model(tying="all").double(), tiny_model(tying="target").double()
    apart.load_state_dict(shared.state_dict())
    torch.testing.assert_close(source_gradients(shared, BATCH), source_gradients(apart, BATCH))


def test_a_sentence_is_measured_alike_alone_and_in_a_batch():
    model = tiny_model("additive").double()
    alone = Batch(
        BATCH.ids[1:], BATCH.source[1:, :2], BATCH.inputs[1:, :3], BATCH.targets[1:, :3], BATCH.loss_denominator
    )
    torch.testing.assert_close(source_gradients(model, alone)[0], source_gradients(model, BATCH)[1, :2])


def test_works_in_inference_mode_on_tensors_made_there():
    model = tiny_model()
    expected = source_gradients(model, BATCH)
    with torch.inference_mode():
        batch = Batch(*(field + 0 for field in BATCH))
        assert batch.source.is_inference()
        found = source_gradients(model, batch)
        assert torch.is_inference_mode_enabled()
    torch.testing.assert_close(found, expected)


def test_leaves_the_model_as_it_was():
    model = tiny_model(dropout=0.5, word_dropout=0.5)
    first = source_gradients(model, BATCH)
    torch.testing.assert_close(source_gradients(model, BATCH), first, rtol=0, atol=0)
    assert not any(module.training for module in model.modules())
    assert all(parameter.grad is None and parameter.requires_grad for parameter in model.parameters())
