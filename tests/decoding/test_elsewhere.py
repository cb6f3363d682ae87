"""Searches on a device that is not the CPU: what they find, that they mix no tensors of two devices, how often they wait."""

import math
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest
import torch

from seq2seq.decoding.beam import Beam
from seq2seq.decoding.greedy import ELSEWHERE, Greedy
from seq2seq.decoding.sampling import Sampling
from tests.decoding.test_greedy import sources
from tests.elsewhere import IS_POSSIBLE, searched
from tests.tiny import padded, tiny_model

pytestmark = pytest.mark.skipif(not IS_POSSIBLE, reason="this torch cannot pretend to have a device")
ROWS = sources(9)


@pytest.fixture(scope="module")
def elsewhere():
    """``searched`` in a process of its own."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        yield lambda *arguments: pool.submit(searched, *arguments).result()


@pytest.mark.parametrize("with_weights", [False, True])
@pytest.mark.parametrize(
    "search",
    [
        Greedy(),
        Sampling(top_k=1),
        Beam(3),
        Beam(3, coverage_penalty=0.2, no_repeat_ngram=2, min_length=2, cap_ratio=0.5, cap_extra=4),
    ],
    ids=["greedy", "sampling", "beam", "beam with penalties"],
)
def test_a_search_finds_the_same_elsewhere(elsewhere, search, with_weights):
    here = search(tiny_model(seed=5), padded(ROWS), with_weights)
    there, _ = elsewhere(search, ROWS, with_weights)
    for one, other in zip(here, there, strict=True):
        assert (one.tokens, one.truncated) == (other.tokens, other.truncated)
        assert one.score == pytest.approx(other.score, abs=1e-5)
        if with_weights:
            torch.testing.assert_close(one.weights, other.weights)


def test_greedy_search_waits_once_in_several_steps(elsewhere):
    """A look fetches rows, whether they ended, tokens, caps and probabilities, and what goes on; lengths come first."""
    found, waits = elsewhere(Greedy(), ROWS, False)
    steps = max(len(each.tokens) + 1 for each in found)
    assert waits.total() == 1 + 6 * math.ceil(steps / ELSEWHERE)


@pytest.mark.parametrize(("settings", "fetched"), [({}, 2), ({"coverage_penalty": 0.2}, 3)], ids=str)
def test_beam_search_waits_once_a_step(elsewhere, settings, fetched):
    """For the best of each row and where they are, with a coverage penalty weights as well; lengths come first."""
    _, waits = elsewhere(Beam(3, cap_ratio=0.0, cap_extra=7, **settings), ROWS, False)
    assert set(waits) == {"aten::to"}
    # A cap of 7 tokens is reached in 8 steps.
    assert waits.total() == 1 + 8 * fetched
