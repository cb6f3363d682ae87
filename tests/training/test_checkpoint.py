"""Checkpoints: complete in themselves, and closed to strangers."""

import json

import pytest
import torch
from lightning.pytorch.callbacks import ModelCheckpoint

from seq2seq.errors import CheckpointError
from seq2seq.training.checkpoint import KEY, average, load, read
from tests.training.conftest import make_task, make_trainer


@pytest.fixture
def trained(make_data, tmp_path):
    data = make_data()
    task = make_task(data)
    folder = tmp_path / "checkpoints"
    best = ModelCheckpoint(folder, filename="best", monitor="valid/bleu", mode="max", enable_version_counter=False)
    last = ModelCheckpoint(folder, filename="last", enable_version_counter=False)
    make_trainer(tmp_path, 3, [best, last], enable_checkpointing=True).fit(task, data)
    return tmp_path / "checkpoints" / "last.ckpt", task, data


def test_a_checkpoint_is_complete_in_itself(trained):
    path, task, data = trained
    loaded = load(path)
    batch = data.store.split("test").batch(torch.arange(16).numpy())
    expected = [found.tokens for found in task.search(task.model.eval(), batch.source)]
    assert [found.tokens for found in task.search(loaded.model, batch.source)] == expected
    assert loaded.tokenizers.joint
    assert loaded.tokenizers.source.model == data.tokenizers.source.model
    assert not loaded.model.training


def test_best_and_last_are_both_there_and_hold_no_code(trained):
    path = trained[0]
    for name in ("best.ckpt", "last.ckpt"):
        assert torch.load(path.with_name(name), weights_only=True)[KEY]["format"] == 1


def test_a_missing_file_says_where_it_was_looked_for(tmp_path):
    with pytest.raises(CheckpointError, match=r"no checkpoint at .*none\.ckpt"):
        load(tmp_path / "none.ckpt")


@pytest.mark.parametrize("share", [0.0, 0.3, 0.99])
def test_a_truncated_file_is_refused(trained, share):
    path = trained[0]
    whole = path.read_bytes()
    path.write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(CheckpointError, match=r"no readable checkpoint.*truncated"):
        load(path)


def test_a_file_of_another_kind_is_refused(tmp_path):
    (tmp_path / "text.ckpt").write_text("not a checkpoint")
    with pytest.raises(CheckpointError, match="no readable checkpoint"):
        read(tmp_path / "text.ckpt")
    torch.save({"state_dict": {}}, tmp_path / "other.ckpt")
    with pytest.raises(CheckpointError, match="not one of this project"):
        read(tmp_path / "other.ckpt")


def test_nothing_in_a_checkpoint_is_executed(tmp_path):
    class Bomb:
        def __reduce__(self):
            return (open, (str(tmp_path / "exploded"), "w"))

    torch.save({KEY: {"format": 1}, "payload": Bomb()}, tmp_path / "bomb.ckpt")
    with pytest.raises(CheckpointError):
        load(tmp_path / "bomb.ckpt")
    assert not (tmp_path / "exploded").exists()


def changed(path, **changes):
    checkpoint = torch.load(path, weights_only=True)
    checkpoint[KEY] |= changes
    torch.save(checkpoint, path)


def test_another_format_is_refused(trained):
    changed(trained[0], format=99)
    with pytest.raises(CheckpointError, match="format 99, this version reads format 1"):
        load(trained[0])


@pytest.mark.parametrize("target", ["os.system", "torch.hub.load", "seq2seq.models.recipe.importlib.import_module"])
def test_a_recipe_that_names_foreign_code_is_refused(trained, target):
    recipe = json.loads(torch.load(trained[0], weights_only=True)[KEY]["recipe"])
    recipe["encoder"] = {"_target_": target, "_partial_": True}
    changed(trained[0], recipe=json.dumps(recipe))
    with pytest.raises(CheckpointError, match=r"encoder\._target_"):
        load(trained[0])


def test_weights_of_another_size_are_refused(trained):
    recipe = json.loads(torch.load(trained[0], weights_only=True)[KEY]["recipe"])
    recipe["embedding_size"] = 10
    changed(trained[0], recipe=json.dumps(recipe))
    with pytest.raises(CheckpointError, match=r"cannot be used.*size mismatch"):
        load(trained[0])


