"""Self-contained checkpoints: weights, tokenizers and the model's recipe, as tensors and plain data.

They load with ``weights_only=True``: nothing in them is code, and a recipe is checked before anything is built from it.
"""

import json
import pickle
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch

from seq2seq.data.tokenizer import Tokenizer, Tokenizers
from seq2seq.errors import CheckpointError, UserError
from seq2seq.models.recipe import TRUSTED, build
from seq2seq.models.seq2seq import Seq2Seq

KEY = "seq2seq"
FORMAT = 1


class Loaded(NamedTuple):
    """A model in evaluation mode and what it reads and writes."""

    model: Seq2Seq
    tokenizers: Tokenizers


def pack(recipe: Mapping[str, Any], tokenizers: Tokenizers) -> dict[str, Any]:
    """What this project adds to a Lightning checkpoint."""
    return {
        KEY: {
            "format": FORMAT,
            "recipe": json.dumps(recipe),
            "source_tokenizer": _tensor(tokenizers.source.model),
            "target_tokenizer": None if tokenizers.joint else _tensor(tokenizers.target.model),
        }
    }


def read(path: str | Path) -> dict[str, Any]:
    """The raw content of a checkpoint of this project.

    Raises:
        CheckpointError: the file is missing, broken, or of another program or format.
    """
    path = Path(path)
    if not path.is_file():
        raise CheckpointError(f"no checkpoint at {path}: expected a file such as RUN_DIR/checkpoints/best.ckpt")
    try:
        checkpoint = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        # torch raises many kinds here (RuntimeError, UnpicklingError, EOFError, KeyError...), all saying the same.
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        if isinstance(error, pickle.UnpicklingError):
            # torch then advises to load it all the same, which would run whatever is in it.
            reason = "not of tensors and plain data alone"
        raise CheckpointError(
            f"{path} is no readable checkpoint ({reason[:200]}): it may be truncated or of another kind; use another file"
        ) from error
    if not isinstance(checkpoint, dict) or not isinstance(checkpoint.get(KEY), dict):
        raise CheckpointError(f"{path} is a checkpoint, but not one of this project: it has no part named {KEY!r}")
    found = checkpoint[KEY].get("format")
    if not isinstance(found, int) or found != FORMAT:
        raise CheckpointError(f"{path} has format {str(found)[:20]}, this version reads format {FORMAT}")
    if fault := _fault(checkpoint):
        raise CheckpointError(f"{path} is damaged: {fault}; use another file")
    return checkpoint


def _fault(checkpoint: Mapping[str, Any]) -> str | None:
    """What a checkpoint lacks of what every one holds, or what is of the wrong kind."""
    weights, part = checkpoint.get("state_dict"), checkpoint[KEY]
    if not isinstance(weights, dict) or not all(
        isinstance(name, str) and isinstance(value, torch.Tensor) for name, value in weights.items()
    ):
        return "its state_dict holds no weights by name"
    for name, value in weights.items():
        if value.layout is not torch.strided or value.device.type != "cpu":
            return f"the weight {name} is no plain tensor"
        if value.is_floating_point() and not value.isfinite().all():
            return f"the weight {name} holds numbers that are none (nan or inf)"
    try:
        recipe = json.loads(part.get("recipe"))
    except (TypeError, ValueError, RecursionError):
        recipe = None
    if not isinstance(recipe, dict):
        return "its recipe is no JSON of an object"
    if not isinstance(part.get("source_tokenizer"), torch.Tensor):
        return "its source_tokenizer is missing or holds no bytes"
    if not isinstance(part.get("target_tokenizer", ""), torch.Tensor | None):
        return "its target_tokenizer is missing or holds no bytes"
    return None


def load(path: str | Path, trusted: Sequence[str] = TRUSTED) -> Loaded:
    """The model of a checkpoint, ready to translate.

    Args:
        path: a file that training wrote.
        trusted: import paths that its recipe may name begin so; add your own package for a model with parts of your own.

    Raises:
        CheckpointError: it cannot be read, its recipe names something else, or its weights do not fit.
    """
    checkpoint = read(path)
    part = checkpoint[KEY]
    try:
        tokenizers = _tokenizers(part)
        recipe = json.loads(part["recipe"])
        model = build(recipe, trusted, **tokenizers.sizes())
        if not isinstance(model, Seq2Seq):
            raise CheckpointError(f"its recipe makes a {type(model).__name__}, where a Seq2Seq is expected")
        weights = checkpoint["state_dict"].items()
        model.load_state_dict({name.removeprefix("model."): value for name, value in weights})
    except (UserError, AttributeError, KeyError, TypeError, ValueError, RuntimeError) as error:
        raise CheckpointError(f"{path} cannot be used: {' '.join(str(error).split())[:400]}") from error
    return Loaded(model.eval(), tokenizers)


def average(paths: Sequence[str | Path]) -> dict[str, Any]:
    """The mean of the weights of several checkpoints of one run, or of runs alike, as a checkpoint that ``load`` reads.

    Source: Vaswani et al. 2017, arXiv:1706.03762, section 6.1, who average the last ones of a training.

    Raises:
        CheckpointError: one cannot be read, or two hold other models or vocabularies.
    """
    paths = [Path(path) for path in paths]
    mean: dict[str, torch.Tensor] = {}
    first: dict[str, Any] = {}
    for path in paths:
        checkpoint = read(path)
        weights, part = checkpoint["state_dict"], checkpoint[KEY]
        if not first:
            first = part
            mean = {name: value.double() / len(paths) for name, value in weights.items()}
            kinds = {name: value.dtype for name, value in weights.items()}
            continue
        if (
            {name: value.shape for name, value in weights.items()}
            != {name: value.shape for name, value in mean.items()}
            or part["recipe"] != first["recipe"]
            or not all(same_tokenizer(part[side], first[side]) for side in ("source_tokenizer", "target_tokenizer"))
        ):
            raise CheckpointError(
                f"{path} and {paths[0]} hold other models or vocabularies: average checkpoints of one run, or of runs with "
                "the same settings and data"
            )
        for name, value in weights.items():
            mean[name] += value.double() / len(paths)
    return {"state_dict": {name: value.to(kinds[name]) for name, value in mean.items()}, KEY: first}


def same_tokenizer(one: torch.Tensor | None, other: torch.Tensor | None) -> bool:
    """Whether two checkpoints keep the same bytes; None where both sides share one."""
    return one is other if one is None or other is None else torch.equal(one, other)


def _tensor(data: bytes) -> torch.Tensor:
    return torch.frombuffer(bytearray(data), dtype=torch.uint8)


def _tokenizers(part: Mapping[str, Any]) -> Tokenizers:
    source = Tokenizer(part["source_tokenizer"].numpy().tobytes())
    joint = part["target_tokenizer"] is None
    target = source if joint else Tokenizer(part["target_tokenizer"].numpy().tobytes())
    return Tokenizers(source, target, joint)
