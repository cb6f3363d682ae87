"""The checkpoint from which a training goes on: there, whole, of this model and of this run."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import torch

from seq2seq.cli.sweep import in_sweep
from seq2seq.errors import CheckpointError, ConfigError
from seq2seq.report.settings import flat
from seq2seq.training.checkpoint import KEY, read, same_tokenizer


class Resumed(NamedTuple):
    """A checkpoint, and where it lies."""

    path: Path
    content: dict[str, Any]


def checkpoint_to_resume(resume: str | None, folder: Path) -> Resumed | None:
    """The checkpoint that ``resume`` names; None where nothing is to be resumed.

    Args:
        resume: ``last``, a path, or None. A sweep goes on inside the cell where it was stopped with ``last`` as without.
        folder: of the run.

    Raises:
        CheckpointError: there is none, or none that a training can go on from.
        ConfigError: all cells of a sweep are to go on from one checkpoint.
    """
    last = folder / "checkpoints" / "last.ckpt"
    if in_sweep():
        if resume not in (None, "last") or (folder.parent / "checkpoints").is_dir():
            raise ConfigError(
                f"resume={resume} is for one run, and this is a sweep, which goes on by itself: give the same command with "
                "run_dir=DIR, its folder, and without resume"
            )
        resume = "last" if last.is_file() else None
    if resume is None:
        return None
    path = last if resume == "last" else Path(resume)
    if resume == "last" and not last.is_file():
        raise CheckpointError(
            f"{folder} holds no checkpoint to resume from: name the folder of a run or, where a training was ended before "
            "its first checkpoint, remove the folder and start it again without resume"
        )
    checkpoint = read(path)
    if "optimizer_states" in checkpoint and not (
        isinstance(checkpoint.get("loops"), dict)
        and "fit_loop" in checkpoint["loops"]
        and isinstance(checkpoint.get("global_step"), int)
    ):
        raise CheckpointError(f"{path} does not say how far its training was: it is damaged; use another file")
    if "optimizer_states" not in checkpoint:
        raise CheckpointError(
            f"{path} holds weights alone, as callbacks=recent, seq2seq-average and seq2seq-share write them: a training "
            "goes on from a checkpoint such as RUN_DIR/checkpoints/last.ckpt"
        )
    return Resumed(path, checkpoint)


def check_own_folder(path: Path, folder: Path) -> None:
    """Refuses to go on in another folder, without the best checkpoint so far.

    Raises:
        CheckpointError: the checkpoint lies in another run's folder.
    """
    own = path.absolute().parent.parent
    if (own / "config.yaml").is_file() and own.resolve() != folder.resolve():
        raise CheckpointError(
            f"resume={path} belongs to the run in {own}, whose best checkpoint and results lie there: go on with "
            f"run_dir={own} resume=last, or copy that folder and go on in the copy"
        )


def check_same_model(resumed: Resumed, model: torch.nn.Module, packed: dict[str, Any]) -> None:
    """Refuses the weights of another model, or weights that were learned for other pieces.

    Args:
        resumed: the checkpoint.
        model: that is to go on.
        packed: what its own checkpoints will say of it, as ``pack`` has it.

    Raises:
        CheckpointError: they differ; names the first difference.
    """
    path, checkpoint = resumed
    saved = {name.removeprefix("model."): value.shape for name, value in checkpoint["state_dict"].items()}
    wanted = {name: value.shape for name, value in model.state_dict().items()}
    different = sorted(name for name in saved.keys() | wanted.keys() if saved.get(name) != wanted.get(name))
    if different:
        name = different[0]
        raise CheckpointError(
            f"resume={path} holds another model: {len(different)} weights differ, the first {name} is "
            f"{_shape(saved.get(name))} there and {_shape(wanted.get(name))} here; resume with the settings of its run"
        )
    found, here = (flat(json.loads(part["recipe"])) for part in (checkpoint[KEY], packed[KEY]))
    for name in sorted(found.keys() | here.keys()):
        if found.get(name) != here.get(name):
            raise CheckpointError(
                f"resume={path} holds another model: {name} is {found.get(name, 'missing')} there and "
                f"{here.get(name, 'missing')} here; resume with the settings of its run"
            )
    for side in ("source_tokenizer", "target_tokenizer"):
        if not same_tokenizer(checkpoint[KEY][side], packed[KEY][side]):
            raise CheckpointError(
                f"resume={path} was trained with another {side.replace('_', ' ')}, whose numbers stand for other pieces; "
                "resume with the data and the tokenizer settings of its run"
            )


def _shape(shape: torch.Size | None) -> str:
    return "missing" if shape is None else "x".join(map(str, shape))
