"""``torch.compile`` of the forward pass that training takes.

Only what stands between the recurrent layers is compiled: the layers themselves are calls into cuDNN, oneDNN or ``gru.py``,
into which the compiler cannot look. The model stays as it is, for checkpoints, free decoding and probes.
"""

from collections.abc import Callable
from types import FunctionType

import torch

from seq2seq.errors import ConfigError
from seq2seq.models import recurrent
from seq2seq.models.seq2seq import Seq2Seq
from seq2seq.types import Decoded


def compiled_forward() -> Callable[..., Decoded]:
    """``Seq2Seq.forward``, compiled at the first batch, once for all shapes that follow."""
    # Said here and not where the function stands, as the compiler takes seconds to be loaded.
    recurrent.run_layer = torch.compiler.disable(recurrent.run_layer)
    # The compiler counts what it has made of a function and stops at eight: each model has a function of its own.
    plain = Seq2Seq.forward
    own = FunctionType(
        plain.__code__.replace(), plain.__globals__, plain.__name__, plain.__defaults__, plain.__closure__
    )
    return torch.compile(own, dynamic=True)


def not_compiled(error: RuntimeError) -> ConfigError | None:
    """What a user can do about ``error``, if it comes from the compiler."""
    from torch._dynamo.exc import TorchDynamoException

    if not isinstance(error, TorchDynamoException):
        return None
    first = str(error).strip().splitlines()[0]
    return ConfigError(
        f"compile=true: torch cannot compile the model here: {first}. Set compile=false, or install what is missing: a C++ "
        "compiler such as g++ on a CPU, Triton on a GPU"
    )
