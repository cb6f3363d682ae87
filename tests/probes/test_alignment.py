"""Items of tokens, links, error rate, entropy and coverage, worked out by hand."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from seq2seq.probes.alignment import (
    NO_ITEM,
    LinkCounts,
    alignment_error_rate,
    count_links,
    coverage,
    entropy,
    item_of_tokens,
    predicted_links,
)

# "Fiji, 3 hours": items Fiji and 3 hours; tokens ▁Fi ji , ▁3 ▁hours.
OFFSETS = [(0, 2), (2, 4), (4, 5), (5, 7), (7, 13)]
ITEMS = [(0, 4), (6, 13)]


def test_a_token_belongs_to_the_item_it_shares_characters_with():
    assert item_of_tokens(OFFSETS, ITEMS).tolist() == [0, 0, NO_ITEM, 1, 1]


def test_a_token_over_two_items_belongs_to_the_one_it_shares_more_with():
    assert item_of_tokens([(0, 6)], [(0, 2), (3, 6)]).tolist() == [1]
    assert item_of_tokens([(0, 5)], [(0, 2), (3, 5)]).tolist() == [0]


def test_an_empty_token_and_a_sentence_without_items():
    assert item_of_tokens([(0, 0), (0, 1)], [(0, 1)]).tolist() == [NO_ITEM, 0]
    assert item_of_tokens([(0, 1)], []).tolist() == [NO_ITEM]
    assert item_of_tokens([], [(0, 1)]).tolist() == []


# Three items on either side: two tokens, one, one, then EOS; the target has the first two the other way round.
SOURCE_ITEMS = np.array([0, 0, 1, 2, NO_ITEM])
TARGET_ITEMS = np.array([1, 0, 0, NO_ITEM, 2, NO_ITEM])


def looking_at(*places: int) -> np.ndarray:
    return np.eye(len(SOURCE_ITEMS), dtype=np.float32)[list(places)]


def counts_of(weights: np.ndarray) -> LinkCounts:
    return count_links(predicted_links(weights, SOURCE_ITEMS, TARGET_ITEMS, 3))


def test_the_true_alignment_has_no_error():
    counts = counts_of(looking_at(2, 0, 1, 4, 3, 4))
    assert counts == LinkCounts(found=3, predicted=3, true=3)
    assert alignment_error_rate(counts) == 0


def test_an_alignment_by_hand():
    """Item 0 gets 0.5 + 0.4 of its two tokens' weight on item 1 and 0.9 on item 0 + 0.1 on it: right. Item 1 is right.
    Item 2 looks mostly at EOS, and of the items most at 1: wrong. 1 - 2 * 2 / (3 + 3) = 1/3."""
    weights = np.array(
        [
            [0.1, 0.1, 0.6, 0.2, 0.0],
            [0.3, 0.2, 0.5, 0.0, 0.0],
            [0.1, 0.4, 0.4, 0.1, 0.0],
            [0.0, 0.0, 0.0, 1.0, 0.0],
            [0.1, 0.1, 0.25, 0.05, 0.5],
            [0.0, 0.0, 0.0, 0.0, 1.0],
        ],
        dtype=np.float32,
    )
    assert predicted_links(weights, SOURCE_ITEMS, TARGET_ITEMS, 3).tolist() == [0, 1, 1]
    counts = counts_of(weights)
    assert counts == LinkCounts(found=2, predicted=3, true=3)
    assert alignment_error_rate(counts) == pytest.approx(1 / 3)


def test_an_item_that_looks_at_no_item_is_linked_to_none():
    """Found 2, predicted 2, true 3: 1 - 4 / 5."""
    counts = counts_of(looking_at(2, 0, 1, 4, 4, 4))
    assert counts == LinkCounts(found=2, predicted=2, true=3)
    assert alignment_error_rate(counts) == pytest.approx(0.2)


def test_without_weights_or_items_there_is_no_error_rate():
    counts = counts_of(np.zeros((6, 5), np.float32))
    assert counts == LinkCounts(found=0, predicted=0, true=3)
    assert alignment_error_rate(counts) is None
    assert alignment_error_rate(LinkCounts(0, 0, 0)) is None


def test_entropy_by_hand():
    """Uniform over 4 is log 4, one-hot is 0, and half of each is their mean; the padded target token does not count."""
    uniform, one_hot, nothing = [0.25] * 4, [0.0, 1.0, 0.0, 0.0], [0.0] * 4
    weights = torch.tensor([[uniform, uniform, uniform], [one_hot, one_hot, uniform], [uniform, one_hot, one_hot]])
    is_target = torch.tensor([[True, True, True], [True, True, False], [True, True, False]])
    assert entropy(weights, is_target).tolist() == pytest.approx([math.log(4), 0.0, math.log(4) / 2])
    assert entropy(torch.tensor([[nothing, nothing]]), torch.tensor([[True, True]])).isnan().all()


def test_coverage_by_hand():
    """Summed weights 1.5, 0.3, 0.2 are 1, 0.3, 0.2 at most: half of the source. The padded target token does not count."""
    weights = torch.tensor([[[0.9, 0.1, 0.0, 0.0], [0.6, 0.2, 0.2, 0.0], [0.0, 1.0, 0.0, 0.0]]])
    is_target, is_source = torch.tensor([[True, True, False]]), torch.tensor([[True, True, True, False]])
    assert coverage(weights, is_target, is_source).tolist() == pytest.approx([0.5])
    assert coverage(torch.zeros(1, 3, 4), is_target, is_source).isnan().all()


@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 100))
def test_bounds(targets: int, sources: int, seed: int):
    generator = torch.Generator().manual_seed(seed)
    weights = torch.randn(1, targets, sources, generator=generator).mul(3).softmax(-1)
    everywhere = torch.ones(1, targets, dtype=torch.bool), torch.ones(1, sources, dtype=torch.bool)
    assert -1e-6 <= entropy(weights, everywhere[0]).item() <= math.log(sources) + 1e-5
    assert 0 < coverage(weights, *everywhere).item() <= min(1, targets / sources) + 1e-5
