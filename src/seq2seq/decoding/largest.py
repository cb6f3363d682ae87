"""The largest scores of every row, in less time than sorting all of them takes."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

BLOCK = 64
FEW = 8
"""Blocks are worth looking for if they are more than so many times the wanted numbers."""


def largest(
    scores: Float[Tensor, "R V"], count: int, block: int = BLOCK
) -> tuple[Float[Tensor, "R K"], Int[Tensor, "R K"]]:
    """The ``count`` largest of each row and where they are, as ``topk`` finds them.

    They lie in the blocks whose own largest are the largest, and only those are sorted; a ``nan`` is found, too.
    """
    whole = scores.shape[1] // block
    if whole <= FEW * count:
        return scores.topk(count, dim=1)
    blocks = scores[:, : whole * block].unflatten(1, (whole, block))
    chosen = blocks.amax(dim=2).topk(count, dim=1).indices  # [R, K]
    columns = (chosen.unsqueeze(2) * block + torch.arange(block, device=scores.device)).flatten(1)
    rest = torch.arange(whole * block, scores.shape[1], device=scores.device).expand(len(scores), -1)
    columns = torch.cat((columns, rest), dim=1)
    best, index = scores.gather(1, columns).topk(count, dim=1)
    return best, columns.gather(1, index)


def likeliest(scores: Float[Tensor, "R V"]) -> Float[Tensor, "R V"]:
    """Minus infinity for all but the largest of each row."""
    best, index = scores.max(dim=-1, keepdim=True)
    return torch.full_like(scores, -torch.inf).scatter(1, index, best)
