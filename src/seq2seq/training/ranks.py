"""What the processes of a training found, brought together."""

import torch.distributed


def merged(part: dict) -> dict:
    """The entries of all ranks, on every rank; all of them must call it. Alone, a process gets back its own.

    Args:
        part: what this rank found, of any type that can be pickled; no two ranks use one key.
    """
    if not (torch.distributed.is_available() and torch.distributed.is_initialized()):
        return part
    parts: list[dict] = [{} for _ in range(torch.distributed.get_world_size())]
    torch.distributed.all_gather_object(parts, part)
    return {key: value for piece in parts for key, value in piece.items()}
