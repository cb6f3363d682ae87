"""How often the likeliest next token is the true one, by its position in the target, given the true tokens before it.

Under teacher forcing an early mistake costs nothing later on, so what falls with the position is what the model still knows
of the source, not how far it has gone astray.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from seq2seq.models.seq2seq import Seq2Seq
from seq2seq.types import PAD, Decoded


class PositionCounts(NamedTuple):
    """Target tokens by position, 0 for the first: those that were predicted, and all. ``P`` is the longest target."""

    correct: Int[np.ndarray, "P"]
    count: Int[np.ndarray, "P"]


def token_hits(model: Seq2Seq, decoded: Decoded, targets: Int[Tensor, "B T"]) -> Bool[Tensor, "B T"]:
    """True where the likeliest token is that of ``targets``, ``EOS`` included; False on padding.

    Args:
        model: holds the output layer.
        decoded: the decoder's answer to the true tokens.
        targets: what it was to predict.
    """
    is_token = targets != PAD
    # As in training, the output layer sees no padding.
    likeliest = model.output(decoded.features[is_token]).argmax(dim=-1)  # [N]
    hits = torch.zeros_like(is_token)
    hits[is_token] = likeliest == targets[is_token]
    return hits


def accuracy_by_position(hits: Sequence[Bool[np.ndarray, "_"]]) -> PositionCounts:
    """Adds up the hits of many sentences, each without its padding."""
    longest = max(map(len, hits), default=0)
    counts = PositionCounts(np.zeros(longest, np.int64), np.zeros(longest, np.int64))
    for sentence in hits:
        counts.correct[: len(sentence)] += sentence
        counts.count[: len(sentence)] += 1
    return counts
