"""Models as ONNX files, which programs without torch can run, and a model of such files that the searches here take.

``start.onnx`` turns ``source`` into the decoder's first state, ``step.onnx`` turns ``tokens`` and a state into ``logits``,
``weights`` and the next state; ``source.model`` and ``target.model`` are SentencePiece's. Batch and source length are free.
"""

import warnings
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from seq2seq.attention.base import reach
from seq2seq.data.tokenizer import Tokenizer, Tokenizers
from seq2seq.errors import CheckpointError, ConfigError
from seq2seq.models.seq2seq import Seq2Seq
from seq2seq.types import BOS, EOS, Bound, State

START, STEP, SOURCE, TARGET = "start.onnx", "step.onnx", "source.model", "target.model"
BOUND = ("keys", "values", "is_token")
REACH = "reach"


class _Start(nn.Module):
    """``Seq2Seq.start`` with nothing but tensors."""

    def __init__(self, model: Seq2Seq):
        super().__init__()
        self.model = model

    def forward(self, source: Int[Tensor, "B S"]) -> tuple[Tensor, ...]:
        state = self.model.start(source)
        return (*state.recurrent, *state.bound)


class _Step(nn.Module):
    """``Seq2Seq.step`` with nothing but tensors."""

    def __init__(self, model: Seq2Seq):
        super().__init__()
        self.model = model

    def forward(self, tokens: Int[Tensor, "B"], *state: Tensor) -> tuple[Tensor, ...]:
        logits, weights, after = self.model.step(tokens, _state(state))
        return (logits, weights, *after.recurrent)


def _state(parts: Sequence[Tensor]) -> State:
    return State(tuple(parts[: -len(BOUND)]), Bound(*parts[-len(BOUND) :]))


def export(model: Seq2Seq, tokenizers: Tokenizers, folder: Path) -> None:
    """Writes a model and its tokenizers to a folder.

    Args:
        model: in evaluation mode, on the CPU.
        tokenizers: its own.
        folder: exists.

    Raises:
        ConfigError: the package that writes ONNX files is not installed.
    """
    if find_spec("onnx") is None:
        raise ConfigError("export needs the package onnx: pip install -c constraints.txt -e '.[onnx]'")
    first, longer = (torch.full((rows, length), EOS) for rows, length in ((2, 3), (2, 5)))
    start, step = _Start(model), _Step(model)
    with torch.no_grad():
        state, other = start(first), start(longer)
    names = [f"state_{place}" for place in range(len(state) - len(BOUND))] + list(BOUND)
    # Which sizes follow the source is the attention's choice: the fixed vector's one key does not.
    free = {
        name: {0: "batch"}
        | {axis: "source" for axis in range(1, part.ndim) if part.shape[axis] != longer_part.shape[axis]}
        for name, part, longer_part in zip(names, state, other, strict=True)
    }
    after = [f"next_{name}" for name in names[: -len(BOUND)]]
    free |= {"source": {0: "batch", 1: "source"}, "tokens": {0: "batch"}, "logits": {0: "batch"}}
    free |= {"weights": {0: "batch", 1: "source"}, **{name: {0: "batch"} for name in after}}
    _write(start, (first,), folder / START, ["source"], names, free)
    if (known := reach(model)) is not None:
        _note_reach(folder / START, known)
    tokens = torch.full((2,), BOS)
    _write(step, (tokens, *state), folder / STEP, ["tokens", *names], ["logits", "weights", *after], free)
    (folder / SOURCE).write_bytes(tokenizers.source.model)
    (folder / TARGET).write_bytes(tokenizers.target.model)


def _write(
    module: nn.Module,
    arguments: tuple[Tensor, ...],
    path: Path,
    inputs: list[str],
    outputs: list[str],
    free: dict[str, dict[int, str]],
) -> None:
    with warnings.catch_warnings(), torch.no_grad():
        # Of the exporter's own future, and of sizes that it takes for fixed; a test runs other sizes.
        warnings.simplefilter("ignore")
        torch.onnx.export(
            module.eval(),
            arguments,
            str(path),
            input_names=inputs,
            output_names=outputs,
            dynamic_axes={name: free[name] for name in (*inputs, *outputs)},
            # The exporter that follows torch.export has no plain recurrent network of free length.
            dynamo=False,
        )


