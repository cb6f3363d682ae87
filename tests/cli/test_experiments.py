"""Every experiment from nothing to its report, in a size that takes seconds."""

import json
from pathlib import Path

import pytest

from tests.data.toy import counting
from tests.tiny import CONF, SMALL

CAPTIONS = {
    "multi30k": "data.path",
    "multi30k_best": "data.path",
    "search": "data.path",
    "joined": "data.corpus.path",
}
"""Experiments on Multi30k, and the setting that names the folder to read instead."""

FEWER = {
    "bottleneck": ["attention=none,scaled"],
    "multi30k": ["attention=none,scaled"],
    "joined": ["attention=additive"],
    "length_cap": ["attention=additive"],
    "width": ["hidden_size=32,64", "attention=scaled"],
    "baselines": ["encoder=rnn,rnn_reversed", "attention=none"],
    "family": ["attention=initial_state,location,multihead"],
    "placements": ["model=parallel,bahdanau"],
    "scaling": ["attention.attention_size=32"],
    "cells": ["cell=lstm,rnn", "attention=scaled"],
    "search": [
        "hydra.sweeper.n_trials=2",
        *(f"~hydra.sweeper.params.{name}" for name in ("vocabulary_size", "hidden_size")),
    ],
}
"""Two or three cells of each."""


@pytest.fixture
def captions(tmp_path):
    """A folder with the layout of Multi30k."""
    folder = tmp_path / "captions"
    folder.mkdir()
    for name, first, count in (("train", 0, 300), ("val", 300, 60), ("test", 360, 60)):
        lines = [json.dumps({"en": pair.source, "de": pair.target}) for pair in counting(count, first)]
        (folder / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
    return folder


@pytest.mark.parametrize("name", sorted(path.stem for path in (CONF / "experiment").glob("*.yaml")))
def test_experiment(command, captions, name):
    if name == "search":
        pytest.importorskip("hydra_plugins.hydra_optuna_sweeper", reason="the extra 'optuna' is not installed")
    # The smallest vocabulary that the number words fill.
    data = ("vocabulary_size=60", f"{CAPTIONS[name]}={captions}") if name in CAPTIONS else SMALL[1:]
    outcome = command(f"experiment={name}", "debug=fast", "seed=1", "run_dir=sweep", *data, *FEWER.get(name, []))
    assert outcome.code == 0, outcome.error
    scores = [json.loads(path.read_text()) for path in Path("sweep").glob("*/scores.json")]
    cells = [folder for folder in Path("sweep").iterdir() if folder.is_dir() and folder.name != "report"]
    assert len(scores) == len(cells) > 1
    assert "report: sweep/report/index.html" in outcome.out
    lengths = Path("sweep/report/tables/bleu_by_length.csv").read_text()
    assert lengths.startswith("items," if name == "joined" else "words,")
    page = Path("sweep/report/index.html").read_text()
    assert all(name in page for name in {score["attention"] for score in scores})
