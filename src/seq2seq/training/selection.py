"""Which sentences are looked at more closely than the others."""

import numpy as np
from jaxtyping import Int

from seq2seq.spread import evenly


def spread_over_lengths(lengths: Int[np.ndarray, "N"], wanted: int) -> frozenset[int]:
    """Positions of ``wanted`` sentences, or of all if there are fewer, from the shortest to the longest at even steps."""
    by_length = np.argsort(lengths, kind="stable")
    return frozenset(int(by_length[place]) for place in evenly(len(lengths), wanted))
