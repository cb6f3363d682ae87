"""How far the loss reaches back: the length of its gradient at every source token.

Without attention the loss reaches a source token through all recurrent steps between that token and the fixed vector, and
vanishes on the way (Hochreiter 1991; Bengio et al. 1994, "Learning Long-Term Dependencies with Gradient Descent is
Difficult"); attention is a direct path to each of them.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from seq2seq.models.seq2seq import Seq2Seq
from seq2seq.types import PAD, Batch


def source_gradients(model: Seq2Seq, batch: Batch) -> Float[Tensor, "B S"]:
    """The Euclidean norm of d(loss of the sentence) / d(source embedding at s); exactly 0 on padding.

    The loss is the cross-entropy summed over the sentence's target tokens under teacher forcing, in nats, without label
    smoothing. The embedding is what the encoder reads. Works under ``torch.inference_mode`` as well, and leaves nothing in
    the parameters' ``grad``.

    Args:
        model: in evaluation mode, so that nothing is dropped.
        batch: its sentences do not influence each other.
    """
    # cuDNN's recurrent networks go backward in training mode only, in which dropout would come back; torch's own kernels do
    # so in either mode.
    with torch.inference_mode(False), torch.enable_grad(), torch.backends.cudnn.flags(enabled=False):
        # Tensors made under inference mode cannot take part in a backward pass, their copies can.
        source, inputs, targets = batch.source.clone(), batch.inputs.clone(), batch.targets.clone()
        embedded = model.source_embedding(source).detach().requires_grad_()
        decoded = model.decoder(inputs, model.encoder(embedded, source != PAD))
        is_token = targets != PAD
        logits = model.output(decoded.features[is_token])  # [N, V]
        loss = F.cross_entropy(logits, targets[is_token], reduction="sum")
        (gradient,) = torch.autograd.grad(loss, embedded)
        return gradient.norm(dim=-1)
