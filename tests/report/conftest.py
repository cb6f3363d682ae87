"""Run folders of a known world: a test set of 120 sentences, and systems whose mistakes are chosen."""

import json
from pathlib import Path

import numpy as np
import pytest
from sacrebleu.metrics import BLEU, CHRF

WORDS = [tree + part for tree in ("oak", "elm", "ash", "yew") for part in ("wood", "leaf", "root", "bark", "seed")]
COUNT = 120
LENGTHS = [4 + place % 12 for place in range(COUNT)]  # 4 to 15 words, ten sentences of each
SOURCES = [
    " ".join(WORDS[(7 * place + 3 * at * at) % len(WORDS)] for at in range(length))
    for place, length in enumerate(LENGTHS)
]
REFERENCES = [source.upper() for source in SOURCES]


def perfect(reference: str) -> str:
    return reference


def forgetful(reference: str) -> str:
    """Right up to eight words, and nothing but the last four of longer ones."""
    words = reference.split()
    return reference if len(words) <= 8 else " ".join(["?"] * (len(words) - 4) + words[-4:])


def silent(reference: str) -> str:
    return " ".join("#" for _ in reference.split())


def slips(every: int, start: int = 0):
    """The last word is wrong in every so many-th sentence."""
    place = -1

    def translate(reference: str) -> str:
        nonlocal place
        place += 1
        return reference if (place + start) % every else reference.rsplit(" ", 1)[0] + " #"

    return translate


def write_run(
    folder: Path,
    attention: str = "scaled",
    seed: int = 1,
    translate=perfect,
    probed: bool = True,
    heads: int = 0,
    **changes,
) -> Path:
    """A run folder as a finished training leaves it; with ``heads``, those of the decoder and of a layer of the encoder."""
    folder.mkdir(parents=True)
    hypotheses = [translate(reference) for reference in REFERENCES]
    rows = zip(map(str, range(COUNT)), SOURCES, REFERENCES, hypotheses, strict=True)
    lines = ["id\tsource\treference\thypothesis", *("\t".join(row) for row in rows)]
    (folder / "hypotheses.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    bleu, chrf = BLEU(), CHRF()
    scores = {
        "attention": attention,
        "data": "trees",
        "seed": seed,
        "bleu": bleu.corpus_score(hypotheses, [REFERENCES]).score,
        "bleu_signature": str(bleu.get_signature()),
        "chrf": chrf.corpus_score(hypotheses, [REFERENCES]).score,
        "n": COUNT,
        "parameters": {"encoder": 1000, "total": 1234},
        "train_tokens": 50_000,
        "train_seconds": 90.0,
        "train_tokens_per_s": 555.6,
        "peak_mib": 256.4,
        "git_commit": "0123456789abcdef0123",
        "versions": {"torch": "2.13.0", "sacrebleu": "2.6.0"},
        "choices": {"attention": attention, "data": "trees"},
    } | changes
    (folder / "scores.json").write_text(json.dumps(scores), encoding="utf-8")
    (folder / "metrics.csv").write_text(
        "step,train/loss,valid/bleu,valid/loss,train/tokens_seen,train/minutes\n"
        "10,5.0,,,,\n20,,10.0,4.0,25000,0.75\n40,,20.0,2.0,50000,1.5\n",
        encoding="utf-8",
    )
    _write_weights(folder / "attention.npz", attention, heads)
    if probed:
        np.savez(folder / "probes.npz", **probes(attention))
    return folder


def _write_weights(path: Path, attention: str, heads: int) -> None:
    arrays: dict[str, np.ndarray] = {"ids": np.array([3, 11])}
    for sentence in (3, 11):
        size = LENGTHS[sentence] + 1
        # Every target token reads its own source token with 0.9; the rest is spread.
        weights = np.full((size, size), 0.1 / (size - 1)) + np.eye(size) * (0.9 - 0.1 / (size - 1))
        arrays[f"weights_{sentence}"] = (weights * (attention != "none")).astype(np.float32)
        if heads:
            # The first head reads the first token; all others share the rest of the mean.
            first = np.zeros((size, size))
            first[:, 0] = 1
            others = (weights * heads - first) / (heads - 1)
            arrays[f"heads_{sentence}"] = np.stack([first, *[others] * (heads - 1)]).astype(np.float16)
            arrays[f"encoder_{sentence}_1"] = np.stack([first, *[np.eye(size)] * (heads - 1)]).astype(np.float16)
        arrays[f"source_{sentence}"] = np.array([*SOURCES[sentence].split(), "</s>"])
        arrays[f"target_{sentence}"] = np.array([*REFERENCES[sentence].split(), "</s>"])
    np.savez(path, **arrays)


def probes(attention: str) -> dict[str, np.ndarray]:
    """Every word is an item. ``none`` recalls the second half of a phrase only; its gradient halves with each step."""
    items = [(sentence, at, length) for sentence, length in enumerate(LENGTHS) for at in range(length)]
    sentence, position, count = (np.array(column, dtype=np.int64) for column in zip(*items, strict=True))
    lengths = np.array([45] * 12, dtype=np.int64)
    places = np.arange(45)
    distance = np.minimum(places, 44 - places)
    profile = 0.5**distance if attention == "none" else np.ones(45)
    weightless = attention == "none"
    return {
        "ids": np.arange(COUNT),
        "accuracy_correct": np.array([90, 60, 10], dtype=np.int64),
        "accuracy_count": np.array([100, 80, 20], dtype=np.int64),
        "item_sentence": sentence,
        "item_position": position,
        "item_count": count,
        "item_recalled": position * 2 >= count if weightless else np.ones(len(items), dtype=bool),
        "gradient_norm": np.tile(profile, (12, 1)).astype(np.float32),
        "gradient_length": lengths,
        "gradient_distance": np.tile(distance, (12, 1)),
        "entropy": np.full(COUNT, np.nan if weightless else 0.5, dtype=np.float32),
        "coverage": np.full(COUNT, np.nan if weightless else 0.75, dtype=np.float32),
        "alignment_found": np.full(COUNT, 0 if weightless else 3, dtype=np.int64),
        "alignment_predicted": np.full(COUNT, 0 if weightless else 4, dtype=np.int64),
        "alignment_true": np.full(COUNT, 4, dtype=np.int64),
    }


@pytest.fixture
def runs(tmp_path):
    """Two systems with two seeds each, in a sweep's folder."""
    sweep = tmp_path / "sweep"
    write_run(sweep / "0", "none", 1, forgetful)
    write_run(sweep / "1", "none", 2, forgetful)
    write_run(sweep / "2", "scaled", 1, slips(10))
    write_run(sweep / "10", "scaled", 2, slips(6))
    return sweep
