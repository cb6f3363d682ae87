"""How large an attention's scores are, how sharp they make its weights, and what gradient is left at the scores.

The argument for ``1 / sqrt(d)`` of Vaswani et al. 2017, arXiv:1706.03762, section 3.2.1 and its footnote 4: products of
``d`` numbers have a standard deviation that grows with ``sqrt(d)``; large scores make the softmax nearly one-hot, and its
slope, and with it the gradient, vanishes.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from seq2seq.attention.base import Attention, masked_softmax
from seq2seq.models.seq2seq import Seq2Seq
from seq2seq.types import PAD, Attended, Batch, Bound


class ScoreStatistics(NamedTuple):
    """Means over the target tokens of a batch."""

    deviation: float
    """Standard deviation of a token's scores over the source."""
    entropy: float
    """Of its weights, in shares of the largest that is possible: 1 is the same weight for all, 0 is one-hot."""
    gradient: float
    """Euclidean norm of d(loss of the sentence) / d(its scores)."""


def score_statistics(model: Seq2Seq, batch: Batch) -> ScoreStatistics | None:
    """Measures the decoder's attention; None where it has no score for each pair of a query and a source token.

    The loss is the cross-entropy summed over the target, in nats. Sources of a single token, ``EOS``, leave no choice and do
    not count. Leaves nothing in the parameters' ``grad``.

    Args:
        model: in evaluation mode.
        batch: any.
    """
    attention = model.decoder.attention
    if type(attention).forward is not Attention.forward:
        return None
    calls: list[tuple[Tensor, Bound, Tensor]] = []

    def note(_: Attention, arguments: tuple[Tensor, Bound], attended: Attended) -> None:
        calls.append((*arguments, attended.context))

    handle = attention.register_forward_hook(note)
    try:
        with torch.inference_mode(False), torch.enable_grad(), torch.backends.cudnn.flags(enabled=False):
            source, inputs, targets = batch.source.clone(), batch.inputs.clone(), batch.targets.clone()
            is_token = targets != PAD
            logits = model.output(model(source, inputs).features[is_token])
            loss = torch.nn.functional.cross_entropy(logits, targets[is_token], reduction="sum")
            gradients = torch.autograd.grad(loss, [context for _, _, context in calls])
    finally:
        handle.remove()
    counted = (batch.targets != PAD) & ((batch.source != PAD).sum(dim=1, keepdim=True) > 1)
    parts = [
        _of_call(attention, queries, bound, each) for (queries, bound, _), each in zip(calls, gradients, strict=True)
    ]
    deviation, entropy, gradient = (torch.cat(columns, dim=1)[counted].mean() for columns in zip(*parts, strict=True))
    return ScoreStatistics(float(deviation), float(entropy), float(gradient))


@torch.no_grad()
def _of_call(
    attention: Attention, queries: Float[Tensor, "B T D"], bound: Bound, of_context: Float[Tensor, "B T C"]
) -> tuple[Float[Tensor, "B T"], Float[Tensor, "B T"], Float[Tensor, "B T"]]:
    scores = attention.score(queries, bound.keys).float()
    is_token = bound.is_token.unsqueeze(1)  # [B, 1, S]
    count = is_token.sum(dim=-1).clamp(min=2)  # [B, 1]
    scores = scores.masked_fill(~is_token, 0.0)
    from_mean = (scores - scores.sum(dim=-1, keepdim=True) / count.unsqueeze(-1)) * is_token
    weights = masked_softmax(scores, bound.is_token)
    of_weights = of_context.float() @ bound.values.float().mT
    of_scores = weights * (of_weights - (weights * of_weights).sum(dim=-1, keepdim=True))
    return (
        (from_mean.square().sum(dim=-1) / count).sqrt(),
        torch.special.entr(weights).sum(dim=-1) / count.log(),
        of_scores.norm(dim=-1),
    )
