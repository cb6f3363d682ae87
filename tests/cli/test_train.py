"""The main command, end to end, on the embedded data: what it prints, what it leaves behind, what it refuses to touch."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
import sacrebleu
import torch
from omegaconf import OmegaConf

from seq2seq.decoding.greedy import Greedy
from seq2seq.training.checkpoint import load
from seq2seq.translator import Translator
from tests.tiny import ATTENTIONS, SMALL


@pytest.fixture
def finished(command):
    outcome = command(*SMALL, "run_dir=run", "attention=scaled", "trainer.limit_test_batches=null")
    assert outcome.code == 0, outcome.error
    return outcome, Path("run")


def test_a_run_leaves_everything_that_is_promised(finished):
    outcome, run = finished
    names = {path.name for path in run.iterdir()}
    promised = {
        "config.yaml",
        "checkpoints",
        "metrics.csv",
        "hypotheses.tsv",
        "scores.json",
        "attention.npz",
        "attention",
    }
    assert promised | {"tensorboard"} <= names
    assert {"best.ckpt", "last.ckpt"} == {path.name for path in (run / "checkpoints").iterdir()}
    for word in ("BLEU", "chrF", "loss", "parameters", "minutes", "tokens/s", "files in"):
        assert word in outcome.out
    assert OmegaConf.load(run / "config.yaml").model.decoder.attention._target_.endswith("ScaledDotProductAttention")


def test_scores_are_those_of_the_hypotheses(finished):
    scores = json.loads((finished[1] / "scores.json").read_text())
    lines = (finished[1] / "hypotheses.tsv").read_text().removesuffix("\n").split("\n")
    rows = [line.split("\t") for line in lines]
    assert rows[0] == ["id", "source", "reference", "hypothesis"]
    assert [int(row[0]) for row in rows[1:]] == list(range(40))
    hypotheses, references = [row[3] for row in rows[1:]], [row[2] for row in rows[1:]]
    assert scores["bleu"] == pytest.approx(sacrebleu.corpus_bleu(hypotheses, [references]).score)
    assert scores["chrf"] == pytest.approx(sacrebleu.corpus_chrf(hypotheses, [references]).score)
    assert scores["n"] == 40 == sum(part["n"] for part in scores["by_source_length"])
    assert (scores["attention"], scores["data"], scores["seed"]) == ("scaled", "cldr", 1)
    assert scores["bleu_signature"].startswith("nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:")
    wanted = {"chrf_signature", "truncated", "parameters", "train_seconds", "train_tokens_per_s", "loss", "train_steps"}
    assert wanted <= set(scores)
    assert scores["train_steps"] == 6


def test_weights_are_kept_with_their_tokens(finished):
    with np.load(finished[1] / "attention.npz", allow_pickle=False) as arrays:
        ids = arrays["ids"].tolist()
        assert len(ids) == 2
        for sentence in ids:
            weights, source, target = (arrays[f"{name}_{sentence}"] for name in ("weights", "source", "target"))
            assert weights.shape == (len(target), len(source))
            assert source[-1] == "</s>"
            np.testing.assert_allclose(weights.sum(1), 1, atol=1e-5)
            assert (finished[1] / "attention" / f"{sentence}.png").read_bytes().startswith(b"\x89PNG")


def test_heads_and_self_attention_are_kept_beside_the_weights(command):
    settings = ("attention=multihead", "encoder=self_attention", "model=luong", "encoder_layers=2", "run_dir=run")
    outcome = command(*SMALL, *settings)
    assert outcome.code == 0, outcome.error
    with np.load("run/attention.npz", allow_pickle=False) as arrays:
        for sentence in arrays["ids"].tolist():
            weights, source = arrays[f"weights_{sentence}"], arrays[f"source_{sentence}"]
            np.testing.assert_allclose(arrays[f"heads_{sentence}"].mean(axis=0), weights, atol=2e-3)
            for layer in (1, 2):
                encoder = arrays[f"encoder_{sentence}_{layer}"]
                assert encoder.shape == (4, len(source), len(source))
                np.testing.assert_allclose(encoder.sum(axis=-1), 1, atol=5e-3)


def test_the_scores_before_training_are_kept_through_a_resume(finished, command):
    start = json.loads(Path("run/scores.json").read_text())["scores_at_start"]
    assert start["deviation"] > 0
    assert 0.9 < start["entropy"] <= 1
    assert start["gradient"] > 0
    assert command(*SMALL, "run_dir=run", "resume=last", "max_epochs=3").code == 0
    assert json.loads(Path("run/scores.json").read_text())["scores_at_start"] == start


def test_the_best_checkpoint_loads_by_itself(finished):
    loaded = load(finished[1] / "checkpoints" / "best.ckpt")
    assert (
        loaded.model.parameter_counts()["total"]
        == json.loads((finished[1] / "scores.json").read_text())["parameters"]["total"]
    )


def test_a_finished_run_is_not_overwritten(finished, command):
    before = {path: path.read_bytes() for path in Path("run").rglob("*") if path.is_file()}
    outcome = command(*SMALL, "run_dir=run", "attention=none")
    assert outcome.code != 0
    assert "run_dir=run already holds a run" in outcome.error
    assert {path: path.read_bytes() for path in Path("run").rglob("*") if path.is_file()} == before


def test_resume_goes_on_where_it_stopped(finished, command):
    outcome = command(*SMALL, "run_dir=run", "resume=last", "max_epochs=3")
    assert outcome.code == 0, outcome.error
    scores = json.loads(Path("run/scores.json").read_text())
    assert scores["train_steps"] == 9
    with open("run/metrics.csv") as file:
        epochs = {row["epoch"] for row in csv.DictReader(file) if row["valid/bleu"]}
    assert epochs == {"0", "1", "2"}


@pytest.mark.parametrize("attention", ATTENTIONS)
def test_every_attention_runs(command, attention):
    outcome = command(*SMALL, f"attention={attention}", "run_dir=run")
    assert outcome.code == 0, outcome.error
    assert json.loads(Path("run/scores.json").read_text())["attention"] == attention


def test_the_default_folder_is_dated_and_resume_last_finds_it(command):
    assert command(*SMALL).code == 0
    (run,) = Path("runs").iterdir()
    outcome = command(*SMALL, "resume=last", "max_epochs=3")
    assert outcome.code == 0, outcome.error
    assert [run] == list(Path("runs").iterdir())


def test_a_sweep_gives_each_cell_a_folder(command):
    outcome = command(*SMALL, "-m", "attention=none,scaled", "run_dir=sweep")
    assert outcome.code == 0, outcome.error
    found = {json.loads(path.read_text())["attention"] for path in Path("sweep").glob("*/scores.json")}
    assert found == {"none", "scaled"}


@pytest.mark.parametrize(
    "settings",
    [
        ("callbacks=ema",),
        ("debug=profiler", "trainer.limit_train_batches=3"),
        ("trainer.precision=bf16-mixed",),
        ("trainer.accumulate_grad_batches=2",),
        ("cell=lstm", "tying=none", "tokenizer=unigram", "tokenizer.joint=false"),
        ("scheduler=linear", "max_tokens=null"),
        ("scheduler=constant", "max_sentences=null", "max_tokens=500"),
        ("data.source=fr", "data.target=ja", "vocabulary_size=400"),
        ("callbacks.best=null", "callbacks.last=null"),
        ("encoder=rnn_reversed", "encoder_layers=2"),
        ("attention=initial_state", "encoder=rnn_forward"),
        ("model=bahdanau", "attention=additive", "cell=lstm"),
        ("model=luong", "attention=general", "model.decoder.input_feeding=false", "trainer.precision=bf16-mixed"),
        ("residual=true", "encoder_layers=2", "decoder_layers=3", "cell=rnn"),
        ("encoder=rnn_self_attention", "attention=none"),
        ("encoder=self_attention", "attention@encoder.attention=additive", "callbacks=ema"),
    ],
    ids=lambda settings: " ".join(settings),
)
def test_options_run_to_the_end(command, settings):
    outcome = command(*SMALL, "run_dir=run", *settings)
    assert outcome.code == 0, outcome.error
    assert Path("run/scores.json").is_file()


def test_the_averaged_weights_are_what_is_saved_as_best(command):
    assert command(*SMALL, "run_dir=run", "callbacks=ema").code == 0
    checkpoint = torch.load("run/checkpoints/best.ckpt", weights_only=True)
    assert set(load("run/checkpoints/best.ckpt").model.state_dict()) == {
        name.removeprefix("model.") for name in checkpoint["state_dict"]
    }
    averaged, current = checkpoint["state_dict"], checkpoint["current_model_state"]
    assert any(not torch.equal(averaged[name], current[name]) for name in averaged)
    # They are what was tested, too.
    with open("run/hypotheses.tsv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    decoding = OmegaConf.load("run/config.yaml").decoding
    search = Greedy(decoding.cap_ratio, decoding.cap_extra)
    found = Translator.load("run", search=search).translate([row["source"] for row in rows])
    assert found == [row["hypothesis"] for row in rows]


def test_help_is_readable(command):
    outcome = command("--help")
    assert outcome.code == 0
    for word in ("attention=", "data=", "run_dir", "resume", "python train.py"):
        assert word in outcome.out
