"""What the decoder's log of weights leaves out: every head of its own, and the encoder's look at itself."""

from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from seq2seq.attention.base import Attention
from seq2seq.attention.multihead import MultiHeadAttention
from seq2seq.models.seq2seq import Seq2Seq
from seq2seq.types import Attended, Bound


class Looks(NamedTuple):
    """Weights of one sentence; None where the model has no such attention."""

    heads: Float[Tensor, "H T S"] | None
    """Of a multi-head decoder, for each target position given the tokens before it."""
    encoder: Float[Tensor, "L H S S"] | None
    """Of the encoder's self-attention by layer and head; each row is the token that looks. One head where it has no more."""


@torch.inference_mode()
def looks(model: Seq2Seq, source: Int[Tensor, "S"], inputs: Int[Tensor, "T"]) -> Looks:
    """Reads a sentence once more, with an eye on every attention of the model.

    Args:
        model: in evaluation mode.
        source: of one sentence, ``EOS`` included, without padding.
        inputs: ``BOS`` and the tokens of its translation.
    """
    of_encoder, of_decoder = _Log(model.encoder), _Log(model.decoder)
    try:
        model(source.unsqueeze(0), inputs.unsqueeze(0))
    finally:
        of_encoder.remove()
        of_decoder.remove()
    (decoder,) = of_decoder.found
    heads = torch.cat(of_decoder.found[decoder], dim=1) if isinstance(decoder, MultiHeadAttention) else None
    layers = [torch.cat(parts, dim=1) for parts in of_encoder.found.values()]
    return Looks(heads, torch.stack(layers) if layers else None)


class _Log:
    """Notes the weights of every attention inside a module, ``[H, T, S]`` for each of its calls."""

    def __init__(self, module: torch.nn.Module):
        self.found: dict[Attention, list[Tensor]] = {
            part: [] for part in module.modules() if isinstance(part, Attention)
        }
        self.handles = [part.register_forward_hook(self._note) for part in self.found]

    def remove(self) -> None:
        for handle in self.handles:
            handle.remove()

    def _note(self, attention: Attention, arguments: tuple[Tensor, Bound], attended: Attended) -> Any:
        heads = isinstance(attention, MultiHeadAttention)
        weights = attention.head_weights(*arguments) if heads else attended.weights.unsqueeze(1)
        self.found[attention].append(weights[0].float().cpu())
