"""Location-based attention: the query alone says which positions to read, ``score_s(q) = (W q)_s``.

Source: Luong et al. 2015, arXiv:1508.04025, section 3.1, "location". With ``content: true`` the map also sees
the memory, ``score_s(q, k_s) = (W [q; k_s])_s``: a linear map of query and key to a fixed number of positions, as the
attention that PyTorch's translation tutorial made popular has it for query and input.
Differs: positions beyond the sentence are masked before the softmax, so that no weight is lost to them.
Cost: one matrix product of B*T*D*S. A source longer than ``max_positions`` cannot be read at all.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from seq2seq.attention.base import Attention, too_long
from seq2seq.errors import ConfigError


class LocationAttention(Attention):
    """Maps a query to a score for each position.

    Args:
        max_positions: source tokens of the longest sentence, ``EOS`` included.
        content: whether a score sees the key at its position, too.

    Raises:
        ConfigError: a source has more than ``max_positions`` tokens.
    """

    def __init__(
        self,
        query_size: int,
        memory_size: int,
        max_positions: int = 256,
        content: bool = False,
        dropout: float = 0.0,
    ):
        super().__init__(query_size, memory_size, dropout)
        if max_positions < 1:
            raise ConfigError(f"attention.max_positions={max_positions}: must be at least 1")
        self.max_positions = max_positions
        self.position = nn.Linear(query_size, max_positions, bias=False)
        self.key = nn.Linear(memory_size, max_positions, bias=False) if content else None

    def project_keys(self, states: Float[Tensor, "B S C"]) -> Float[Tensor, "B S 1"]:
        """What a key adds to the score of its own position, whatever the query."""
        length = states.shape[1]
        if length > self.max_positions:
            raise ConfigError(too_long(self.max_positions, length))
        if self.key is None:
            return states.new_zeros(states.shape[0], length, 1)
        return torch.einsum("bsc,sc->bs", states, self.key.weight[:length]).unsqueeze(-1)

    def score(self, queries: Float[Tensor, "B T D"], keys: Float[Tensor, "B S 1"]) -> Float[Tensor, "B T S"]:
        return queries @ self.position.weight[: keys.shape[1]].t() + keys.transpose(1, 2)
