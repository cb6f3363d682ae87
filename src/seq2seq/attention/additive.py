"""Additive attention: ``score(q, k) = v . tanh(W q + U k)``.

Source: Bahdanau et al. 2014, "Neural Machine Translation by Jointly Learning to Align and Translate",
arXiv:1409.0473, appendix A.1.2.
Cost: B*T*S*A multiplications and divisions, against one matrix product for the multiplicative kinds; computed twice in
training, so that no more than one target position of them is held in memory. It has a gradient, and no second one.
"""

from collections.abc import Iterator
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from seq2seq.attention.base import Attention, compared_size

KEPT = "powers_of_additive_attention"
"""What the keys of a search carry."""
LARGEST = 40.0
"""``e^2x`` of it and its inverse are still single-precision numbers."""


class AdditiveAttention(Attention):
    """A small feed-forward network compares every query with every key.

    Args:
        attention_size: ``A``, hidden units of that network; the query's size if not given.
    """

    def __init__(self, query_size: int, memory_size: int, attention_size: int | None = None, dropout: float = 0.0):
        super().__init__(query_size, memory_size, dropout)
        attention_size = compared_size(attention_size, query_size)
        self.query = nn.Linear(query_size, attention_size, bias=False)
        self.key = nn.Linear(memory_size, attention_size, bias=False)
        self.energy = nn.Linear(attention_size, 1, bias=False)

    def project_keys(self, states: Float[Tensor, "B S C"]) -> Float[Tensor, "B S A"]:
        return self.key(states)

    def score(self, queries: Float[Tensor, "B T D"], keys: Float[Tensor, "B S A"]) -> Float[Tensor, "B T S"]:
        return additive_scores(self.query(queries), keys, self.energy.weight[0])


def additive_scores(
    queries: Float[Tensor, "B T A"], keys: Float[Tensor, "B S A"], weight: Float[Tensor, "A"]
) -> Float[Tensor, "B T S"]:
    """``weight . tanh(query + key)`` of every query with every key."""
    if torch.onnx.is_in_onnx_export():
        # A step has one query: there is no memory to save, and plain operations are what a graph can hold.
        return torch.tanh(queries.unsqueeze(2) + keys.unsqueeze(1)) @ weight
    if torch.compiler.is_compiling():
        # One kernel, which holds no more than its sums.
        return (torch.tanh(queries.unsqueeze(2) + keys.unsqueeze(1)) * weight).sum(-1, dtype=torch.float32)
    # Sums over all positions of a sentence are too long for half precision.
    single = torch.promote_types(queries.dtype, torch.float32)
    return _Scores.apply(queries.to(single), keys.to(single), weight.to(single)).to(queries.dtype)


class _Scores(torch.autograd.Function):
    """``weight . tanh(query + key)``, one target position after the other.

    With ``p = 1 / (1 + e^2(q + k))``, ``tanh(q + k) = 1 - 2 p`` and its slope is ``4 p (1 - p)``; ``e^2q`` and ``e^2k`` are
    computed once for a position each, which leaves one product and one division for each pair of positions.
    """

    @staticmethod
    def forward(ctx: Any, queries: Tensor, keys: Tensor, weight: Tensor) -> Tensor:
        # The product of infinity and zero would be no number. With the clamp it is right for all sides up to 40 in size,
        # and beyond that unless they have opposite signs, which then count as equally large.
        query_powers, key_powers = _powers(queries), _kept_powers(keys)
        ctx.save_for_backward(query_powers, key_powers, weight)
        sums = queries.new_empty(queries.shape[1], *keys.shape[:2])  # [T, B, S]
        for row, shares in zip(sums, _shares(query_powers, key_powers), strict=True):
            torch.mv(shares.view(-1, len(weight)), weight, out=row.view(-1))
        return weight.sum() - 2 * sums.transpose(0, 1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        query_powers, key_powers, weight = ctx.saved_tensors
        by_step = grad.transpose(0, 1).contiguous()  # [T, B, S]
        grad_weight = torch.zeros_like(weight)
        of_queries = weight.new_empty(len(by_step), len(grad), 1, len(weight))  # [T, B, 1, A]
        of_keys = torch.zeros_like(key_powers)
        for step, (row, shares) in enumerate(zip(by_step, _shares(query_powers, key_powers), strict=True)):
            grad_weight.addmv_(shares.view(-1, len(weight)).t(), row.view(-1))
            slopes = torch.addcmul(shares, shares, shares, value=-1, out=shares)
            torch.bmm(row.unsqueeze(1), slopes, out=of_queries[step])
            of_keys.addcmul_(slopes, row.unsqueeze(-1))
        scale = 4 * weight
        return (scale * of_queries.squeeze(2)).transpose(0, 1), scale * of_keys, grad.sum() - 2 * grad_weight


def _powers(side: Tensor) -> Tensor:
    return (2 * side.clamp(-LARGEST, LARGEST)).exp()


def _kept_powers(keys: Tensor) -> Tensor:
    """Those of the keys, which stay the same tensor for all steps of a search: it carries them with it."""
    if not keys.is_inference():
        return _powers(keys)
    if not hasattr(keys, KEPT):
        setattr(keys, KEPT, _powers(keys))
    return getattr(keys, KEPT)


def _shares(query_powers: Float[Tensor, "B T A"], key_powers: Float[Tensor, "B S A"]) -> Iterator[Tensor]:
    """``p`` of every source position, ``[B, S, A]``, for one target position after the other, always in the same memory."""
    shares = torch.empty_like(key_powers)
    one = shares.new_ones(())
    for step in range(query_powers.shape[1]):
        yield torch.addcmul(one, query_powers[:, step, None], key_powers, out=shares).reciprocal_()
