"""The law of decoders: what search and training may rely on, whatever the architecture.

``forward`` over all tokens must equal folding ``step`` over them one by one; tests hold every decoder to it.
"""

from abc import ABC, abstractmethod

from jaxtyping import Int
from torch import Tensor, nn

from seq2seq.types import Decoded, Memory, State


class Decoder(nn.Module, ABC):
    """Predicts target features from the tokens before them and a memory."""

    @abstractmethod
    def start(self, memory: Memory) -> State:
        """The state before the first token."""

    @abstractmethod
    def step(self, tokens: Int[Tensor, "B"], state: State) -> tuple[Decoded, State]:
        """Reads one token per sentence. The answer has T = 1."""

    @abstractmethod
    def forward(self, tokens: Int[Tensor, "B T"], memory: Memory) -> Decoded:
        """Reads known tokens, all of them: teacher forcing."""
