"""What the decoder's log of weights leaves out: every head of its own, and the encoder's look at itself."""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from seq2seq.attention.base import Attention
from seq2seq.attention.multihead import MultiHeadAttention
from seq2seq.models.seq2seq import Seq2Seq
from seq2seq.types import Attended, Bound


class Looks(NamedTuple):
    """Weights of one sentence; None and empty where the model has no such attention."""

    heads: Float[Tensor, "H T S"] | None
    """Of a multi-head decoder, for each target position given the tokens before it."""
    encoder: tuple[Float[Tensor, "H S S"], ...]
    """Of the encoder's self-attention by layer; each row is the token that looks. One head where it has no more."""


@torch.inference_mode()
def looks(model: Seq2Seq, source: Int[Tensor, "S"], inputs: Int[Tensor, "T"]) -> Looks:
    """Reads a sentence once more, with an eye on every attention of the model.

    Args:
        model: in evaluation mode.
        source: of one sentence, ``EOS`` included, without padding.
        inputs: ``BOS`` and the tokens of its translation.
    """
    decoder, layers = model.decoder.attention, _outermost(model.encoder)
    if not layers and not isinstance(decoder, MultiHeadAttention):
        return Looks(None, ())
    logs = [_Log(attention) for attention in (decoder, *layers)]
    try:
        model(source.unsqueeze(0), inputs.unsqueeze(0))
    finally:
        for log in logs:
            log.handle.remove()
    heads = logs[0].weights() if isinstance(decoder, MultiHeadAttention) else None
    return Looks(heads, tuple(log.weights() for log in logs[1:] if log.calls))


class _Log:
    """Notes the weights of an attention, ``[H, T, S]`` for each of its calls."""

    def __init__(self, attention: Attention):
        self.calls: list[Tensor] = []
        self.handle = attention.register_forward_hook(self._note)

    def weights(self) -> Float[Tensor, "H T S"]:
        return torch.cat(self.calls, dim=1)

    def _note(self, attention: Attention, arguments: tuple[Tensor, Bound], attended: Attended) -> None:
        heads = isinstance(attention, MultiHeadAttention)
        weights = attention.head_weights(*arguments) if heads else attended.weights.unsqueeze(1)
        self.calls.append(weights[0].float().cpu())


def _outermost(module: torch.nn.Module) -> list[Attention]:
    """Attentions that are part of no other one, in the order of their definition."""
    found = []
    for child in module.children():
        found += [child] if isinstance(child, Attention) else _outermost(child)
    return found
