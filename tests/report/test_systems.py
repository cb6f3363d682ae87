"""Runs that differ in the seed alone are replicates; everything else that differs is in a system's name."""

import pytest

from seq2seq.errors import ConfigError
from seq2seq.report.runs import read_run
from seq2seq.report.systems import baselines, group
from tests.report.conftest import write_run


@pytest.fixture
def run(tmp_path):
    def make(attention, seed, *overrides, **changes):
        folder = tmp_path / "-".join([attention, str(seed), *overrides, *changes])
        typed = [f"attention={attention}", f"seed={seed}", *overrides]
        return read_run(write_run(folder, attention, seed, overrides=typed, **changes))

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
    model = {"choices": {"attention": "none", "model": "bahdanau"}}
    systems = group([run("none", 1, choices={"attention": "none", "model": "luong"}), run("none", 2, **model)])
    assert [system.name for system in systems] == ["none model=bahdanau", "none model=luong"]


def test_where_a_run_ran_is_no_difference(run):
    elsewhere = ("run_dir=b", "+trainer.devices=2", "callbacks.progress.refresh_rate=9", "hydra.job.name=b")
    systems = group([run("none", 1, "run_dir=a", "trainer=gpu"), run("none", 2, *elsewhere)])
    assert [system.name for system in systems] == ["none"]


@pytest.mark.parametrize("override", ["callbacks=ema", "attention.dropout=0.2", "trainer.precision=bf16-mixed"])
def test_what_changes_the_training_is_a_difference(run, override):
    assert [system.name for system in group([run("none", 1), run("none", 1, override)])] == ["none", f"none {override}"]


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
    choices = {"attention": "none", "experiment": "bottleneck"}
    systems = group([run("none", 1, choices=choices), run("scaled", 1, choices={"experiment": None})])
    assert {name: other.name for name, other in baselines(systems).items()} == {"scaled": "none experiment=bottleneck"}
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
