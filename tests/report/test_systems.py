"""Runs that differ in the seed alone are replicates; everything else that differs is in a system's name."""

import pytest
from omegaconf import OmegaConf

from seq2seq.errors import ConfigError
from seq2seq.report.runs import read_run
from seq2seq.report.systems import baselines, group
from tests.report.conftest import write_run


@pytest.fixture
def run(tmp_path):
    def make(attention, seed, *settings, **choices):
        """Settings such as `encoder.hidden_size=32` go to config.yaml."""
        chosen = [f"{group}={name}" for group, name in choices.items()]
        folder = tmp_path / "-".join([attention, str(seed), *settings, *chosen])
        write_run(folder, attention, seed, choices={"attention": attention, **choices})
        config = OmegaConf.from_dotlist([f"seed={seed}", *settings])
        (folder / "config.yaml").write_text(OmegaConf.to_yaml(config))
        return read_run(folder)

    return make


def test_seeds_are_replicates_and_none_comes_first(run):
    systems = group([run("scaled", 2), run("additive", 1), run("none", 1), run("scaled", 1)])
    assert [system.name for system in systems] == ["none", "additive", "scaled"]
    assert [each.seed for each in systems[2].runs] == [1, 2]


def test_what_differs_is_in_the_name_in_the_order_of_its_numbers(run):
    sizes = [run(name, 1, f"hidden_size={size}", "dropout=0.1") for size in (128, 32) for name in ("scaled", "none")]
    names = [system.name for system in group(sizes)]
    assert names == ["none hidden_size=32", "none hidden_size=128", "scaled hidden_size=32", "scaled hidden_size=128"]


def test_a_choice_that_differs_is_in_the_name(run):
    systems = group([run("none", 1, model="luong"), run("none", 2, model="bahdanau")])
    assert [system.name for system in systems] == ["none model=bahdanau", "none model=luong"]


def test_where_a_run_ran_is_no_difference(run):
    here = run("none", 1, "run_dir=a", "callbacks.best.dirpath=a", "data.path=a", trainer="gpu", experiment="multi30k")
    there = run("none", 2, "run_dir=b", "trainer.devices=2", "callbacks.progress.refresh_rate=9", "data.corpus.path=b")
    systems = group([here, there])
    assert [system.name for system in systems] == ["none"]


@pytest.mark.parametrize("setting", ["learning_rate=0.1", "attention.dropout=0.2", "trainer.precision=bf16-mixed"])
def test_what_changes_the_training_is_a_difference(run, setting):
    assert [system.name for system in group([run("none", 1), run("none", 1, setting)])] == ["none", f"none {setting}"]


def test_a_setting_used_in_several_places_is_one_difference(run):
    parts = ("hidden_size", "encoder.hidden_size", "model.encoder.hidden_size", "model.decoder.hidden_size")
    systems = group([run("none", 1, *(f"{part}={size}" for part in parts)) for size in (32, 64)])
    assert [system.name for system in systems] == ["none hidden_size=32", "none hidden_size=64"]


def test_what_a_choice_brings_along_is_no_difference_of_its_own(run):
    forwards = ("encoder.bidirectional=false", "encoder.reverse=false")
    systems = group(
        [
            run("none", 1, "encoder.bidirectional=true", "encoder.reverse=false", encoder="rnn"),
            run("none", 1, *forwards, encoder="rnn_forward"),
            run("none", 1, *forwards, "encoder.layers=2", encoder="rnn_forward"),
        ]
    )
    assert [system.name for system in systems] == [
        "none encoder=rnn",
        "none encoder=rnn_forward",
        "none encoder=rnn_forward encoder.layers=2",
    ]


def test_what_an_attention_is_made_of_follows_from_its_name(run):
    inside = "model.decoder.attention.attention_size=8"
    systems = group([run("none", 1), run("scaled", 1, "attention.attention_size=8", inside)])
    assert [system.name for system in systems] == ["none", "scaled"]


def test_a_setting_that_only_one_attention_has_otherwise_is_shown(run):
    """Nobody should take for the attention's doing what more training did."""
    systems = group([run("none", 1, "max_epochs=6"), run("scaled", 1, "max_epochs=9")])
    assert [system.name for system in systems] == ["none max_epochs=6", "scaled max_epochs=9"]


def test_half_written_settings_are_named(run):
    folder = run("none", 1).folder
    (folder / "config.yaml").write_text("seed: [1")
    with pytest.raises(ConfigError, match=r"config\.yaml is no readable YAML file"):
        read_run(folder)


def test_the_same_setting_and_seed_twice_is_refused(run):
    with pytest.raises(ConfigError, match=r"none-1 and .*none-1-run_dir=b are both none with seed 1"):
        group([run("none", 1), run("none", 1, "run_dir=b")])


def test_the_baseline_has_the_same_variant(run):
    systems = group([run(name, 1, f"hidden_size={size}") for size in (32, 128) for name in ("scaled", "none")])
    found = {name: other.name for name, other in baselines(systems).items()}
    assert found == {
        "scaled hidden_size=32": "none hidden_size=32",
        "scaled hidden_size=128": "none hidden_size=128",
    }


def test_without_a_twin_the_plain_baseline_serves(run):
    systems = group([run("none", 1), run("none", 1, "reverse=true"), run("scaled", 1)])
    found = {name: other.name for name, other in baselines(systems).items()}
    assert found == {"none reverse=true": "none", "scaled": "none"}


def test_the_only_one_of_its_kind_is_the_baseline(run):
    systems = group([run("none", 1, "hidden_size=32"), run("scaled", 1, "hidden_size=64")])
    assert {name: other.name for name, other in baselines(systems).items()} == {
        "scaled hidden_size=64": "none hidden_size=32"
    }
    systems = group([run("none", 2, f"hidden_size={size}") for size in (32, 64)] + [run("scaled", 2)])
    assert baselines(systems) == {}


def test_a_baseline_needs_a_common_seed(run):
    assert baselines(group([run("none", 1), run("scaled", 2)])) == {}


def test_a_missing_baseline_is_an_error_only_if_it_was_asked_for(run):
    systems = group([run("additive", 1), run("scaled", 1)])
    assert baselines(systems) == {}
    assert baselines(systems, "additive").keys() == {"scaled"}
    with pytest.raises(ConfigError, match="--baseline nine: no such system; there are additive, scaled"):
        baselines(systems, "nine")