def _note_reach(path: Path, known: int) -> None:
    import onnx

    model = onnx.load(str(path))
    onnx.helper.set_model_props(model, {REACH: str(known)})
    onnx.save(model, str(path))


class ExportedModel:
    """A folder that ``export`` wrote, run by ONNX Runtime on the CPU; searched like a model.

    Args:
        folder: with ``start.onnx`` and ``step.onnx``.

    Attributes:
        reach: source tokens, ``EOS`` included, that it can tell apart; None for any number.

    Raises:
        CheckpointError: a file is missing or broken.
        ConfigError: the package that runs ONNX files is not installed.
    """

    def __init__(self, folder: str | Path):
        if find_spec("onnxruntime") is None:
            raise ConfigError(f"{folder} needs the package onnxruntime: pip install -c constraints.txt -e '.[onnx]'")
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = torch.get_num_threads()
        sessions = []
        for name in (START, STEP):
            path = Path(folder) / name
            if not path.is_file():
                raise CheckpointError(
                    f"{folder} holds neither a checkpoint (checkpoints/best.ckpt, model.ckpt) nor {name}, as seq2seq-export "
                    "writes it: name a checkpoint, or a folder of a run, of seq2seq-share or of seq2seq-export"
                )
            try:
                sessions.append(onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"]))
            except Exception as error:
                # ONNX Runtime raises classes of its own, one for each kind of damage.
                raise CheckpointError(f"{path} is no readable ONNX file ({str(error)[:200]})") from error
        self._start, self._step = sessions
        self._inputs = [part.name for part in self._step.get_inputs()]
        noted = self._start.get_modelmeta().custom_metadata_map.get(REACH)
        self.reach = None if noted is None else int(noted)

    def start(self, source: Int[Tensor, "B S"]) -> State:
        return _state([torch.from_numpy(part) for part in self._start.run(None, {"source": source.numpy()})])

    def step(self, tokens: Int[Tensor, "B"], state: State) -> tuple[Float[Tensor, "B V"], Float[Tensor, "B S"], State]:
        parts = (tokens, *state.recurrent, *state.bound)
        names = ["tokens", *(f"state_{place}" for place in range(len(state.recurrent))), *BOUND]
        given = {name: part.numpy() for name, part in zip(names, parts, strict=True) if name in self._inputs}
        logits, weights, *after = (torch.from_numpy(np.array(part)) for part in self._step.run(None, given))
        return logits, weights, State(tuple(after), state.bound)


def load_exported(folder: str | Path) -> tuple[ExportedModel, Tokenizers]:
    """A model of ONNX files and its tokenizers.

    Raises:
        CheckpointError: a file is missing or broken.
        ConfigError: the package that runs ONNX files is not installed.
    """
    model = ExportedModel(folder)
    try:
        source, target = (Tokenizer((Path(folder) / name).read_bytes()) for name in (SOURCE, TARGET))
    except OSError as error:
        raise CheckpointError(
            f"{folder} holds no {SOURCE} or {TARGET}: name a folder that seq2seq-export wrote"
        ) from error
    try:
        # The largest numbers there are show whether files of one folder belong together.
        state = model.start(torch.tensor([[source.vocabulary_size - 1, EOS]]))
        scored = model.step(torch.tensor([BOS]), state)[0].shape[1]
    except Exception as error:
        # ONNX Runtime raises classes of its own.
        reason = " ".join(str(error).split())[:200]
        raise CheckpointError(
            f"the files of {folder} do not belong together ({reason}): export the model again"
        ) from error
    if scored != target.vocabulary_size:
        raise CheckpointError(
            f"the files of {folder} do not belong together: {STEP} scores {scored} tokens, {TARGET} has "
            f"{target.vocabulary_size}; export the model again"
        )
    return model, Tokenizers(source, target, source.model == target.model)
