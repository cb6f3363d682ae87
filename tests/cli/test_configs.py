"""Every config file, found by globbing: it composes with the rest, and what it describes can be built."""

import pytest
from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.utils import instantiate
from omegaconf import OmegaConf, open_dict

import seq2seq.cli.entry
from seq2seq.cli import settings
from seq2seq.models.recipe import build
from tests.tiny import CONF

FILES = sorted(path for path in CONF.glob("*/*.yaml"))
GROUPS = {path.parent.name for path in FILES}


@pytest.fixture
def composed(tmp_path):
    """The config with these overrides, as a run would see it."""

    def run(*overrides):
        settings.register()
        seq2seq.cli.entry.register_resolvers()
        GlobalHydra.instance().clear()
        with initialize_config_dir(str(CONF), version_base="1.3"):
            config = compose("train", [f"run_dir={tmp_path}/run", *overrides], return_hydra_config=True)
        with open_dict(config):
            config.hydra.runtime.output_dir = str(tmp_path)
        HydraConfig.instance().set_config(config)
        return config

    yield run
    GlobalHydra.instance().clear()
    HydraConfig.instance().cfg = None


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}={path.stem}")
def test_every_config_composes_and_builds(composed, path, tmp_path):
    group, name = path.parent.name, path.stem
    if group == "logger" and name != "default":
        pytest.importorskip(name, reason=f"the extra '{name}' is not installed")
    here = ["trainer.accelerator=cpu", "trainer.devices=1"] if group == "trainer" else []
    if group == "data" and name == "text":
        lines = {"train": "a\tb\n", "valid": "c\td\n", "test": "e\tf\n"}
        for split, line in lines.items():
            (tmp_path / f"{split}.tsv").write_text(line)
            here.append(f"data.{split}={tmp_path}/{split}.tsv")
    config = composed(f"{group}={name}", *here)
    OmegaConf.to_container(OmegaConf.masked_copy(config, [key for key in config if key != "hydra"]), resolve=True)
    recipe = OmegaConf.to_container(config.model, resolve=True)
    assert build(recipe, source_vocabulary=30, target_vocabulary=30, joint=True).parameter_counts()["total"] > 0
    for shelf in ("datamodule", "decoding", "optimizer", "scheduler"):
        assert instantiate(config[shelf]) is not None
    for part in [*config.callbacks.values(), *config.logger.values()]:
        assert part is None or instantiate(part) is not None
    assert instantiate(config.trainer) is not None


def test_every_shelf_is_in_the_table_of_contents():
    contents = OmegaConf.load(CONF / "train.yaml").defaults
    shelves = {str(key).removeprefix("optional ") for entry in contents if not isinstance(entry, str) for key in entry}
    assert shelves == GROUPS | {"experiment"}


def test_every_setting_has_a_type():
    named = {key for key in OmegaConf.load(CONF / "train.yaml") if key not in ("defaults", "hydra")}
    assert named <= set(settings.Settings.__dataclass_fields__)


def test_every_data_set_has_its_recipe():
    assert {path.stem for path in (CONF / "data").glob("*.yaml")} == {
        path.stem for path in (CONF / "recipe").glob("*.yaml")
    }


def test_a_recipe_sets_what_the_command_line_then_changes(composed):
    assert composed("data=multi30k").vocabulary_size == 5000
    assert composed("data=multi30k", "vocabulary_size=700").tokenizer.vocabulary_size == 700
    assert composed("data=multi30k", "recipe=cldr").vocabulary_size == 2000
