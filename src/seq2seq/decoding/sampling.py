"""Sampling: the next token is drawn, so that a model shows what else it would say.

Source: of the ``top_k`` likeliest tokens alone, Fan et al. 2018, arXiv:1805.04833, section 5.
"""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor

from seq2seq.decoding.greedy import Greedy
from seq2seq.errors import ConfigError


class Sampling(Greedy):
    """Decodes a batch with torch's own random numbers: seed them for the same translations twice.

    Args:
        temperature: divides the scores: below 1 it sharpens the distribution, above 1 it flattens it.
        top_k: draws from so many likeliest tokens; null for all.
        cap_ratio, cap_extra: as in ``Greedy``.

    Raises:
        ConfigError: a number is out of range.
    """

    def __init__(self, temperature: float = 1.0, top_k: int | None = None, cap_ratio: float = 2.0, cap_extra: int = 10):
        super().__init__(cap_ratio, cap_extra)
        if not 0 < temperature < math.inf or (top_k is not None and top_k < 1):
            raise ConfigError(
                "decoding.temperature must be above 0 and decoding.top_k at least 1 or null, found "
                f"{temperature} and {top_k}"
            )
        self.temperature = temperature
        self.top_k = top_k

    def choose(self, scores: Float[Tensor, "B V"]) -> Int[Tensor, "B"]:
        scores = scores / self.temperature
        if self.top_k is not None and self.top_k < scores.shape[1]:
            least = scores.topk(self.top_k, dim=-1).values[:, -1:]
            scores = scores.masked_fill(scores < least, -torch.inf)
        return torch.multinomial(scores.softmax(dim=-1), 1).squeeze(1)
