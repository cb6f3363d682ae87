"""Sampling: its limits are greedy search and the distribution itself."""

import pytest
import torch

from seq2seq.decoding.greedy import Greedy
from seq2seq.decoding.sampling import Sampling
from seq2seq.errors import ConfigError
from tests.decoding.test_greedy import sources
from tests.tiny import padded, tiny_model


@pytest.mark.parametrize("settings", [{"top_k": 1}, {"temperature": 1e-4}], ids=str)
def test_without_chance_it_is_greedy(settings):
    model, rows = tiny_model(seed=5), padded(sources(9))
    found = Sampling(**settings)(model, rows, with_weights=True)
    for one, other in zip(found, Greedy()(model, rows, with_weights=True), strict=True):
        assert one.tokens == other.tokens
        assert one.log_probability == pytest.approx(other.log_probability, abs=1e-4)


def test_draws_follow_the_distribution():
    """Scores ln 1, 3, 6: shares 0.1, 0.3, 0.6; of the two likeliest 1/3, 2/3; at temperature 1/2 1/46, 9/46, 36/46."""
    scores = torch.tensor([1.0, 3.0, 6.0]).log().expand(40_000, 3)
    torch.manual_seed(0)
    for settings, expected in (
        ({}, [0.1, 0.3, 0.6]),
        ({"top_k": 2}, [0.0, 1 / 3, 2 / 3]),
        ({"temperature": 0.5}, [1 / 46, 9 / 46, 36 / 46]),
    ):
        shares = Sampling(**settings).choose(scores).bincount(minlength=3) / 40_000
        torch.testing.assert_close(shares, torch.tensor(expected), rtol=0, atol=0.01)


def test_the_same_seed_says_the_same():
    model, rows = tiny_model(seed=5), padded(sources(9))
    said = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        said.append([hypothesis.tokens for hypothesis in Sampling()(model, rows)])
    assert said[0] == said[1] != said[2]


@pytest.mark.parametrize("settings", [{"temperature": 0.0}, {"top_k": 0}, {"cap_extra": 0}], ids=str)
def test_settings_out_of_range_are_refused(settings):
    with pytest.raises(ConfigError, match=r"decoding\."):
        Sampling(**settings)
