"""The filter as a process of its own: one line in, one line out, whatever is in it."""

import io
import json
import os
import random
import signal
import subprocess
import sys
import time

import pytest
import sacrebleu
from hypothesis import given
from hypothesis import strategies as st

from seq2seq.cli.translate import _blocks, _lines
from seq2seq.errors import CorpusError


@pytest.fixture
def checkpoint(finished):
    return finished / "checkpoints/best.ckpt"


@pytest.fixture
def translate(checkpoint, tmp_path):
    def run(text, *flags):
        data = text if isinstance(text, bytes) else text.encode("utf-8")
        command = [
            sys.executable,
            "-m",
            "seq2seq.cli.translate",
            "--checkpoint",
            checkpoint,
            "--max-length",
            "5",
            *flags,
        ]
        return subprocess.run(command, input=data, capture_output=True, cwd=tmp_path)

    return run


LINES = ["Germany and France", "", "12 January 2001", "", "Euro, Yen, and Dollar"]


def test_one_line_in_one_line_out(translate):
    outcome = translate("\n".join(LINES) + "\n")
    assert outcome.returncode == 0, outcome.stderr
    found = outcome.stdout.decode().split("\n")
    assert len(found) == 6
    assert [line == "" for line in found] == [False, True, False, True, False, True]
    # Without a line feed at the end, with carriage returns, one by one: the same.
    assert translate("\n".join(LINES)).stdout == outcome.stdout
    assert translate("\r\n".join(LINES)).stdout == outcome.stdout
    assert translate("\n".join(LINES), "--stream").stdout == outcome.stdout
    assert translate("\n".join(LINES), "--batch-tokens", "1").stdout == outcome.stdout
    assert translate("\ufeff" + "\n".join(LINES)).stdout == outcome.stdout
    assert translate("").stdout == b""


def test_ten_thousand_random_lines_stay_as_many(translate):
    draw = random.Random(0)
    planes = [
        (0x20, 0x7E),
        (0xA0, 0x2FF),
        (0x370, 0x5FF),
        (0x2000, 0x2BFF),
        (0x4E00, 0x9FFF),
        (0x1F300, 0x1FAFF),
        (0, 0x1F),
    ]
    lines = []
    for _ in range(10_000):
        plane = draw.choice(planes)
        characters = (chr(draw.randint(*plane)) for _ in range(draw.randint(0, 12)))
        lines.append("".join(characters).replace("\n", " ").replace("\r", " "))
    outcome = translate("\n".join(lines) + "\n", "--beam", "1", "--max-length", "1")
    assert outcome.returncode == 0, outcome.stderr[-300:]
    assert outcome.stdout.count(b"\n") == 10_000


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"one\ntwo\ncaf\xe9\n", b"standard input, line 3: byte 0xe9 at 3 is not valid UTF-8"),
        (b"one\n\xed\xa0\x80\n", b"standard input, line 2: byte 0xed at 0"),
        (bytes(range(256)), b"standard input, line 2: byte 0x80"),
    ],
)
def test_what_is_no_text_is_refused_with_its_line(translate, text, words):
    outcome = translate(text)
    assert outcome.returncode == 1
    assert outcome.stderr.startswith(b"error: ")
    assert words in outcome.stderr
    assert outcome.stderr.count(b"\n") == 1
    # What could be read before it is translated, whole lines of it.
    good = int(words.split(b"line ")[1].split(b":")[0]) - 1
    assert outcome.stdout.count(b"\n") == good
    assert outcome.stdout.endswith(b"\n")


def test_a_line_of_100000_words_is_split_or_refused(translate):
    text = "Yen, " * 100_000 + "\nEuro\n"
    outcome = translate(text, "--beam", "1", "--max-length", "1")
    assert outcome.returncode == 0, outcome.stderr
    assert outcome.stdout.count(b"\n") == 2
    assert outcome.stderr.startswith(b"note: line 1 has more than 200 tokens and is translated in ")
    refused = translate("Euro\n" + text, "--strict")
    assert refused.returncode == 1
    assert refused.stdout.count(b"\n") == 1
    assert b"standard input, line 2 has more than 200 tokens: allow more with --longest" in refused.stderr


