"""What the processes of a training found, brought together."""

from typing import TypeVar

import torch.distributed

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


def end_together() -> None:
    """Waits for all ranks, then ends their talk: whoever goes on talking to a rank that has ended is aborted."""
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        torch.distributed.barrier()
        torch.distributed.destroy_process_group()
