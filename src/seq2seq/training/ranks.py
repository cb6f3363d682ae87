"""What the processes of a training found, brought together."""

import re
from typing import TypeVar

import torch.distributed

from seq2seq.errors import TrainingError

LOST = re.compile(r"(?i)connection (closed|reset)|broken pipe|socket|gloo|nccl|timed out")
"""How the libraries call it."""
Part = TypeVar("Part")


def gathered(part: Part) -> list[Part]:
    """The parts of all ranks in their order, on every rank; all of them must call it. Alone, a process gets back its own.

    Args:
        part: of any type that can be pickled.
    """
    if not (torch.distributed.is_available() and torch.distributed.is_initialized()):
        return [part]
    parts = [part] * torch.distributed.get_world_size()
    torch.distributed.all_gather_object(parts, part)
    return parts


def merged(part: dict) -> dict:
    """The entries of all ranks, on every rank; all of them must call it.

    Args:
        part: what this rank found; no two ranks use one key.
    """
    return {key: value for piece in gathered(part) for key, value in piece.items()}


def process_lost(error: RuntimeError, processes: int) -> TrainingError | None:
    """What to say where the talk with another process broke off; None if something else went wrong.

    Args:
        error: as torch raised it.
        processes: of the training.
    """
    if processes < 2 or not LOST.search(str(error)):
        return None
    return TrainingError(
        "another process of this training is gone: either it has said why, or it was killed, as by a system without memory; "
        "go on with resume=last"
    )


def end_together() -> None:
    """Waits for all ranks, then ends their talk: whoever goes on talking to a rank that has ended is aborted."""
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        torch.distributed.barrier()
        torch.distributed.destroy_process_group()