def test_n_best_scores_and_alignments_stand_in_columns(translate):
    outcome = translate("Germany\n\n", "--n-best", "3", "--scores", "--alignments", "--beam", "4")
    rows = [line.split("\t") for line in outcome.stdout.decode().removesuffix("\n").split("\n")]
    assert [row[0] for row in rows] == ["1", "1", "1", "2"]
    scores = [float(row[2]) for row in rows[:3]]
    assert scores == sorted(scores, reverse=True)
    for row in rows[:3]:
        assert [link.split("-") for link in row[3].split()] == [["0", str(at)] for at in range(len(row[1].split()))]
    assert rows[3] == ["2", "", "0.000000", ""]


def test_json_has_everything(translate):
    outcome = translate("Germany and France\n", "--json", "--heatmap", "pictures")
    (record,) = map(json.loads, outcome.stdout.decode().splitlines())
    assert record["line"] == 1
    assert record["source"] == "Germany and France"
    assert len(record["weights"]) == len(record["target_tokens"])
    assert all(sum(row) == pytest.approx(1, abs=0.01) for row in record["weights"])
    assert all(source < 3 for source, _ in record["alignment"])
    several = translate("Germany\n\n", "--json", "--n-best", "2")
    assert [len(json.loads(line)["candidates"]) for line in several.stdout.splitlines()] == [2, 1]


def test_heatmaps_are_drawn_of_lines_of_any_length(translate, tmp_path):
    assert translate("Germany\nFrance\n" + "Yen, " * 300, "--heatmap", "pictures", "--beam", "1").returncode == 0
    assert sorted(path.name for path in (tmp_path / "pictures").iterdir()) == ["1.png", "2.png", "3.png"]


def test_scores_are_those_of_sacrebleu(translate, tmp_path):
    references = ["Deutschland und Frankreich", "", "12. Januar 2001", "", "Euro, Yen und Dollar"]
    (tmp_path / "reference").write_text("\n".join(references) + "\n")
    outcome = translate("\n".join(LINES) + "\n", "--score", "reference")
    said = outcome.stdout.decode().removesuffix("\n").split("\n")
    bleu, chrf = sacrebleu.corpus_bleu(said, [references]), sacrebleu.corpus_chrf(said, [references])
    assert f"BLEU {bleu.score:.2f} (nrefs:1|case:mixed|eff:no|tok:13a" in outcome.stderr.decode()
    assert f"chrF {chrf.score:.2f} (nrefs:1" in outcome.stderr.decode()
    refused = translate("one\n", "--score", "reference")
    assert b"reference has 5 lines, standard input has 1" in refused.stderr


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--n-best", "9"), "--n-best 9 must be at least 1 and no more than --beam, found 5"),
        (("--beam", "0"), "--beam must be a whole number from 1 to 1000"),
        (("--length-penalty", "wu"), "none, average, gnmt"),
        (("--device", "tpu"), "device 'tpu' cannot be used"),
        (("--checkpoint", "none.ckpt"), "no checkpoint at none.ckpt"),
        (("--alpha", "nan"), "--alpha must be from 0 to 10, --coverage-penalty 0 or more"),
        (("--device", "meta"), "device 'meta' cannot be used"),
        (("--heatmap", "/proc/pictures"), "--heatmap /proc/pictures cannot be written"),
        (("--score", os.devnull), "holds no line"),
        (("--score", "none.txt"), "none.txt: no such file"),
        (("--batch-tokens", "0"), "--batch-tokens and --longest must be at least 1"),
    ],
)
def test_mistakes_are_one_message(translate, flags, words):
    outcome = translate("one\n", *flags)
    assert outcome.returncode == 1
    assert outcome.stderr.decode().startswith("error: ")
    assert words in outcome.stderr.decode()
    assert b"Traceback" not in outcome.stderr


def test_streaming_answers_before_the_input_ends_and_ctrl_c_leaves_whole_lines(checkpoint):
    command = [sys.executable, "-m", "seq2seq.cli.translate", "--checkpoint", checkpoint, "--stream"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    for word in (b"Germany\n", b"France\n"):
        process.stdin.write(word)
        process.stdin.flush()
        assert process.stdout.readline().endswith(b"\n")
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=20) == 130
    assert process.stdout.read() == b""
    assert b"Traceback" not in process.stderr.read()


