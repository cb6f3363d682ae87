"""The bench's command: a table, then one line of JSON that adds up."""

import json

import pytest
import torch

from seq2seq.cli.bench import main
from tests.tiny import CONF, SMALL


@pytest.fixture
def bench(capsys, tmp_path):
    def run(*arguments):
        threads = torch.get_num_threads()
        precision = torch.get_float32_matmul_precision()
        overrides = [setting for setting in SMALL if not setting.startswith("debug")]
        try:
            settings = [argument for argument in arguments if not argument.startswith("-")]
            flags = [argument for argument in arguments if argument.startswith("-")]
            main(["train", *overrides, "hidden_size=16", f"cache_dir={tmp_path}", *settings, f"--conf={CONF}", *flags])
        finally:
            torch.set_num_threads(threads)
            torch.set_float32_matmul_precision(precision)
        return capsys.readouterr().out

    return run


def test_prints_a_table_and_one_line_of_json(bench):
    flags = ["--batches=2", "--repetitions=2", "--threads=1", "--attention=none,additive", "--model=parallel,luong"]
    out = bench(*flags)
    assert "parallel" in out.split("{")[0]
    found = json.loads(out.strip().splitlines()[-1])
    assert (found["bench"], found["threads"]) == ("train", 1)
    assert [(row["model"], row["attention"]) for row in found["rows"]] == [
        ("parallel", "none"),
        ("parallel", "additive"),
        ("luong", "none"),
        ("luong", "additive"),
    ]
    for row in found["rows"]:
        low, high = row["percent_of_limit_range"]
        assert 0 < low <= row["percent_of_limit"] <= high
        assert row["percent_of_limit"] == pytest.approx(100 * row["tokens_per_s"] / row["limit_tokens_per_s"], rel=0.5)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--attention=typo"], "Could not find 'attention/typo'"),
        (["--batches=0"], "must be at least 1"),
        (["--conf=nowhere"], "holds no train.yaml"),
        (["hiden_size=3"], "hiden_size"),
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
    assert [row["beam"] for row in found["rows"]] == [1, 3]
    for row in found["rows"]:
        assert 0 < row["range"][0] <= row["sentences_per_s"] <= row["range"][1]
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
    assert (found["bench"], found["pairs"]) == ("data", 6000)
    assert 0.07 < found["memory_mb"] < 5  # of so few pairs, fixed costs are the larger part
    assert found["cached_s"] < found["prepare_s"]
    assert 0 <= found["padding"] < 0.2
    assert "6,000" in out
    with pytest.raises(SystemExit, match="must be at least 1"):
        main(["data", "--batches=0", f"--conf={CONF}"])
