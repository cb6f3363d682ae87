"""ONNX files say what the model says, for every decoder, attention, cell and encoder, and for any batch and length."""

import shutil

import pytest
import torch

from seq2seq.attention.location import LocationAttention
from seq2seq.data.tokenizer import Tokenizer, Tokenizers
from seq2seq.decoding.beam import Beam
from seq2seq.errors import CheckpointError
from seq2seq.export import export, load_exported
from seq2seq.models.recipe import build
from seq2seq.training.checkpoint import pack
from seq2seq.translator import Translator
from seq2seq.types import BOS, EOS
from tests.tiny import ATTENTIONS, MODELS, padded, tiny_recipe

pytest.importorskip("onnx", reason="the extra 'onnx' is not installed")
pytest.importorskip("onnxruntime", reason="the extra 'onnx' is not installed")

CASES = [
    *({"attention": attention} for attention in ATTENTIONS),
    *({"model": model, "attention": attention} for model in MODELS for attention in ("none", "additive")),
    *({"cell": cell, "layers": 3} for cell in ("lstm", "rnn")),
    *({"encoder": encoder} for encoder in ("rnn_reversed", "rnn_forward", "self_attention", "rnn_self_attention")),
]

ATTENTION = tiny_recipe("multihead")["decoder"]["attention"]
ENCODERS = {
    "rnn_reversed": lambda recurrent: (
        recurrent | {"bidirectional": False, "reverse": True, "layers": 2, "residual": True}
    ),
    "rnn_forward": lambda recurrent: recurrent | {"bidirectional": False},
    "self_attention": lambda recurrent: {
        "_target_": "seq2seq.models.self_attention.SelfAttentionEncoder",
        "_partial_": True,
        "hidden_size": recurrent["hidden_size"],
        "attention": ATTENTION,
        "layers": 2,
    },
    "rnn_self_attention": lambda recurrent: {
        "_target_": "seq2seq.models.self_attention.SelfAttendedEncoder",
        "_partial_": True,
        "recurrent": recurrent,
        "attention": ATTENTION,
    },
}


@pytest.fixture(scope="module")
def tokenizers():
    tokenizer = Tokenizer.train(["ant bee cat dog eel fox gnu hen, ant. bee! cat"] * 2, 40)
    return Tokenizers(tokenizer, tokenizer, joint=True)


def made(tokenizers, encoder=None, **settings):
    torch.manual_seed(3)
    recipe = tiny_recipe(**settings)
    if encoder is not None:
        recipe["encoder"] = ENCODERS[encoder](recipe["encoder"])
    return build(recipe, **tokenizers.sizes()).eval(), recipe


@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(map(str, case.values())))
def test_every_step_agrees(tokenizers, tmp_path, case):
    model, _ = made(tokenizers, **case)
    export(model, tokenizers, tmp_path)
    exported, _ = load_exported(tmp_path)
    # Other batches and lengths than the exporter saw, rows of unequal length among them.
    for rows in ([[7, 8, 9, EOS]], [[5, EOS], [6, 7, 8, 9, 5, 6, 7, EOS], [EOS]], [[4] * 30 + [EOS]] * 5):
        source = padded(rows)
        with torch.inference_mode():
            state, other = model.start(source), exported.start(source)
            tokens = torch.full((len(rows),), BOS)
            for step in range(4):
                logits, weights, state = model.step(tokens, state)
                theirs, their_weights, other = exported.step(tokens, other)
                torch.testing.assert_close(theirs, logits, rtol=1e-4, atol=1e-5)
                torch.testing.assert_close(their_weights, weights, rtol=1e-4, atol=1e-5)
                # Moved as a search moves them.
                index = torch.arange(len(rows)).flip(0)
                state, other, tokens = state.select(index), other.select(index), logits.argmax(-1)[index] + step


def test_a_folder_translates_like_its_checkpoint(tokenizers, tmp_path):
    model, recipe = made(tokenizers, size=16)
    weights = {f"model.{name}": value for name, value in model.state_dict().items()}
    torch.save({"state_dict": weights, **pack(recipe, tokenizers)}, tmp_path / "best.ckpt")
    (tmp_path / "onnx").mkdir()
    export(model, tokenizers, tmp_path / "onnx")
    lines = ["ant bee", "", "cat, dog! eel fox gnu", "hen"]
    for search in (Beam(1), Beam(4)):
        one, other = (Translator.load(tmp_path / name, search=search) for name in ("best.ckpt", "onnx"))
        assert other.translate(lines) == one.translate(lines)
    # Votes beside a checkpoint.
    assert Translator.load(tmp_path / "onnx", tmp_path / "best.ckpt").translate(lines) == Translator.load(
        tmp_path / "best.ckpt"
    ).translate(lines)


def test_an_attention_that_knows_so_many_positions_says_so(tokenizers, tmp_path):
    model, _ = made(tokenizers, attention="location")
    export(model, tokenizers, tmp_path)
    (attention,) = (part for part in model.modules() if isinstance(part, LocationAttention))
    translator = Translator.load(tmp_path, longest=10_000)
    assert translator.longest == attention.max_positions - 1
    assert len(translator.translate(["ant " * 2 * attention.max_positions])) == 1


def test_files_of_two_models_are_refused(tokenizers, tmp_path):
    for name, size in (("a", 8), ("b", 16)):
        (tmp_path / name).mkdir()
        export(made(tokenizers, size=size)[0], tokenizers, tmp_path / name)
    shutil.copy(tmp_path / "a/step.onnx", tmp_path / "b/step.onnx")
    with pytest.raises(CheckpointError, match="do not belong together"):
        Translator.load(tmp_path / "b")
    other = Tokenizer.train(["ant bee cat dog eel fox gnu hen, ant. bee! cat"] * 2, 45).model
    (tmp_path / "a/target.model").write_bytes(other)
    with pytest.raises(CheckpointError, match=r"step\.onnx scores 40 tokens, target\.model has 45"):
        Translator.load(tmp_path / "a")
    (tmp_path / "a/source.model").write_bytes(other)
    with pytest.raises(CheckpointError, match="do not belong together"):
        Translator.load(tmp_path / "a")


def test_damaged_folders_are_refused(tokenizers, tmp_path):
    with pytest.raises(CheckpointError, match=r"holds neither a checkpoint .* nor start\.onnx, as seq2seq-export"):
        Translator.load(tmp_path)
    export(made(tokenizers)[0], tokenizers, tmp_path)
    step = tmp_path / "step.onnx"
    step.write_bytes(step.read_bytes()[:100])
    with pytest.raises(CheckpointError, match=r"step\.onnx is no readable ONNX file"):
        Translator.load(tmp_path)
    export(made(tokenizers)[0], tokenizers, tmp_path)
    (tmp_path / "target.model").unlink()
    with pytest.raises(CheckpointError, match=r"holds no source\.model or target\.model"):
        Translator.load(tmp_path)
