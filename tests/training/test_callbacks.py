"""Callbacks: what they count and what they print."""

import pytest

from seq2seq.training.callbacks.clock import Clock
from seq2seq.training.callbacks.samples import Samples
from tests.training.conftest import make_task, make_trainer


def test_the_clock_counts_every_target_token_once_an_epoch(make_data, tmp_path):
    data, clock = make_data(), Clock()
    make_trainer(tmp_path, 3, [clock]).fit(make_task(data), data)
    assert clock.tokens == 3 * data.store.split("train").lengths[:, 1].sum()
    assert 0 < clock.step_seconds < clock.seconds
    assert clock.tokens_per_s == pytest.approx(clock.tokens / clock.step_seconds)


def test_the_clock_goes_on_after_a_resume(make_data, tmp_path):
    data, first, second = make_data(), Clock(), Clock()
    make_trainer(tmp_path, 1, [first]).fit(make_task(data), data)
    state = first.state_dict()
    second.load_state_dict(state)
    make_trainer(tmp_path, 1, [second]).fit(make_task(data), data)
    assert second.tokens == 2 * first.tokens
    assert second.seconds > state["seconds"]


def test_three_samples_at_every_validation(make_data, tmp_path, capsys):
    data = make_data()
    make_trainer(tmp_path, 2, [Samples(count=3)]).fit(make_task(data), data)
    out = capsys.readouterr().out
    valid = data.store.split("valid")
    for sentence in (0, 8, 15):
        assert (
            out.count(f"  source     {valid.source_text(sentence)}\n  reference  {valid.target_text(sentence)}\n") >= 2
        )
    assert out.count("  hypothesis ") == 6
    assert out.count("valid/bleu") == 2
