"""The whole report: files, sentences with numbers, one message for what a user can get wrong."""

import csv
import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ET

import pytest

from seq2seq.cli.compare import main
from seq2seq.errors import ConfigError
from seq2seq.report.compare import compare
from seq2seq.report.comparison import gather
from seq2seq.report.sweep import swept
from tests.report.conftest import forgetful, perfect, slips, write_run

FIGURES = (
    "bleu_by_length",
    "learning_by_tokens",
    "learning_by_minutes",
    "accuracy_by_position",
    "recall_by_position",
    "gradient_reach",
)
TABLES = ("table", "results", "runs", "left_out", "bleu_by_length", "learning", "alignment", "accuracy_by_position")
TABLES += ("recall_by_position", "gradient_reach")


def test_every_figure_and_table_is_a_file(runs, tmp_path):
    page = compare([runs], tmp_path / "report", resamples=50)
    assert page == tmp_path / "report" / "index.html"
    for name in FIGURES:
        assert (page.parent / "figures" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert ET.parse(page.parent / "figures" / f"{name}.svg").getroot().tag.endswith("svg")
    assert {path.stem for path in (page.parent / "tables").glob("*.md")} == set(TABLES)
    for name in TABLES:
        with (page.parent / "tables" / f"{name}.csv").open(newline="") as file:
            header, *rows = csv.reader(file)
        assert all(len(row) == len(header) for row in rows)
        assert rows or name == "left_out"


def test_the_same_runs_give_the_same_report(runs, tmp_path):
    one, two = (compare([runs], tmp_path / name, resamples=50) for name in ("one", "two"))
    assert one.read_bytes() == two.read_bytes()
    for name in FIGURES:
        assert (one.parent / f"figures/{name}.svg").read_bytes() == (two.parent / f"figures/{name}.svg").read_bytes()


def test_the_page_asks_for_nothing_from_outside(runs, tmp_path):
    text = compare([runs], tmp_path / "report", resamples=50).read_text()
    assert "http:" not in text
    assert "https:" not in text
    assert re.findall(r"""(?:src|href)=["'](?!#|data:,|tables/|figures/)""", text) == []
    assert "url(" not in text.replace("url(#", "")


def test_the_page_names_no_part_twice(runs, tmp_path):
    names = re.findall(r'\bid="([^"]+)"', compare([runs], tmp_path / "report", resamples=50).read_text())
    assert len(names) == len(set(names))


def test_text_of_a_corpus_is_text_on_the_page(tmp_path):
    folder = write_run(tmp_path / "run", "scaled")
    text = (folder / "hypotheses.tsv").read_text().replace("yewroot", "</script><b>")
    (folder / "hypotheses.tsv").write_text(text)
    page = compare([folder], tmp_path / "report", resamples=50).read_text()
    assert "<b>" not in page
    assert "&lt;b&gt;" in page
    data = re.search(r'<script type="application/json" id="weights">(.*?)</script>', page, re.DOTALL)[1]
    assert any("</script><b>" in sentence["source"] for sentence in json.loads(data)["sentences"])


def test_the_three_sentences_hold_the_measured_numbers(runs):
    comparison = gather([runs], edges=[8], resamples=200)
    looking, without, change = comparison.headline
    for word in ("4 runs of 2 systems", "none, scaled", "2 seeds each", "120 test sentences of trees"):
        assert word in looking
    short, long = comparison.lengths["none"]
    assert "Without attention" in without
    assert f"falls from {short.bleu:.1f} on sources of 4-8 words to {long.bleu:.1f} on 9-15" in without
    assert f"({100 * long.bleu / short.bleu:.0f}% of that)" in without
    versus = comparison.best.versus
    assert f"Against none, scaled scores {versus.delta:.1f} BLEU more" in change
    assert f"p at most {versus.p_largest:.3f} for each of 2 seeds" in change
    assert f"{versus.interval.low:+.1f} to {versus.interval.high:+.1f}" in change
    assert f"{comparison.ratios['scaled'].ratio:.1f} times the relative gradient" in change
    assert "error rate of 0.25" in change


def test_equal_systems_are_said_not_to_differ(tmp_path):
    for name in ("none", "scaled"):
        write_run(tmp_path / "runs" / name, name, 1, slips(5), probed=False)
    _, without, change = gather([tmp_path / "runs"], resamples=100).headline
    assert "does not clearly change" in without
    assert "not significant, p up to 1.00" in change
    assert "gradient" not in change


def test_without_a_baseline_the_sentences_say_so(tmp_path):
    write_run(tmp_path / "runs" / "a", "additive")
    write_run(tmp_path / "runs" / "s", "scaled")
    _, without, change = gather([tmp_path / "runs"], resamples=100).headline
    assert "No run here has the fixed vector alone" in without
    assert "not measured here" in change


def test_runs_without_probes_are_named_where_something_is_missing(tmp_path):
    write_run(tmp_path / "runs" / "new", "none", 1, forgetful)
    write_run(tmp_path / "runs" / "old", "scaled", 1, perfect, probed=False)
    page = compare([tmp_path / "runs"], tmp_path / "report", resamples=50).read_text()
    notes = re.findall(r"<p>Not measured here, as there is no probes.npz: ([^<]*)\.</p>", page)
    assert notes == [str(tmp_path / "runs" / "old")] * 3


def test_one_plain_old_run_is_enough_for_a_report(tmp_path):
    folder = write_run(tmp_path / "run", "scaled", probed=False)
    for name in ("metrics.csv", "attention.npz"):
        (folder / name).unlink()
    scores = json.loads((folder / "scores.json").read_text())
    for name in ("peak_mib", "git_commit", "versions", "choices"):
        del scores[name]
    (folder / "scores.json").write_text(json.dumps(scores))
    page = compare([folder], tmp_path / "report", resamples=50).read_text()
    assert "No validations in metrics.csv" in page
    assert "100.00" in page


def test_what_is_left_out_is_on_the_page_and_in_a_table(runs, tmp_path):
    (runs / "0" / "scores.json").write_text("{")
    page = compare([runs], tmp_path / "report", resamples=50)
    assert "scores.json is no whole JSON file" in page.read_text()
    assert str(runs / "0") in (page.parent / "tables" / "left_out.csv").read_text()


def test_the_command_prints_the_table_and_the_place(runs, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    (runs / "11").mkdir()
    (runs / "11" / "error.txt").write_text("out of memory\n")
    main([str(runs), "--out", str(tmp_path / "report"), "--edges", "8,12", "--by", "items", "--resamples", "50"])
    printed = capsys.readouterr().out
    assert "scaled" in printed
    assert f"left out {runs / '11'}: out of memory" in printed
    assert f"report: {tmp_path / 'report' / 'index.html'}" in printed
    assert (
        (tmp_path / "report" / "tables" / "bleu_by_length.csv").read_text().startswith("items,n,none,scaled\n4-8,50,")
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--edges", "5,x"], "--edges 5,x: whole numbers"),
        (["--edges", "9,5"], "--edges 9,5"),
        (["--bins", "0"], "--bins 0"),
        (["--resamples", "0"], "--resamples 0"),
        (["--baseline", "typo"], "--baseline typo: no such system; there are none, scaled"),
    ],
)
def test_a_wrong_argument_ends_as_one_message(runs, tmp_path, arguments, words):
    with pytest.raises(SystemExit) as end:
        main([str(runs), "--out", str(tmp_path / "report"), *arguments])
    assert str(end.value).startswith("error: ")
    assert words in str(end.value)
    assert "\n" not in str(end.value)
    assert not (tmp_path / "report").exists()


def test_unequal_test_sets_are_refused(runs, tmp_path):
    path = runs / "10" / "hypotheses.tsv"
    path.write_text(path.read_text().replace("yewroot", "weed"))
    with pytest.raises(ConfigError, match="not tested on the same sentences"):
        compare([runs], tmp_path / "report")


def test_a_folder_that_cannot_be_written_is_named(runs, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"--out .*file/report cannot be written"):
        compare([runs], tmp_path / "file" / "report", resamples=10)


def test_the_command_as_a_process_fails_with_one_line(tmp_path):
    command = [sys.executable, "-m", "seq2seq.cli.compare", str(tmp_path / "nowhere"), "--out", str(tmp_path / "out")]
    process = subprocess.run(command, capture_output=True, text=True)
    assert process.returncode == 1
    assert process.stderr.startswith("error: ")
    assert process.stderr.count("\n") == 1


def test_a_sweep_over_a_number_is_drawn_along_it(tmp_path):
    for at, (name, size) in enumerate((name, size) for name in ("none", "scaled") for size in (32, 256)):
        how = perfect if name == "scaled" or size == 256 else forgetful
        folder = write_run(tmp_path / "runs" / str(at), name, 1, how)
        (folder / "config.yaml").write_text(f"hidden_size: {size}\n")
    comparison = gather([tmp_path / "runs"], resamples=50)
    sweep = swept(comparison.rows)
    curves = sweep.of(lambda row: row.bleu)
    assert sweep.setting == "hidden_size"
    assert {name: [value for value, _ in points] for name, points in curves.items()} == {
        "none": [32.0, 256.0],
        "scaled": [32.0, 256.0],
    }
    assert curves["none"][0][1].mean < 90
    assert curves["none"][1][1].mean == pytest.approx(100)
    page = compare([tmp_path / "runs"], tmp_path / "report", resamples=50)
    assert (page.parent / "figures" / "bleu_by_setting.svg").is_file()
    assert (page.parent / "tables" / "bleu_by_setting.csv").read_text().startswith("hidden_size,none,scaled\n32,")


def test_a_sweep_over_words_is_not_drawn_along_them(runs):
    assert swept(gather([runs], resamples=10).rows) is None


def test_what_else_varies_names_the_curves_and_the_scores_before_training_are_drawn(tmp_path):
    """Deviations of sqrt(size) without the root and 1 with it, as their table and their figure say."""
    for at, (scale, size) in enumerate((scale, size) for scale in ("null", "1.0") for size in (64, 1024)):
        start = {"deviation": size**0.5 if scale == "1.0" else 1.0, "entropy": 0.5, "gradient": 0.01}
        folder = write_run(tmp_path / "runs" / str(at), "scaled", 1, scores_at_start=start)
        (folder / "config.yaml").write_text(f"attention:\n  attention_size: {size}\n  scale: {scale}\n")
    sweep = swept(gather([tmp_path / "runs"], resamples=10).rows)
    assert sweep.setting == "attention.attention_size"
    assert set(sweep.curves) == {"scaled attention.scale=null", "scaled attention.scale=1.0"}
    page = compare([tmp_path / "runs"], tmp_path / "report", resamples=10)
    table = (page.parent / "tables" / "scores_at_start.csv").read_text().splitlines()
    assert table[0].startswith("system,standard deviation of the scores")
    assert "scaled attention.attention_size=1024 attention.scale=1.0,32,0.5,0.01" in table
    assert (page.parent / "figures" / "scores_at_start.svg").is_file()
    assert "Scores before training" in page.read_text()
