"""Recipes: what they build, and what they refuse to build."""

import pytest

from seq2seq.errors import ConfigError
from seq2seq.models.recipe import TRUSTED, build
from tests.tiny import tiny_recipe

SIZES = {"source_vocabulary": 10, "target_vocabulary": 10, "joint": True}


def test_a_partial_waits():
    linear = build({"_target_": "torch.nn.Linear", "_partial_": True, "in_features": 2})
    assert linear(out_features=3).weight.shape == (3, 2)


@pytest.mark.parametrize(
    ("recipe", "words"),
    [
        ({"cell": "gru"}, "attention needs a _target_"),
        ("scaled", "attention needs a _target_"),
        ({"_target_": "seq2seq.attention.typo.Typo"}, "'seq2seq.attention.typo.Typo' cannot be imported"),
        ({"_target_": "seq2seq.attention.scaled.Typo"}, "cannot be imported"),
        ({"_target_": "nodots"}, "cannot be imported"),
        ({"_target_": "seq2seq.types.PAD"}, "is no class"),
    ],
)
def test_a_recipe_that_names_no_class_is_refused(recipe, words):
    with pytest.raises(ConfigError, match=words):
        build(recipe, key="attention")


def test_an_unknown_argument_names_its_shelf_and_the_known_ones():
    recipe = tiny_recipe()
    recipe["decoder"]["attention"] |= {"typo": 3}
    with pytest.raises(ConfigError, match=r"attention\.typo is not known to ScaledDotProductAttention.*attention_size"):
        build(recipe, **SIZES)


@pytest.mark.parametrize(
    "target",
    [
        "os.system",
        "builtins.eval",
        "torch.hub.load",
        "torch.load",
        "subprocess.Popen",
        "seq2seq.models.recipe.importlib.import_module",
    ],
)
def test_a_recipe_from_a_checkpoint_may_not_name_foreign_things(target):
    recipe = tiny_recipe()
    recipe["encoder"] = {"_target_": target, "_partial_": True}
    with pytest.raises(ConfigError, match=r"encoder\._target_"):
        build(recipe, TRUSTED, **SIZES)


def test_re_exports_do_not_widen_the_trust(monkeypatch):
    import subprocess

    import seq2seq.models.recipe

    monkeypatch.setattr(seq2seq.models.recipe, "borrowed", subprocess.Popen, raising=False)
    with pytest.raises(ConfigError, match="no class of seq2seq"):
        build({"_target_": "seq2seq.models.recipe.borrowed", "_partial_": True}, TRUSTED)


def test_a_trusted_recipe_builds():
    assert build(tiny_recipe(), TRUSTED, **SIZES).parameter_counts()["total"] > 0
