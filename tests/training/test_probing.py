"""The probes as a run makes them: complete for every attention, the same for every number of processes."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from lightning import Trainer

from seq2seq.data.corpus import Pair, Span
from seq2seq.data.datamodule import TranslationData
from seq2seq.data.store import TokenizerSettings
from seq2seq.errors import ConfigError
from seq2seq.models.recipe import build
from seq2seq.probes.accuracy import token_hits
from seq2seq.probes.gradients import source_gradients
from seq2seq.training.callbacks.clock import Clock
from seq2seq.training.callbacks.probing import Probing
from seq2seq.training.callbacks.results import Results
from tests.tiny import ATTENTIONS, WITHOUT_WEIGHTS, tiny_recipe
from tests.training.conftest import Numbers, make_task, make_trainer

N, GRADIENTS = 16, 5
WITH_WEIGHTS = [attention for attention in ATTENTIONS if attention not in WITHOUT_WEIGHTS]


class Items(Numbers):
    """The same lists with their true alignment, every word an item; the target, and the alignment by it, is backwards."""

    def identity(self):
        return {"items": 1, **self.sizes}

    def pairs(self, split):
        for pair in super().pairs(split):
            source, target = pair.source.split(), pair.target.split()[::-1]
            ranges = zip(_ranges(source)[::-1], _ranges(target), strict=True)
            yield Pair(" ".join(source), " ".join(target), tuple(Span(*s, *t) for s, t in ranges))


def _ranges(words):
    starts = np.cumsum([0, *(len(word) + 1 for word in words)])[:-1].tolist()
    return [(start, start + len(word)) for start, word in zip(starts, words, strict=True)]


def data_of(corpus, folder):
    data = TranslationData(
        corpus=corpus,
        tokenizer=TokenizerSettings(kind="word", vocabulary_size=16, joint=True, normalization="identity"),
        max_length=None,
        max_tokens=200,
        max_sentences=8,
        cache_dir=str(folder / "cache"),
        seed=0,
        evaluation_max_sentences=6,
    )
    data.prepare_data()
    data.setup()
    return data


def callbacks_of(folder):
    facts = {"attention": "a", "data": "b", "seed": 1}
    return [Clock(), Results(str(folder), facts, sentences=3, bins=2), Probing(str(folder), GRADIENTS)]


def outcome_of(folder, attention="scaled", corpus=None, cell="gru"):
    """What a test of an untrained model leaves: the arrays, the scores, and how they came about."""
    data = data_of(corpus or Items(), folder)
    task = make_task(data, attention)
    if cell != "gru":
        task.model = build(tiny_recipe(attention, cell=cell), **data.tokenizers.sizes())
    make_trainer(folder, 1, callbacks_of(folder)).test(task, data, verbose=False)
    return arrays_in(folder), json.loads((folder / "scores.json").read_text()), task, data


def arrays_in(folder):
    with np.load(Path(folder) / "probes.npz", allow_pickle=False) as arrays:
        return dict(arrays)


@pytest.mark.parametrize("cell", ["gru", "lstm"])
@pytest.mark.parametrize("corpus", [Numbers, Items])
@pytest.mark.parametrize("attention", ATTENTIONS)
def test_every_attention_leaves_everything(tmp_path, attention, corpus, cell):
    arrays, scores, _, data = outcome_of(tmp_path, attention, corpus(), cell)
    lengths = data.store.split("test").lengths
    items = int((lengths[:, 0] - 1).sum()) if corpus is Items else 0
    longest, widest = lengths[:, 1].max(), lengths[:, 0].max()
    assert {name: (array.dtype.name, array.shape) for name, array in arrays.items()} == {
        "ids": ("int64", (N,)),
        "accuracy_correct": ("int64", (longest,)),
        "accuracy_count": ("int64", (longest,)),
        "item_sentence": ("int64", (items,)),
        "item_position": ("int64", (items,)),
        "item_count": ("int64", (items,)),
        "item_recalled": ("bool", (items,)),
        "gradient_norm": ("float32", (GRADIENTS, widest)),
        "gradient_length": ("int64", (GRADIENTS,)),
        "gradient_distance": ("int64", (GRADIENTS, widest)),
        "entropy": ("float32", (N,)),
        "coverage": ("float32", (N,)),
        "alignment_found": ("int64", (N,)),
        "alignment_predicted": ("int64", (N,)),
        "alignment_true": ("int64", (N,)),
    }
    assert arrays["ids"].tolist() == list(range(N))
    assert arrays["accuracy_count"].tolist() == [(lengths[:, 1] > place).sum() for place in range(longest)]
    assert (arrays["accuracy_correct"] <= arrays["accuracy_count"]).all()
    assert np.isnan(arrays["entropy"]).all() == np.isnan(arrays["coverage"]).all() == (attention in WITHOUT_WEIGHTS)
    assert (arrays["alignment_found"] <= arrays["alignment_predicted"]).all()
    assert (arrays["alignment_predicted"] <= arrays["alignment_true"]).all()
    assert arrays["alignment_true"].sum() == items
    assert arrays["alignment_predicted"].sum() == (0 if attention in WITHOUT_WEIGHTS else items)
    summary = scores["probes"]
    assert set(summary) == {"alignment_error_rate", "entropy", "coverage", "item_recall"}
    assert [name for name, value in summary.items() if value is None] == [
        name
        for name, missing in {
            "alignment_error_rate": attention in WITHOUT_WEIGHTS or not items,
            "entropy": attention in WITHOUT_WEIGHTS,
            "coverage": attention in WITHOUT_WEIGHTS,
            "item_recall": not items,
        }.items()
        if missing
    ]
    assert all(0 <= value <= (math.log(widest) if name == "entropy" else 1) for name, value in summary.items() if value)


def test_items_are_numbered_in_source_order(tmp_path):
    arrays, _, _, data = outcome_of(tmp_path)
    for sentence, words in enumerate(data.store.split("test").lengths[:, 0] - 1):
        here = arrays["item_sentence"] == sentence
        assert arrays["item_position"][here].tolist() == list(range(words))
        assert arrays["item_count"][here].tolist() == [words] * words
        assert arrays["alignment_true"][sentence] == words


def test_items_are_recalled_as_the_hypotheses_say(tmp_path):
    arrays, scores, _, data = outcome_of(tmp_path)
    lines = (tmp_path / "hypotheses.tsv").read_text().splitlines()[1:]
    in_order = 0
    for sentence, line in enumerate(lines):
        hypothesis = line.split("\t")[3].split()
        words = data.store.split("test").target_text(sentence).split()[::-1]  # in the order of the source
        found = arrays["item_recalled"][arrays["item_sentence"] == sentence].tolist()
        assert sum(found) == sum(min(words.count(word), hypothesis.count(word)) for word in set(words))
        # Where a word stands twice, which of the two is recalled is a matter of order.
        if len(set(words)) == len(words):
            assert found == [word in hypothesis for word in words]
            in_order += found != found[::-1]
    assert in_order > 0
    assert scores["probes"]["item_recall"] == pytest.approx(arrays["item_recalled"].mean())


@pytest.mark.parametrize("attention", WITH_WEIGHTS)
def test_the_arrays_are_those_of_the_sentences_alone(tmp_path, attention):
    arrays, _, task, data = outcome_of(tmp_path, attention)
    test, model = data.store.split("test"), task.model.eval()
    correct = np.zeros_like(arrays["accuracy_correct"])
    for sentence in range(N):
        batch = test.batch(np.array([sentence]))
        with torch.no_grad():
            decoded = model(batch.source, batch.inputs)
            hits = token_hits(model, decoded, batch.targets)[0].numpy()
        correct[: len(hits)] += hits
        weights = decoded.weights[0].numpy().astype(float)  # [T, S]
        entropy = -(weights * np.log(np.maximum(weights, 1e-30))).sum(1).mean()
        assert arrays["entropy"][sentence] == pytest.approx(entropy, abs=1e-4)
        assert arrays["coverage"][sentence] == pytest.approx(np.minimum(weights.sum(0), 1).mean(), abs=1e-4)
        # A word is a token here, and item i stands at i on the left and at T - 2 - i on the right, before EOS.
        links = weights[-2::-1, :-1].argmax(1)
        assert arrays["alignment_found"][sentence] == (links == np.arange(len(links))).sum()
    assert arrays["accuracy_correct"].tolist() == correct.tolist()


def test_gradients_are_those_of_sentences_from_the_shortest_to_the_longest(tmp_path):
    arrays, _, task, data = outcome_of(tmp_path)
    test = data.store.split("test")
    lengths = test.lengths[:, 0]
    assert {lengths.min(), lengths.max()} <= set(arrays["gradient_length"].tolist())
    everyone = [source_gradients(task.model.eval(), test.batch(np.array([place])))[0].numpy() for place in range(N)]
    measured = (arrays[f"gradient_{name}"] for name in ("norm", "distance", "length"))
    for norms, distances, length in zip(*measured, strict=True):
        assert np.isnan(norms[length:]).all()
        assert distances[:length].tolist() == [min(place, length - 1 - place) for place in range(length)]
        assert (distances[length:] == -1).all()
        assert any(len(one) == length and np.allclose(norms[:length], one, rtol=1e-3, atol=1e-6) for one in everyone)
    assert all(parameter.grad is None for parameter in task.parameters())


def test_part_of_a_test_split_and_no_gradients(tmp_path):
    data = data_of(Items(), tmp_path)
    probing = Probing(str(tmp_path), gradient_sentences=0)
    make_trainer(tmp_path, 1, [probing], limit_test_batches=1).test(make_task(data), data, verbose=False)
    arrays = arrays_in(tmp_path)
    assert arrays["ids"].shape == arrays["entropy"].shape == (6,)
    assert arrays["gradient_norm"].shape == (0, 0)
    assert set(arrays["item_sentence"]) <= set(arrays["ids"])


def test_a_negative_number_of_sentences_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="gradient_sentences=-1"):
        Probing(str(tmp_path), -1)


def test_scores_say_on_what_they_were_made_and_nothing_of_probes_that_did_not_run(tmp_path):
    data = data_of(Items(), tmp_path)
    make_trainer(tmp_path, 1, callbacks_of(tmp_path)[:2]).test(make_task(data), data, verbose=False)
    scores = json.loads((tmp_path / "scores.json").read_text())
    assert scores["probes"] is None
    assert {"peak_mib", "versions", "git_commit"} <= set(scores)
    assert not (tmp_path / "probes.npz").exists()


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_two_processes_find_what_one_finds(tmp_path, monkeypatch):
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")
    found = []
    for processes in (1, 2):
        folder = tmp_path / str(processes)
        folder.mkdir()
        data = data_of(Items(), tmp_path)
        strategy = {"strategy": "ddp_spawn"} if processes > 1 else {}
        trainer = Trainer(
            accelerator="cpu",
            devices=processes,
            callbacks=callbacks_of(folder),
            default_root_dir=folder,
            logger=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            use_distributed_sampler=False,
            **strategy,
        )
        trainer.test(make_task(data), data, verbose=False)
        found.append((arrays_in(folder), json.loads((folder / "scores.json").read_text())["probes"]))
    (alone, summary), (shared, shared_summary) = found
    assert set(alone) == set(shared)
    for name, array in alone.items():
        np.testing.assert_allclose(shared[name], array, rtol=1e-4, atol=1e-6, err_msg=name)
    assert shared_summary == pytest.approx(summary, rel=1e-4)
