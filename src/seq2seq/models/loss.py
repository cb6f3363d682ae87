"""Output layer and cross-entropy in one, for vocabularies whose scores of a whole batch would fill the memory.

Source of the loss: label smoothing, Szegedy et al. 2016, arXiv:1512.00567, section 7.
As the loss is one sum, the gradient of each score is known as soon as the score is: some rows at a time are scored, added to
the loss, turned into the gradients of features and weights, and forgotten. The products are the same three as without.
"""

from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

LARGEST = 1 << 26
"""Scores that are held at once, 256 MiB of them in single precision."""


def summed_loss(
    output: nn.Linear, features: Float[Tensor, "N E"], targets: Int[Tensor, "N"], label_smoothing: float = 0.0
) -> Float[Tensor, ""]:
    """Cross-entropy of ``targets``, in nats, summed.

    Args:
        output: from features to scores of the ``V`` tokens.
        features: of every target token.
        targets: the tokens.
        label_smoothing: share of the target distribution that is spread over the vocabulary.
    """
    vocabulary = output.out_features
    if targets.numel() * vocabulary <= LARGEST:
        return F.cross_entropy(output(features), targets, reduction="sum", label_smoothing=label_smoothing)
    rows = max(1, LARGEST // vocabulary)
    return _Summed.apply(features, output.weight, output.bias, targets, label_smoothing, rows)


class _Summed(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, features: Tensor, weight: Tensor, bias: Tensor, targets: Tensor, smoothing: float, rows: int
    ) -> Tensor:
        # Gradients of features, weight and bias, each if it is wanted; sums over a corpus's tokens need single precision.
        exact = torch.promote_types(features.dtype, torch.float32)
        wanted = ctx.needs_input_grad[:3]
        like = [
            torch.zeros_like(part, dtype=exact) if needed else None
            for part, needed in zip((features, weight, bias), wanted, strict=True)
        ]
        of_features, of_weight, of_bias = like
        loss = torch.zeros((), dtype=exact, device=features.device)
        for start in range(0, len(targets), rows):
            chunk, tokens = features[start : start + rows], targets[start : start + rows].unsqueeze(1)
            scores = F.linear(chunk, weight, bias).to(exact)
            total = scores.logsumexp(dim=1, keepdim=True)
            of_target = scores.gather(1, tokens)
            loss += (total - (1 - smoothing) * of_target - smoothing * scores.mean(dim=1, keepdim=True)).sum()
            if not any(wanted):
                continue
            slopes = scores.sub_(total).exp_().sub_(smoothing / scores.shape[1])
            slopes.scatter_add_(1, tokens, torch.full_like(of_target, smoothing - 1))
            factors = slopes.to(weight.dtype)
            if of_features is not None:
                of_features[start : start + rows] = factors @ weight
            if of_weight is not None:
                of_weight += factors.t() @ chunk.to(weight.dtype)
            if of_bias is not None:
                of_bias += slopes.sum(dim=0)
        ctx.save_for_backward(*like)
        ctx.types = [part.dtype for part in (features, weight, bias)]
        return loss

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        found = [
            None if part is None else (part * grad).to(kind)
            for part, kind in zip(ctx.saved_tensors, ctx.types, strict=True)
        ]
        return (*found, None, None, None)
