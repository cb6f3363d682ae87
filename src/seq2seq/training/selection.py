"""Which sentences are looked at more closely than the others."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Int


def sample_ids(count: int, wanted: int) -> Sequence[int]:
    """``wanted`` positions spread evenly over ``count``."""
    return sorted({round(place * (count - 1) / max(wanted - 1, 1)) for place in range(min(wanted, count))})


def spread_over_lengths(lengths: Int[np.ndarray, "N"], wanted: int) -> frozenset[int]:
    """Positions of ``wanted`` sentences, or of all if there are fewer, from the shortest to the longest at even steps."""
    by_length = np.argsort(lengths, kind="stable")
    return frozenset(int(by_length[place]) for place in sample_ids(len(lengths), wanted))
