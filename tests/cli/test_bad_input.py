"""What a user can get wrong: one message with what was found and what to do, a non-zero exit, nothing touched."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tests.tiny import CONF, SMALL

FILES = {
    "a.en": b"one\ntwo\nthree\n",
    "a.de": b"eins\nzwei\ndrei\n",
    "short.de": b"eins\nzwei\n",
    "empty.en": b"",
    "empty.de": b"",
    "latin1.en": b"one\ncaf\xe9\nthree\n",
    "blank.de": b"\n\n\n",
    "one.en": b"one\n",
    "one.de": b"eins\n",
    "v.en": b"four\n",
    "v.de": b"vier\n",
    "t.en": b"five\n",
    "t.de": b"sechs\n",
    "same.en": b"one\ntwo\nthree\n",
    "conf/attention/broken.yaml": b"a: [1\nb: }",
    "conf/attention/idle.yaml": b"_partial_: true\nscale: 1\n",
}
HELD_OUT = ("data=text", "data.valid=[v.en,v.de]", "data.test=[t.en,t.de]")
CASES = {
    "an attention that does not exist": (
        ["attention=typo"],
        ["Could not find 'attention/typo'", "additive", "none", "scaled"],
    ),
    "an attention's setting that does not exist": (
        ["attention.typo=3"],
        ["attention.typo", "Key 'typo' is not in struct"],
    ),
    "the same, forced": (
        ["+attention.typo=3"],
        ["attention.typo is not known to ScaledDotProductAttention", "attention_size"],
    ),
    "data that does not exist": (["data=typo"], ["Could not find 'data/typo'", "cldr", "multi30k"]),
    "a setting that does not exist": (["hiden_size=3"], ["hiden_size"]),
    "a word for a number": (["hidden_size=wide"], ["hidden_size", "wide"]),
    "a word for a rate": (["learning_rate=fast"], ["learning_rate", "fast"]),
    "a rate below 0": (["learning_rate=-1.0"], ["learning_rate", "-1.0"]),
    "a seed below 0": (["seed=-1"], ["seed=-1", "from 0 to 4294967295"]),
    "a seed too large": (["seed=99999999999999"], ["seed=99999999999999", "from 0 to 4294967295"]),
    "epochs without end": (["max_epochs=-1"], ["max_epochs=-1", "at least 1"]),
    "no epoch": (["max_epochs=0"], ["max_epochs=0", "at least 1"]),
    "no batch to a step": (["trainer.accumulate_grad_batches=0"], ["accumulate_grad_batches=0", "at least 1"]),
    "half a batch to a step": (
        ["trainer.accumulate_grad_batches=1.5"],
        ["accumulate_grad_batches=1.5", "whole number"],
    ),
    "a log every 0 steps": (["trainer.log_every_n_steps=0"], ["log_every_n_steps=0", "at least 1"]),
    "a negative clip": (["trainer.gradient_clip_val=-1"], ["gradient_clip_val=-1", "at least 0, or null"]),
    "a word for a clip": (["trainer.gradient_clip_val=a"], ["gradient_clip_val=a", "a number"]),
    "a word for devices": (["trainer.devices=a"], ["the trainer cannot be built as configured", "`devices`"]),
    "more processes than anyone has": (["trainer.devices=9999"], ["trainer.devices=9999", "cores"]),
    "nodes that nobody starts": (["trainer=ddp_cpu", "trainer.num_nodes=2"], ["num_nodes=2", "torchrun"]),
    "a word for a step": (["scheduler.warmup_steps=a"], ["scheduler"]),
    "one beta": (["optimizer.betas=0.9"], ["optimizer.*"]),
    "a word for a flag of the tokenizer": (["tokenizer.joint=maybe"], ["tokenizer.joint=maybe", "true or false"]),
    "patience below 0": (["callbacks.early_stopping.patience=-1"], ["patience=-1", "at least 0"]),
    "samples below 0": (["callbacks.samples.count=-1"], ["callbacks.samples.count=-1"]),
    "a monitor that nobody logs": (
        ["callbacks.early_stopping.monitor=foo"],
        ["Early stopping conditioned on metric `foo`", "callbacks.early_stopping=null"],
    ),
    "a validation after more batches than there are": (
        ["+trainer.val_check_interval=1000"],
        ["cannot go on as configured", "val_check_interval"],
    ),
    "a number for a callback": (["callbacks.early_stopping=5"], ["callbacks.early_stopping=5", "give null"]),
    "an empty run_dir": (["run_dir="], ["run_dir is empty"]),
    "an empty cache_dir": (["cache_dir="], ["cache_dir is empty"]),
    "a size below 0": (["hidden_size=-4"], ["hidden_size must be at least 2, found -4"]),
    "an average that keeps more than all": (
        ["callbacks=ema", "callbacks.ema.multi_avg_fn.decay=1.5"],
        ["callbacks.ema", "decay must be", "1.5"],
    ),
    "a share above 1": (["subword_dropout=1.5"], ["subword_dropout=1.5 is not possible", "less than 1"]),
    "merges left out where there are none": (
        ["tokenizer=char", "subword_dropout=0.1"],
        ["subword_dropout=0.1 leaves out merges, and tokenizer=char has none", "tokenizer=bpe"],
    ),
    "broken syntax": (["data.train=[a.en"], ["no viable alternative at input '[a.en'"]),
    "an attention without target": (["attention._target_=null"], ["attention needs a _target_"]),
    "a class that is no attention": (["attention._target_=torch.nn.Identity"], ["attention._target_", "Attention"]),
    "heads that do not divide": (
        ["attention=multihead", "attention.heads=5"],
        ["heads=5", "32", "attention.heads"],
    ),
    "no heads": (["attention=multihead", "attention.heads=0"], ["heads=0"]),
    "a word for heads": (["attention=multihead", "attention.heads=two"], ["attention.heads", "whole number", "two"]),
    "a word for a flag": (
        ["model=luong", "model.decoder.input_feeding=maybe"],
        ["decoder.input_feeding", "true or false", "maybe"],
    ),
    "an attention's name where its config belongs": (
        ["model.decoder.attention=additive"],
        ["found 'additive'", "attention=NAME", "attention@encoder.attention=additive"],
    ),
    "an attention that does not wait": (["attention._partial_=false"], ["query_size", "_partial_: true"]),
    "a class that takes no sizes": (["attention._target_=torch.nn.Softmax"], ["attention", "Softmax"]),
    "an encoder that is none": (["encoder._target_=torch.nn.GRU"], ["encoder cannot be built", "'cell'"]),
    "an encoder's attention with a setting of another": (
        ["encoder=self_attention", "+encoder.attention.typo=3"],
        ["encoder.attention.typo is not known to MultiHeadAttention"],
    ),
    "an encoder's attention of no size": (
        ["encoder=self_attention", "encoder.attention.attention_size=0"],
        ["encoder.attention.attention_size must be at least 1"],
    ),
    "too few positions of an encoder's attention": (
        ["encoder=self_attention", "attention@encoder.attention=location", "encoder.attention.max_positions=2"],
        ["max_positions=2", "set encoder.attention.max_positions="],
    ),
    "a size that another part tells": (["+attention.query_size=3"], ["attention.query_size", "cannot be set"]),
    "a scale that is no number": (["attention.scale=nan"], ["attention.scale must be a number above 0", "nan"]),
    "no attention's name": (["attention=null"], ["the settings do not fit together", "attention=NAME"]),
    "a list of attentions": (["attention=[scaled]"], ["attention takes one name"]),
    "an attention that drops everything": (["attention.dropout=1.0"], ["attention.dropout=1.0 is not possible"]),
    "words that are all dropped": (["word_dropout=1.0"], ["word_dropout=1.0 is not possible"]),
    "no embedding": (["embedding_size=0"], ["embedding_size must be at least 1, found 0"]),
    "no layer of a decoder": (["model=luong", "decoder_layers=0"], ["decoder_layers must be at least 1, found 0"]),
    "no state": (["model.decoder.hidden_size=0"], ["model.decoder cannot be built", "hidden_size"]),
    "an encoder of one direction without a state": (
        ["encoder=rnn_forward", "hidden_size=0"],
        ["hidden_size must be at least 1, found 0"],
    ),
    "a config that is no YAML": (["attention=broken", "--config-dir=conf"], ["no YAML", "broken.yaml", "line 2"]),
    "a config without a target": (
        ["attention=idle", "--config-dir=conf"],
        ["attention needs a _target_, the import path of its class", "'scale': 1"],
    ),
    "residuals without a second layer": (["residual=true"], ["residual=true", "encoder_layers=2"]),
    "too few positions": (
        ["attention=location", "attention.max_positions=2"],
        ["max_positions=2", "set attention.max_positions="],
    ),
    "half a beam": (["decoding=beam", "decoding.beam=2.5"], ["decoding.beam must be a whole number, found 2.5"]),
    "a word for a penalty": (["decoding=beam", "decoding.alpha=x"], ["decoding.alpha must be a number, found 'x'"]),
    "a word for a cap": (["decoding.cap_ratio=x"], ["decoding.cap_ratio must be a number, found 'x'"]),
    "no chance at all": (["decoding=sampling", "decoding.temperature=0.0"], ["decoding.temperature", "0.0"]),
    "a word for true or false": (["residual=maybe"], ["residual", "maybe", "bool"]),
    "an output that does not exist": (["model=bahdanau", "model.decoder.output=relu"], ["maxout or tanh", "relu"]),
    "a decoder that does not exist": (["model=typo"], ["Could not find 'model/typo'", "bahdanau", "luong", "parallel"]),
    "an encoder that does not exist": (["encoder=typo"], ["Could not find 'encoder/typo'", "self_attention"]),
    "self-attention without layers": (
        ["encoder=self_attention", "encoder_layers=0"],
        ["encoder_layers", "at least 1, found 0"],
    ),
    "an encoder without layers": (["encoder_layers=0"], ["encoder_layers", "found 0"]),
    "self-attention of an odd size": (["encoder=self_attention", "hidden_size=33"], ["hidden_size", "even", "33"]),
    "a self-attention that is none": (
        ["encoder=self_attention", "encoder.attention._target_=torch.nn.Identity"],
        ["attention._target_", "Attention"],
    ),
    "a negative scale": (["attention.scale=-1.0"], ["attention.scale", "-1.0"]),
    "a negative size": (["attention.attention_size=-1"], ["attention.attention_size", "-1"]),
    "an odd size": (["hidden_size=33"], ["hidden_size", "even", "33"]),
    "one layer": (["decoder_layers=1"], ["decoder_layers", "found 1"]),
    "a cell that does not exist": (["cell=gruu"], ["cell", "gru, lstm", "gruu"]),
    "a tying that does not exist": (["tying=some"], ["tying", "some"]),
    "tying of two vocabularies": (["tokenizer.joint=false"], ["tying=all", "tokenizer.joint=true"]),
    "a dropout of 2": (["dropout=2.0"], ["dropout", "2"]),
    "a language code that Babel does not know": (["data.target=xx"], ["data.target", "xx"]),
    "two equal languages": (["data.target=en"], ["data.source", "data.target", "en"]),
    "no items": (["data.max_items=0"], ["data.max_items", "0"]),
    "a vocabulary that is too large": (["vocabulary_size=100000"], ["vocabulary_size=100000", "largest possible"]),
    "a vocabulary that is too small": (["vocabulary_size=10"], ["vocabulary_size=10", "smallest possible"]),
    "a tokenizer that does not exist": (["tokenizer.kind=bytes"], ["bytes", "bpe"]),
    "a precision of products that does not exist": (["matmul_precision=low"], ["matmul_precision", "medium", "low"]),
    "no ceiling": (["max_tokens=null", "max_sentences=null"], ["max_tokens", "max_sentences"]),
    "a ceiling below every pair": (["max_tokens=3"], ["max_tokens=3"]),
    "a GPU where there is none": (["trainer=gpu"], ["trainer=cpu"]),
    "many GPUs where there are none": (["trainer=ddp"], ["trainer=cpu"]),
    "a trainer's setting that does not exist": (["+trainer.typo=1"], ["typo"]),
    "a precision that does not exist": (["trainer.precision=12"], ["precision", "12"]),
    "a run_dir below a file": (["run_dir=a.en/run"], ["run_dir=a.en/run", "choose another run_dir"]),
    "a run_dir that is a file": (["run_dir=a.en"], ["run_dir=a.en", "choose another run_dir"]),
    "a cache_dir below a file": (["cache_dir=a.en/cache"], ["cache_dir", "a.en"]),
    "nothing to resume": (["resume=last"], ["resume=last", "run_dir=DIR"]),
    "nothing to resume there": (
        ["run_dir=new", "resume=last"],
        ["new holds no checkpoint to resume from", "start it again without resume"],
    ),
    "a resume file that is missing": (["resume=none.ckpt"], ["no checkpoint at none.ckpt"]),
    "a resume file that is none": (["resume=a.en"], ["a.en is no readable checkpoint"]),
    "text without files": (["data=text"], ["data.train"]),
    "a missing file": ([*HELD_OUT, "data.train=[a.en,none.de]"], ["none.de"]),
    "a folder for a file": ([*HELD_OUT, "data.train=[a.en,.]"], ["folder"]),
    "an empty corpus": (
        [*HELD_OUT, "data.train=[empty.en,empty.de]"],
        ["empty.en: holds no line; data.train needs at least one pair"],
    ),
    "unequal line counts": ([*HELD_OUT, "data.train=[a.en,short.de]"], ["a.en", "short.de", "3", "2"]),
    "invalid UTF-8": ([*HELD_OUT, "data.train=[latin1.en,a.de]"], ["latin1.en, line 2", "UTF-8"]),
    "no pair with two sides": ([*HELD_OUT, "data.train=[a.en,blank.de]"], ["train", "3"]),
    "identical source and target": ([*HELD_OUT, "data.train=[a.en,same.en]"], ["same text"]),
    "one file for both sides": ([*HELD_OUT, "data.train=[a.en,a.en]"], ["a.en"]),
    "a corpus of one pair": ([*HELD_OUT, "data.train=[one.en,one.de]"], ["vocabulary_size=300", "largest possible"]),
    "a folder of data that is missing": (["data=multi30k", "data.path=none"], ["data.path", "none"]),
}


@pytest.fixture
def files():
    for name, content in FILES.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_bytes(content)


@pytest.mark.parametrize("case", CASES)
def test_one_message_says_what_was_found_and_what_to_do(command, files, case):
    arguments, words = CASES[case]
    outcome = command(*settings_for(arguments), *arguments)
    assert outcome.code not in (0, None)
    for word in words:
        assert word in outcome.error
    assert "Traceback" not in outcome.error
    assert "$VALUE" not in outcome.error
    assert outcome.error.count("error:") == 1
    assert {name: Path(name).read_bytes() for name in FILES} == FILES
    assert not list(Path().rglob("scores.json"))


def settings_for(arguments):
    """The small settings that make sense for the data at hand."""
    if any(argument.startswith("data=") for argument in arguments):
        return [setting for setting in SMALL if not setting.startswith("data.")]
    return SMALL


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (["attention=none"], ["holds another model", "attention"]),
        (["hidden_size=16"], ["holds another model", "32", "16"]),
        (["data.seed=1"], ["was trained with another source tokenizer", "resume with the data"]),
        (["dropout=0.1"], ["holds another model: ", "dropout is 0.2 there and 0.1 here"]),
        (["learning_rate=0.1"], ["was begun with learning_rate=0.004, here it is 0.1", "config.yaml lists"]),
        (["seed=7"], ["was begun with seed=1, here it is 7"]),
        (["callbacks=ema"], ["was begun with callbacks.ema"]),
    ],
)
def test_a_resume_file_of_another_model_is_refused(command, finished, settings, words):
    outcome = command(*SMALL, f"resume={finished / 'checkpoints' / 'last.ckpt'}", "run_dir=new", *settings)
    assert outcome.code not in (0, None)
    for word in words:
        assert word in outcome.error
    assert "Traceback" not in outcome.error


def test_a_resume_file_with_weights_alone_is_refused(command, finished):
    checkpoint = torch.load(finished / "checkpoints/last.ckpt", weights_only=True)
    del checkpoint["optimizer_states"]
    torch.save(checkpoint, "mean.ckpt")
    outcome = command(*SMALL, "resume=mean.ckpt", "run_dir=new")
    assert outcome.code == 1
    assert "mean.ckpt holds weights alone" in outcome.error


def test_fewer_epochs_than_were_trained_are_refused(command):
    assert command(*SMALL, "run_dir=run", "max_epochs=3").code == 0
    outcome = command(*SMALL, "run_dir=run", "resume=last", "max_epochs=1")
    assert outcome.code == 1
    assert outcome.error.startswith("error: the training cannot go on as configured: ")
    assert "max_epochs=1" in outcome.error


def test_a_truncated_resume_file_is_refused_and_left_alone(command, finished):
    shutil.copytree(finished, "run")
    path = Path("run/checkpoints/last.ckpt")
    half = path.read_bytes()[: path.stat().st_size // 2]
    path.write_bytes(half)
    outcome = command(*SMALL, "run_dir=run", "resume=last")
    assert outcome.code not in (0, None)
    assert "last.ckpt is no readable checkpoint" in outcome.error
    assert path.read_bytes() == half
    assert Path("run/scores.json").read_bytes() == (finished / "scores.json").read_bytes()


def test_a_line_of_10000_words_is_left_out_and_counted(command, files):
    lines = [b"one two three four five six"] * 40
    Path("long.en").write_bytes(b"\n".join([*lines, b"one " * 10_000]) + b"\n")
    Path("long.de").write_bytes(b"\n".join([b"eins zwei drei vier"] * 40 + [b"eins " * 10_000]) + b"\n")
    outcome = command(
        *settings_for(["data=text"]), *HELD_OUT, "data.train=[long.en,long.de]", "vocabulary_size=40", "run_dir=run"
    )
    assert outcome.code == 0, outcome.error
    assert "train: 40 pairs (dropped: 1 longer than max_length=200 tokens)" in outcome.out


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("attention=typo", "Could not find 'attention/typo'"),
        ("learning_rate=-1.0", "Invalid learning rate: -1.0"),
        ("+attention.typo=3", "is not known to ScaledDotProductAttention; it takes attention_size, scale, dropout\n"),
    ],
)
def test_the_exit_code_and_message_of_a_real_process(tmp_path, setting, words):
    process = subprocess.run(
        [sys.executable, CONF.parent / "train.py", "run_dir=run", *SMALL, setting],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert process.returncode == 1
    assert process.stderr.startswith("error: ")
    assert words in process.stderr
    assert not list(tmp_path.glob("run/*.json"))
