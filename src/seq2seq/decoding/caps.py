"""How long a translation may be."""

import math
from typing import NamedTuple

import torch
from jaxtyping import Int
from torch import Tensor

from seq2seq.errors import ConfigError

LARGEST = 1_000_000
"""Tokens of a translation."""


class _Caps(NamedTuple):
    cap_ratio: float
    cap_extra: int
    min_length: int
    max_length: int | None


class Caps(_Caps):
    """At least ``min_length`` tokens, at most ``cap_ratio * source tokens + cap_extra`` and ``max_length``.

    ``EOS`` is counted on neither side.

    Raises:
        ConfigError: a number is out of range.
    """

    def __new__(
        cls, cap_ratio: float = 2.0, cap_extra: int = 10, min_length: int = 0, max_length: int | None = None
    ) -> "Caps":
        if not 0 <= cap_ratio < math.inf or cap_extra < 1:
            raise ConfigError(
                f"decoding.cap_ratio must be at least 0 and decoding.cap_extra at least 1, found {cap_ratio} and {cap_extra}"
            )
        limit = LARGEST if max_length is None else max_length
        if not (
            isinstance(min_length, int) and isinstance(limit, int) and 0 <= min_length <= limit <= LARGEST and limit
        ):
            raise ConfigError(
                f"decoding.min_length must be at least 0 and decoding.max_length at least 1 and no less, up to {LARGEST}, "
                f"found {min_length} and {max_length}"
            )
        return super().__new__(cls, cap_ratio, cap_extra, min_length, max_length)

    def of(self, source_lengths: Int[Tensor, "B"]) -> Int[Tensor, "B"]:
        """The largest number of tokens for sources of so many."""
        caps = (self.cap_ratio * source_lengths).long() + self.cap_extra
        return torch.clamp(caps, min=self.min_length, max=self.max_length)
