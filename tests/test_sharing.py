"""A shared model comes back the same, and its card says what was measured and nothing else."""

import json
import os
import shutil
import subprocess
import sys
import types

import pytest
import torch
import yaml

from seq2seq.cli.share import main
from seq2seq.errors import CheckpointError, ConfigError
from seq2seq.sharing import checkpoint_in, measured
from seq2seq.translator import Translator

LINES = ["Germany and France", "", "Euro"]


def test_a_model_goes_to_a_folder_and_comes_back(finished, tmp_path, capsys):
    main([str(finished), "--out", str(tmp_path / "tiny-scaled"), "--name", "someone/tiny-scaled"])
    assert capsys.readouterr().out == f"model and card: {tmp_path / 'tiny-scaled'}\n"
    names = {"README.md", "config.json", "model.ckpt", "scores.json"}
    assert {path.name for path in (tmp_path / "tiny-scaled").iterdir()} == names
    shared = Translator.from_pretrained(tmp_path / "tiny-scaled", longest=50)
    assert shared.longest == 50
    assert shared.translate(LINES) == Translator.load(finished / "checkpoints/best.ckpt").translate(LINES)
    # Weights and nothing of the optimizer.
    content = torch.load(tmp_path / "tiny-scaled/model.ckpt", weights_only=True)
    assert content.keys() == {"state_dict", "seq2seq"}
    recipe = json.loads((tmp_path / "tiny-scaled/config.json").read_text())["recipe"]
    assert recipe["_target_"] == "seq2seq.models.seq2seq.Seq2Seq"
    assert Translator.load(tmp_path / "tiny-scaled").translate(LINES) == Translator.load(finished).translate(LINES)
    # Shared again, it is the same model with the same scores.
    shared.save_pretrained(tmp_path / "again")
    for name in ("config.json", "scores.json"):
        assert (tmp_path / "again" / name).read_text() == (tmp_path / "tiny-scaled" / name).read_text()
    assert Translator.from_pretrained(str(tmp_path / "again")).translate(LINES) == shared.translate(LINES)


def test_the_card_quotes_the_scores(finished, tmp_path):
    main([str(finished), "--out", str(tmp_path / "card"), "--name", "someone/tiny"])
    scores = json.loads((finished / "scores.json").read_text())
    _, head, body = (tmp_path / "card/README.md").read_text().split("---\n", 2)
    head = yaml.safe_load(head)
    assert head["language"] == ["en", "de"]
    assert head["library_name"] == "seq2seq-attention"
    assert head["pipeline_tag"] == "translation"
    (entry,) = head["model-index"]
    assert entry["name"] == "tiny"
    found = {metric["name"]: metric["value"] for metric in entry["results"][0]["metrics"]}
    assert found == {"BLEU": round(scores["bleu"], 2), "chrF": round(scores["chrf"], 2)}
    assert f"| {scores['bleu']:.2f} | {scores['chrf']:.2f} | {scores['loss']:.3f} |" in body
    assert scores["bleu_signature"] in body
    assert f"{scores['truncated']} hypotheses were cut" in body
    for part in scores["by_source_length"]:
        assert f" {part['from']}-{part['to']} |" in body
        assert f" {part['bleu']:.1f} |" in body
    assert 'Translator.from_pretrained("someone/tiny")' in body
    assert "decoding `greedy`" in body
    assert "encoder `rnn`, decoder\n`parallel`, attention `scaled`" in body
    assert body.endswith("\n")


def test_weights_that_were_not_tested_have_no_scores(finished, tmp_path):
    # last.ckpt lies in the same run, whose scores are those of best.ckpt.
    main([str(finished / "checkpoints/last.ckpt"), "--out", str(tmp_path / "last")])
    assert not (tmp_path / "last/scores.json").exists()
    card = (tmp_path / "last/README.md").read_text()
    assert "These weights were not tested" in card
    assert "model-index" not in card
    assert Translator.from_pretrained(tmp_path / "last").translate([""]) == [""]


