"""Tiny models and batches that several folders of tests build on."""

from pathlib import Path

import torch
import yaml

from seq2seq.models.recipe import build
from seq2seq.models.seq2seq import Seq2Seq
from seq2seq.types import BOS, EOS, PAD, Batch

CONF = Path(__file__).parents[1] / "conf"
ATTENTIONS = sorted(path.stem for path in (CONF / "attention").glob("*.yaml"))
MODELS = sorted(path.stem for path in (CONF / "model").glob("*.yaml"))
WITHOUT_WEIGHTS = ("none", "initial_state")
"""Those that look at no token; their weights are zeros."""
VOCABULARY = 20
SMALL = ("debug=fast", "data.train_size=300", "data.valid_size=40", "data.test_size=40", "vocabulary_size=300")
"""Settings with which `train.py` takes seconds."""


def tiny_recipe(
    attention: str = "scaled", cell: str = "gru", layers: int = 2, model: str = "parallel", size: int = 8, **changes
) -> dict:
    """A recipe as `conf/model/` gives it, with states of ``size`` and all else small."""
    target = yaml.safe_load((CONF / "model" / f"{model}.yaml").read_text())["decoder"]["_target_"]
    return {
        "_target_": "seq2seq.models.seq2seq.Seq2Seq",
        "embedding_size": 6,
        "tying": "all",
        "encoder": {
            "_target_": "seq2seq.models.encoder.RecurrentEncoder",
            "_partial_": True,
            "cell": cell,
            "hidden_size": size,
            "layers": 1,
        },
        "decoder": {
            "_target_": target,
            "_partial_": True,
            "attention": yaml.safe_load((CONF / "attention" / f"{attention}.yaml").read_text()),
            "cell": cell,
            "hidden_size": size,
            "layers": layers,
        },
    } | changes


def tiny_model(attention: str = "scaled", seed: int = 0, **settings) -> Seq2Seq:
    torch.manual_seed(seed)
    recipe = tiny_recipe(attention, **settings)
    return build(recipe, source_vocabulary=VOCABULARY, target_vocabulary=VOCABULARY, joint=True).eval()


def padded(rows: list[list[int]]) -> torch.Tensor:
    width = max(map(len, rows))
    return torch.tensor([row + [PAD] * (width - len(row)) for row in rows])


def loss_of(model: Seq2Seq, batch: Batch) -> torch.Tensor:
    """Mean cross-entropy of the real target tokens."""
    logits = model.output(model(batch.source, batch.inputs).features).float()
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), batch.targets.flatten(), ignore_index=PAD)


def batch_of(sources: list[list[int]], targets: list[list[int]]) -> Batch:
    tokens = sum(len(target) + 1 for target in targets)
    return Batch(
        torch.arange(len(sources)),
        padded([[*source, EOS] for source in sources]),
        padded([[BOS, *target] for target in targets]),
        padded([[*target, EOS] for target in targets]),
        torch.tensor(float(tokens)),
    )