def test_a_damaged_tokenizer_is_refused(trained):
    changed(trained[0], source_tokenizer=torch.zeros(10, dtype=torch.uint8))
    with pytest.raises(CheckpointError, match="cannot be used"):
        load(trained[0])


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda checkpoint: checkpoint.pop("state_dict"), "state_dict holds no weights"),
        (lambda checkpoint: checkpoint.update(state_dict=5), "state_dict holds no weights"),
        (lambda checkpoint: checkpoint["state_dict"].update({"model.output.bias": "x"}), "state_dict holds no weights"),
        (
            lambda checkpoint: checkpoint["state_dict"]["model.output.bias"].fill_(torch.nan),
            r"model\.output\.bias.*nan or inf",
        ),
        (lambda checkpoint: checkpoint[KEY].pop("recipe"), "recipe is no JSON"),
        (lambda checkpoint: checkpoint[KEY].update(recipe="{"), "recipe is no JSON"),
        (lambda checkpoint: checkpoint[KEY].update(recipe="[1]"), "recipe is no JSON of an object"),
        (lambda checkpoint: checkpoint[KEY].update(recipe="[" * 100_000), "recipe is no JSON of an object"),
        (lambda checkpoint: checkpoint["state_dict"].update({3: torch.zeros(1)}), "state_dict holds no weights"),
        (
            lambda checkpoint: checkpoint["state_dict"].update({"model.x": torch.eye(3).to_sparse()}),
            r"model\.x is no plain tensor",
        ),
        (lambda checkpoint: checkpoint[KEY].update(source_tokenizer="text"), "source_tokenizer"),
        (lambda checkpoint: checkpoint[KEY].update(target_tokenizer=3), "target_tokenizer"),
        (lambda checkpoint: checkpoint[KEY].pop("target_tokenizer"), "target_tokenizer is missing"),
    ],
)
def test_what_is_missing_or_of_the_wrong_kind_is_named(trained, spoil, words):
    checkpoint = torch.load(trained[0], weights_only=True)
    spoil(checkpoint)
    torch.save(checkpoint, trained[0])
    with pytest.raises(CheckpointError, match=rf"last\.ckpt is damaged: .*{words}"):
        load(trained[0])


@pytest.mark.parametrize(
    ("recipe", "words"),
    [
        ({"encoder": {"_target_": "torch.nn.Identity", "_partial_": True}}, "cannot be used"),
        ({"_target_": "seq2seq.models.embedding.Embedding"}, "cannot be used"),
        (None, "its recipe makes a Identity, where a Seq2Seq is expected"),
    ],
)
def test_a_recipe_of_something_else_is_refused(trained, recipe, words):
    checkpoint = torch.load(trained[0], weights_only=True)
    before = json.loads(checkpoint[KEY]["recipe"])
    made = {"_target_": "torch.nn.Identity"} if recipe is None else before | recipe
    checkpoint[KEY]["recipe"] = json.dumps(made)
    torch.save(checkpoint, trained[0])
    with pytest.raises(CheckpointError, match=words):
        load(trained[0])


def test_a_format_that_is_no_number_is_refused(trained):
    changed(trained[0], format=torch.tensor([1, 1]))
    with pytest.raises(CheckpointError, match="this version reads format 1"):
        load(trained[0])


def test_no_mean_of_weights_of_other_sizes(trained):
    paths = [trained[0], trained[0].with_name("best.ckpt")]
    checkpoint = torch.load(paths[1], weights_only=True)
    checkpoint["state_dict"]["model.output.bias"] = torch.zeros(1)
    torch.save(checkpoint, paths[1])
    with pytest.raises(CheckpointError, match="hold other models or vocabularies"):
        average(paths)


@pytest.mark.parametrize("lacking", [0, 1])
def test_no_mean_of_checkpoints_one_of_which_lacks_a_weight(trained, lacking):
    paths = [trained[0], trained[0].with_name("best.ckpt")]
    checkpoint = torch.load(paths[lacking], weights_only=True)
    del checkpoint["state_dict"]["model.output.bias"]
    torch.save(checkpoint, paths[lacking])
    with pytest.raises(CheckpointError, match="hold other models or vocabularies"):
        average(paths)