def test_scores_are_quoted_for_the_weights_that_have_them_alone(finished, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(finished, run)
    (run / "averaged").mkdir()
    for other in ("averaged/best.ckpt", "model.ckpt"):
        shutil.copy(run / "checkpoints/last.ckpt", run / other)
        assert measured(run / other) is None
    # What lies beside them does not stand for the run.
    assert checkpoint_in(run) == run / "checkpoints/best.ckpt"
    assert measured(checkpoint_in(run))["n"] == 40


def test_scores_of_another_version_leave_no_half_of_a_folder(finished, tmp_path):
    shutil.copytree(finished, tmp_path / "run")
    for text, words in (('{"bleu": 3}', "scores.json lacks languages, data"), ("[]", "lacks languages")):
        (tmp_path / "run/scores.json").write_text(text)
        with pytest.raises(SystemExit) as end:
            main([str(tmp_path / "run"), "--out", str(tmp_path / "new")])
        assert words in end.value.code
        assert not (tmp_path / "new").exists() or not any((tmp_path / "new").iterdir())


def test_what_cannot_be_shared_says_why(finished, tmp_path, capsys):
    best = finished / "checkpoints/best.ckpt"
    (tmp_path / "full").mkdir()
    (tmp_path / "full/file").write_text("mine")
    (tmp_path / "file").write_text("mine")
    for arguments, words in (
        ([finished, "--out", tmp_path / "full"], "exists already"),
        ([finished, "--out", tmp_path / "file"], "exists already"),
        ([finished, "--out", tmp_path / "file/below"], "cannot be written"),
        ([tmp_path / "full", "--out", tmp_path / "new"], "neither a checkpoint"),
        ([tmp_path / "gone.ckpt", "--out", tmp_path / "new"], "no checkpoint at"),
    ):
        with pytest.raises(SystemExit) as end:
            main([str(argument) for argument in arguments])
        assert end.value.code.startswith("error: ")
        assert words in end.value.code
    assert (tmp_path / "full/file").read_text() == (tmp_path / "file").read_text() == "mine"
    with pytest.raises(ConfigError, match="made of one checkpoint, found 2"):
        Translator.load(best, best).save_pretrained(tmp_path / "two")
    shutil.copytree(finished, tmp_path / "broken")
    (tmp_path / "broken/scores.json").write_text('{"bleu": ')
    with pytest.raises(CheckpointError, match=r"broken/scores\.json is no readable JSON"):
        Translator.load(tmp_path / "broken/checkpoints/best.ckpt").save_pretrained(tmp_path / "b")
    with pytest.raises(CheckpointError, match="no checkpoint at"):
        Translator.from_pretrained(tmp_path / "full")
    with pytest.raises(CheckpointError, match=r"best\.ckpt is a file: Translator\.load reads it"):
        Translator.from_pretrained(best)


def test_what_is_pushed_is_what_is_saved(finished, tmp_path, monkeypatch, capsys):
    # No hub can run here: what the library would send is copied instead.
    class Hub:
        def __init__(self, token=None):
            pass

        def create_repo(self, repo_id, private, exist_ok):
            return types.SimpleNamespace(repo_id=repo_id, private=private)

        def upload_folder(self, repo_id, folder_path, **rest):
            shutil.copytree(folder_path, tmp_path / repo_id)
            return f"https://hub/{repo_id}"

    monkeypatch.setattr("huggingface_hub.hub_mixin.HfApi", Hub)
    main([str(finished), "--push", "someone/tiny"])
    assert capsys.readouterr().out == "model and card: https://hub/someone/tiny\n"
    names = {"README.md", "config.json", "model.ckpt", "scores.json"}
    assert {path.name for path in (tmp_path / "someone/tiny").iterdir()} == names
    assert 'from_pretrained("someone/tiny")' in (tmp_path / "someone/tiny/README.md").read_text()


def test_a_hub_out_of_reach_is_one_sentence(finished, tmp_path):
    here = os.environ | {"HF_ENDPOINT": "http://127.0.0.1:9", "HF_HOME": str(tmp_path), "HF_TOKEN": "none"}
    script = "from seq2seq.translator import Translator; Translator.from_pretrained('someone/nothing')"
    loaded = subprocess.run([sys.executable, "-c", script], env=here, capture_output=True, text=True)
    assert loaded.returncode == 1
    last = loaded.stderr.strip().splitlines()[-1]
    assert last.startswith(
        "seq2seq.errors.CheckpointError: someone/nothing is no folder here, and the hub gives no such"
    )
    command = [sys.executable, "-m", "seq2seq.cli.share", finished, "--push", "someone/nothing"]
    pushed = subprocess.run(command, env=here, capture_output=True, text=True)
    assert pushed.returncode == 1
    assert pushed.stderr.startswith("error: --push someone/nothing failed (")
    assert pushed.stderr.count("\n") == 1
