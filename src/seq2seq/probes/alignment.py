"""Where a model looks while it writes: links between the items of a pair, how sharp the weights are, what they leave out.

All of it is read from the weights under teacher forcing, so that every model is asked about the same target. ``I`` stands
for the items of a pair, which are the same content on both sides: item ``i`` of the source is item ``i`` of the target.

Sources: the alignment error rate, Och & Ney 2003, "A Systematic Comparison of Various Statistical Alignment Models",
J03-1002, with sure and possible links being the same; coverage, Wu et al. 2016, arXiv:1609.08144, section 7, equation 14,
whose penalty is made of the same ``min(1, summed weight)``.
Differs: links join items, not words. What an item's tokens look at among each other is left open, as the corpus does not
know it either.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

NO_ITEM = -1
"""Item of a token that stands between items, such as a comma or ``EOS``, and link of an item that is linked to none."""

Range = tuple[int, int]
"""Half-open, in characters."""


class LinkCounts(NamedTuple):
    """Links between items: predicted and true ones, and those that are both."""

    found: int
    predicted: int
    true: int


def item_of_tokens(offsets: Sequence[Range], items: Sequence[Range]) -> Int[np.ndarray, "tokens"]:
    """For every token the item with which it shares most characters, the earlier of two equal ones, or ``NO_ITEM``.

    Args:
        offsets: the characters of each token, see ``Tokenizer.offsets``; white space before a word may be among them.
        items: the characters of each item in the same text.
    """
    if not offsets or not items:
        return np.full(len(offsets), NO_ITEM, np.int64)
    token_from, token_to = np.array(offsets, np.int64).T[:, :, None]  # [tokens, 1]
    item_from, item_to = np.array(items, np.int64).T
    shared = np.minimum(token_to, item_to) - np.maximum(token_from, item_from)  # [tokens, I]
    return np.where(shared.max(axis=1) > 0, shared.argmax(axis=1), NO_ITEM)


def predicted_links(
    weights: Float[np.ndarray, "T S"],
    source_items: Int[np.ndarray, "S"],
    target_items: Int[np.ndarray, "T"],
    items: int,
) -> Int[np.ndarray, "I"]:
    """For every target item the source item that got most of its tokens' weight, or ``NO_ITEM`` if none got any.

    Args:
        weights: of each target token over the source tokens.
        source_items, target_items: the item of each token, as ``item_of_tokens`` says; ``NO_ITEM`` for ``EOS``.
        items: ``I``.
    """
    numbers = np.arange(items)
    of_source = (source_items[:, None] == numbers).astype(weights.dtype)  # [S, I]
    of_target = (target_items[:, None] == numbers).astype(weights.dtype)  # [T, I]
    mass = of_target.T @ weights @ of_source  # [I of the target, I of the source]
    return np.where(mass.max(axis=1) > 0, mass.argmax(axis=1), NO_ITEM)


def count_links(links: Int[np.ndarray, "I"]) -> LinkCounts:
    """Compares predicted links with the true ones, which join every item with itself."""
    return LinkCounts(int((links == np.arange(len(links))).sum()), int((links != NO_ITEM).sum()), len(links))


def alignment_error_rate(counts: LinkCounts) -> float | None:
    """``1 - 2 found / (predicted + true)``, from 0 to 1; None where nothing is true or nothing was predicted.

    Args:
        counts: summed over a corpus.
    """
    if counts.predicted == 0 or counts.true == 0:
        return None
    return 1 - 2 * counts.found / (counts.predicted + counts.true)


def entropy(weights: Float[Tensor, "B T S"], is_target: Bool[Tensor, "B T"]) -> Float[Tensor, "B"]:
    """Mean over each sentence's target tokens of the entropy of their weights, in nats.

    0 where every token looks at one source token, ``log n`` where it looks at ``n`` alike; NaN where a sentence has no
    weights at all.
    """
    per_token = torch.special.entr(weights.float()).sum(dim=-1)  # [B, T]
    mean = (per_token * is_target).sum(dim=1) / is_target.sum(dim=1)
    return mean.masked_fill(_has_no_weights(weights), torch.nan)


def coverage(
    weights: Float[Tensor, "B T S"], is_target: Bool[Tensor, "B T"], is_source: Bool[Tensor, "B S"]
) -> Float[Tensor, "B"]:
    """Mean over each sentence's source tokens of ``min(1, weight summed over target tokens)``.

    1 where every source token was looked at with the weight of a whole target token; NaN where there are no weights at all.
    """
    summed = (weights.float() * is_target.unsqueeze(-1)).sum(dim=1)  # [B, S]
    mean = (summed.clamp(max=1) * is_source).sum(dim=1) / is_source.sum(dim=1)
    return mean.masked_fill(_has_no_weights(weights), torch.nan)


def _has_no_weights(weights: Float[Tensor, "B T S"]) -> Bool[Tensor, "B"]:
    return (weights == 0).all(dim=2).all(dim=1)
