"""The bench's command: a table, then one line of JSON that adds up."""

import argparse
import json
import math

import pytest
import torch

from seq2seq.cli import bench_scaling, bench_train
from seq2seq.cli.bench import main
from seq2seq.cli.command import run
from seq2seq.probes.cost import machine
from seq2seq.probes.parts import PARTS
from tests.tiny import ATTENTIONS, CONF, SMALL


@pytest.fixture
def bench(capsys, tmp_path):
    def run(*arguments):
        threads = torch.get_num_threads()
        precision = torch.get_float32_matmul_precision()
        overrides = [setting for setting in SMALL if not setting.startswith("debug")]
        try:
            settings = [argument for argument in arguments if not argument.startswith("-")]
            flags = [argument for argument in arguments if argument.startswith("-")]
            main(
                [
                    "train",
                    *overrides,
                    "hidden_size=16",
                    "max_sentences=16",
                    f"cache_dir={tmp_path}",
                    *settings,
                    f"--conf={CONF}",
                    *flags,
                ]
            )
        finally:
            torch.set_num_threads(threads)
            torch.set_float32_matmul_precision(precision)
        return capsys.readouterr().out

    return run


def test_prints_a_table_and_one_line_of_json_and_the_ratios_to_an_earlier_one(bench, tmp_path, monkeypatch):
    monkeypatch.setattr(bench_train, "machine", lambda: machine(size=64, mebibytes=1, repetitions=1))
    flags = ["--batches=2", "--repetitions=2", "--threads=1", "--attention=none", "--model=parallel,luong,parallel"]
    # Neither is anything clipped nor the epoch cut short.
    out = bench("trainer.gradient_clip_val=null", "+trainer.limit_train_batches=1", *flags)
    assert "parallel none" in out.split("{")[0]
    found = json.loads(out.strip().splitlines()[-1])
    assert (found["bench"], found["threads"]) == ("train", 1)
    assert min(found["machine"].values()) > 0
    names = [row["name"] for row in found["rows"]]
    assert names == ["parallel none", "luong none"]
    for row in found["rows"]:
        share, low, high = row["percent_of_limit"]
        assert 0 < low <= share <= high
        assert share == pytest.approx(100 * row["tokens_per_s"][0] / row["limit_tokens_per_s"][0], rel=0.5)
        assert sum(row[f"{part} ms"] for part in PARTS) == pytest.approx(row["step_ms"][0], abs=0.5)
        assert row["percent_of_trainer"][0] > -100
    (tmp_path / "earlier.txt").write_text(out)
    again = bench(*flags[:4], f"--compare={tmp_path / 'earlier.txt'}")
    assert "ratios to" in again
    assert "which has model parallel,luong,parallel" in " ".join(again.split())
    assert "luong none" in again.split("only in")[1]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--attention=typo"], "Could not find 'attention/typo'"),
        (["--batches=0"], "must be at least 1"),
        (["--conf=nowhere"], "holds no train.yaml"),
        (["--threads=100000"], "--threads must be at least 1 and at most"),
        (["--attention=scaled,"], "has an empty name in it"),
        (["attention=scaled"], "attention=NAME is chosen here with --attention"),
        (["trainer.precision=64-true"], "trainer.precision=64-true is not measured here"),
        (["trainer=ddp_cpu"], "trainer.devices=2 is not measured here"),
        (["matmul_precision=foo"], "matmul_precision must be one of"),
        (["max_sentences=0"], "max_sentences"),
        (["data.source=xx"], "xx"),
        (["learning_rate=-1"], "optimizer.* (learning_rate among them) does not fit"),
        (["residual=true"], "residual=true changes nothing here"),
        (["seed=-1"], "seed=-1 is not possible"),
        (["hiden_size=3"], "hiden_size"),
        (["--compare=nowhere.json"], "nowhere.json: no such file"),
        ([f"--compare={CONF / 'train.yaml'}"], "holds no line of JSON"),
    ],
)
def test_what_does_not_fit_is_one_message(bench, arguments, words):
    with pytest.raises(SystemExit) as end:
        bench(*arguments)
    assert str(end.value.code).startswith("error: ")
    assert words in end.value.code


def test_decode_times_every_beam(capsys, tmp_path, command):
    assert command(*SMALL, "run_dir=run").code == 0
    (tmp_path / "lines").write_text("Germany\n\nFrance and Euro\n")
    capsys.readouterr()
    threads = torch.get_num_threads()
    checkpoint = str(tmp_path / "run/checkpoints/best.ckpt")
    try:
        main(["decode", "lines", "--checkpoint", checkpoint, "--beams=1,3", "--repetitions=3", "--threads=1"])
    finally:
        torch.set_num_threads(threads)
    found = json.loads(capsys.readouterr().out.strip().splitlines()[-1])
    assert [row["name"] for row in found["rows"]] == ["greedy", "beam 3"]
    for row in found["rows"]:
        middle, low, high = row["sentences_per_s"]
        assert 0 < low <= middle <= high
        assert 0 < row["percent_products"] < 100
    with pytest.raises(SystemExit, match="--beams"):
        main(["decode", "lines", "--checkpoint", checkpoint, "--beams=one"])
    with pytest.raises(SystemExit, match="no such file"):
        main(["decode", "none", "--checkpoint", checkpoint])


