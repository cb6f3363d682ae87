"""What is measured before training, and that measuring it changes nothing."""

import numpy as np
import torch

from seq2seq.probes.scores import score_statistics
from seq2seq.training.callbacks.clock import Clock
from seq2seq.training.callbacks.start import Start
from tests.training.conftest import make_task, make_trainer


def trained(data, folder, callbacks):
    task = make_task(data)
    make_trainer(folder, 1, callbacks).fit(task, data)
    return task


def test_it_sees_the_untrained_weights(make_data, tmp_path):
    data, start = make_data(), Start(sentences=16)
    expected = score_statistics(make_task(data).model.eval(), data.store.split("valid").batch(np.arange(16)))
    trained(data, tmp_path, [start])
    assert start.scores == expected._asdict()


def test_it_changes_nothing_of_the_run(make_data, tmp_path):
    with_it = trained(make_data(), tmp_path, [Clock(), Start()])
    without = trained(make_data(), tmp_path, [Clock()])
    for name, weight in with_it.model.state_dict().items():
        assert torch.equal(weight, without.model.state_dict()[name]), name


def test_an_attention_without_scores_says_nothing(make_data, tmp_path):
    data, start = make_data(), Start()
    make_trainer(tmp_path, 1, [start]).fit(make_task(data, "none"), data)
    assert start.scores is None