def test_a_closed_pipe_ends_quietly(checkpoint):
    command = [
        sys.executable,
        "-m",
        "seq2seq.cli.translate",
        "--checkpoint",
        checkpoint,
        "--stream",
        "--max-length",
        "1",
    ]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdin.write(b"Germany\n" * 50)
    process.stdin.flush()
    process.stdout.readline()
    process.stdout.close()
    deadline = time.monotonic() + 30
    try:
        while process.poll() is None and time.monotonic() < deadline:
            process.stdin.write(b"France\n" * 100)
            process.stdin.flush()
            time.sleep(0.1)
    except BrokenPipeError:
        pass
    assert process.wait(timeout=20) == 1
    assert process.stderr.read() == b""


def test_interrupts_wait_for_the_line(monkeypatch):
    from seq2seq.cli.translate import _uninterrupted

    done = []

    def write():
        with _uninterrupted():
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.01)
            done.append(True)

    with pytest.raises(KeyboardInterrupt):
        write()
    assert done


@given(st.lists(st.binary(max_size=8).map(lambda line: line.replace(b"\n", b"")), max_size=8), st.booleans())
def test_any_bytes_are_lines_or_refused_with_the_first_bad_one(lines, closed):
    content = b"\n".join(lines) + (b"\n" if closed and lines else b"")
    found, failure = [], None
    try:
        for line in _lines(io.BytesIO(content)):
            found.append(line)  # noqa: PERF402 - those before an error are looked at
    except CorpusError as error:
        failure = str(error)
    expected = []
    for line in content.removesuffix(b"\n").split(b"\n") if content else []:
        first = line.removesuffix(b"\r")
        first = first if expected else first.removeprefix(b"\xef\xbb\xbf")
        try:
            expected.append(first.decode())
        except UnicodeDecodeError:
            assert f"standard input, line {len(expected) + 1}: byte 0x" in failure
            break
    else:
        assert failure is None
    assert found == expected


@given(st.integers(0, 12), st.integers(1, 5), st.none() | st.integers(0, 11))
def test_blocks_hold_everything_before_an_error(count, size, broken):
    def items():
        for number in range(count):
            if number == broken:
                raise CorpusError("here")
            yield number

    found, failed = [], False
    try:
        for block in _blocks(items(), size):
            assert 0 < len(block) <= size
            found += block
    except CorpusError:
        failed = True
    assert failed == (broken is not None and broken < count)
    assert found == list(range(min(count, broken) if failed else count))


def test_streams_that_are_full_or_closed(checkpoint, tmp_path):
    command = f"{sys.executable} -m seq2seq.cli.translate --checkpoint {checkpoint} --max-length 2"
    for redirected, code, words in (
        (">/dev/full", 1, "error: [Errno 28] No space left"),
        ("<&-", 1, "error: standard input is closed"),
        ("2>&-", 0, ""),
    ):
        outcome = subprocess.run(
            f"{command} {redirected}", shell=True, input=b"Euro\n", capture_output=True, cwd=tmp_path
        )
        assert outcome.returncode == code, outcome.stderr
        assert outcome.stderr.decode().startswith(words)
        assert b"Traceback" not in outcome.stderr
        assert outcome.stdout.count(b"\n") == 1 - code


def test_a_terminal_shows_the_translation_and_no_count_over_it(checkpoint, tmp_path):
    ours, theirs = os.openpty()
    command = [sys.executable, "-m", "seq2seq.cli.translate", "--checkpoint", checkpoint, "--max-length", "3"]
    (tmp_path / "lines").write_text("Euro\nYen\n")
    with (tmp_path / "lines").open() as lines:
        process = subprocess.Popen(command, stdin=lines, stdout=theirs, stderr=theirs)
        assert process.wait() == 0
    shown = os.read(ours, 10_000).decode()
    assert shown.count("\n") == 2
    assert "lines" not in shown
    assert "\x1b" not in shown
    os.close(ours)
    os.close(theirs)
