"""Encoders of one direction and of reversed order, against the plain one on inputs turned by hand."""

import pytest
import torch

from seq2seq.models.encoder import RecurrentEncoder


def encoder(**settings):
    torch.manual_seed(0)
    return RecurrentEncoder(input_size=3, cell="gru", hidden_size=4, **settings)


@pytest.fixture
def embedded():
    torch.manual_seed(1)
    return torch.randn(2, 4, 3)


IS_TOKEN = torch.tensor([[True] * 4, [True, True, True, False]])


def test_reversed_reading_turns_what_stands_before_eos(embedded):
    """Rows a b c EOS and d e EOS: read as c b a EOS and e d EOS."""
    turned = torch.stack((embedded[0, [2, 1, 0, 3]], embedded[1, [1, 0, 2, 3]]))
    found = encoder(reverse=True)(embedded, IS_TOKEN)
    expected = encoder()(turned, IS_TOKEN)
    torch.testing.assert_close(found.final, expected.final)
    torch.testing.assert_close(found.states[0, [2, 1, 0, 3]], expected.states[0])
    torch.testing.assert_close(found.states[1, [1, 0, 2, 3]], expected.states[1])


def test_a_lone_eos_can_be_reversed(embedded):
    memory = encoder(reverse=True)(embedded[:, :1], torch.ones(2, 1, dtype=torch.bool))
    torch.testing.assert_close(memory.states, encoder()(embedded[:, :1], torch.ones(2, 1, dtype=torch.bool)).states)


def test_one_direction_has_the_whole_size_and_ends_with_the_last_token(embedded):
    memory = encoder(bidirectional=False)(embedded, IS_TOKEN)
    assert memory.states.shape == (2, 4, 4)
    assert torch.equal(memory.final[0], memory.states[0, 3])
    assert torch.equal(memory.final[1], memory.states[1, 2])


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, [0, 1, 2, 1, 0]),
        ({"bidirectional": False}, [4, 3, 2, 1, 0]),
        # Read d c b a EOS.
        ({"bidirectional": False, "reverse": True}, [1, 2, 3, 4, 0]),
    ],
)
def test_distances_to_the_fixed_vector(settings, expected):
    assert encoder(**settings).distances(5).tolist() == expected


@pytest.mark.parametrize("settings", [{"bidirectional": False}, {"bidirectional": False, "reverse": True}])
def test_what_is_read_later_is_nearer(settings):
    """With small weights each step passes on a part of the gradient alone, so that its size falls with the distance."""
    small = encoder(**settings)
    for weight in small.parameters():
        weight.data *= 0.5
    embedded = torch.zeros(1, 5, 3, requires_grad=True)
    final = small(embedded, torch.ones(1, 5, dtype=torch.bool)).final
    (gradient,) = torch.autograd.grad(final.sum(), embedded)
    assert gradient[0].norm(dim=-1).argsort(descending=True).tolist() == small.distances(5).argsort().tolist()