def test_data_counts_what_every_pair_costs(capsys, tmp_path):
    """The plan holds two lengths and a place a pair, 12 bytes, and not much more while it is made."""
    settings = ("data.train_size=6000", "data.valid_size=40", "data.test_size=40", "vocabulary_size=300")
    main(["data", "--batches=20", f"--conf={CONF}", *settings, f"cache_dir={tmp_path}"])
    out = capsys.readouterr().out
    found = json.loads(out.strip().splitlines()[-1])
    (row,) = found["rows"]
    assert (found["bench"], row["pairs"]) == ("data", 6000)
    assert 0.07 < row["memory_mb"] < 5  # of so few pairs, fixed costs are the larger part
    assert row["cached_s"] < row["prepare_s"]
    assert 0 <= row["padding"] < 0.2
    assert "6,000" in out
    with pytest.raises(SystemExit, match="must be at least 1"):
        main(["data", "--batches=0", f"--conf={CONF}"])


def test_attention_times_each_alone_and_counts_what_it_keeps(capsys):
    """Additive attention keeps less than a number for each pair of positions and hidden unit: 4 x 10 x 10 x 64 of them."""
    threads = torch.get_num_threads()
    try:
        main(["attention", "--batch=4", "--source=10", "--target=10", "--size=64", "--repetitions=2", f"--conf={CONF}"])
    finally:
        torch.set_num_threads(threads)
    found = json.loads(capsys.readouterr().out.strip().splitlines()[-1])
    rows = {row["name"]: row for row in found["rows"]}
    assert sorted(rows) == ATTENTIONS
    for name, row in rows.items():
        assert row["ms"][0] > 0
        assert (row["percent_of_limit"] is None) == (name in ("none", "initial_state"))
    assert 0 < rows["additive"]["kept_mib"] < 4 * 4 * 10 * 10 * 64 / 2**20 / 2
    with pytest.raises(SystemExit, match="max_positions"):
        main(["attention", "--attention=location", "--source=300", f"--conf={CONF}"])
    with pytest.raises(SystemExit, match="must be at least 1"):
        main(["attention", "--size=0", f"--conf={CONF}"])


def test_scaling_states_the_growth_of_each_size(capsys, tmp_path, monkeypatch):
    """Steps that take as long as the product of all sizes, the states' squared, grow with the exponents of the count."""
    monkeypatch.setattr(bench_scaling, "_step", lambda options, sizes: lambda: sizes)

    def measured(works, repetitions):
        found = [steps[0]() for steps, _ in works]
        return [([math.prod(sizes) * sizes.hidden / 1e9] * repetitions, []) for sizes in found]

    monkeypatch.setattr(bench_scaling, "measure", measured)
    threads = torch.get_num_threads()
    try:
        main(["scaling", f"--out={tmp_path / 'out'}", f"--conf={CONF}"])
    finally:
        torch.set_num_threads(threads)
    found = json.loads(capsys.readouterr().out.strip().splitlines()[-1])
    assert {row["name"]: row["exponent"][0] for row in found["rows"]} == {
        "batch": 1,
        "hidden": 2,
        "source": 1,
        "target": 1,
        "vocabulary": 1,
    }
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["scaling.png", "scaling.svg"]
    with pytest.raises(SystemExit, match="exists already"):
        main(["scaling", f"--out={tmp_path / 'out'}", f"--conf={CONF}"])


def test_scaling_times_real_steps(capsys, tmp_path, monkeypatch):
    few = {name: axis._replace(values=(8, 16)) for name, axis in bench_scaling.AXES.items()}
    monkeypatch.setattr(bench_scaling, "AXES", few)
    monkeypatch.setattr(bench_scaling.Sizes.__new__, "__defaults__", (4, 16, 5, 5, 100))
    threads, precision = torch.get_num_threads(), torch.get_float32_matmul_precision()
    try:
        main(["scaling", f"--out={tmp_path / 'out'}", "--repetitions=1", "embedding_size=16", f"--conf={CONF}"])
    finally:
        torch.set_num_threads(threads)
        torch.set_float32_matmul_precision(precision)
    found = json.loads(capsys.readouterr().out.strip().splitlines()[-1])
    for row in found["rows"]:
        growth, low, high = row["exponent"]
        assert low <= growth <= high
        assert row["16 ms"][0] / row["8 ms"][0] == pytest.approx(2**growth, rel=0.2)


def test_choices_are_timed_where_they_are_made(capsys, tmp_path):
    settings = [setting for setting in SMALL if not setting.startswith("debug")]
    flags = ["--batches=2", "--repetitions=2", "--threads=1", f"--conf={CONF}", "--attention=additive,scaled"]
    threads, precision = torch.get_num_threads(), torch.get_float32_matmul_precision()
    try:
        main(["choices", *settings, "hidden_size=16", f"cache_dir={tmp_path}", *flags])
    finally:
        torch.set_num_threads(threads)
        torch.set_float32_matmul_precision(precision)
    rows = json.loads(capsys.readouterr().out.strip().splitlines()[-1])["rows"]
    names = [row["name"] for row in rows]
    assert [name for name in names if "all pairs" in name] == [
        "parallel additive: additive scores of all pairs at once"
    ]
    assert sum("as it is" in name for name in names) == 2
    assert all(row["ratio"] == [1, 1, 1] for row in rows if "as it is" in row["name"])
    assert all(row["step_ms"][1] > 0 < row["ratio"][1] for row in rows)


def test_settings_may_stand_anywhere():
    parser, found = argparse.ArgumentParser(), []
    parser.add_argument("overrides", nargs="*")
    parser.add_argument("--batches", type=int)
    run(parser, found.append, ["a=1", "--batches", "2", "b=3"])
    assert (found[0].overrides, found[0].batches) == (["a=1", "b=3"], 2)
    for wrong in (["--typo", "3"], ["a=1", "--batches", "2", "--typo"]):
        with pytest.raises(SystemExit) as end:
            run(parser, found.append, wrong)
        assert end.value.code == 2
