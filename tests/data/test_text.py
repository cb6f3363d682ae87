import gzip
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seq2seq.data.corpus import Corpus, Pair
from seq2seq.data.text import TextCorpus
from seq2seq.errors import ConfigError, CorpusError


@pytest.fixture
def write(tmp_path):
    def write(name, content):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(path)

    return write


@pytest.fixture
def corpus(write):
    """A corpus whose training split is given, with one pair in each of the others."""

    def corpus(train, **settings):
        others = {"valid": write("valid.tsv", "v\tV\n"), "test": write("test.tsv", "t\tT\n")}
        return TextCorpus(train=train, **{**others, **settings})

    return corpus


def read(corpus, split="train"):
    return [pair[:2] for pair in corpus.pairs(split)]


def test_tab_separated(corpus, write):
    tsv = corpus(write("train.tsv", "a\tA\nb c\tB C\n"), source="fr", target="ru")
    assert isinstance(tsv, Corpus)
    assert list(tsv.pairs("train")) == [Pair("a", "A"), Pair("b c", "B C")]
    assert read(tsv, "test") == [("t", "T")]
    assert (tsv.source, tsv.target) == ("fr", "ru")


@pytest.mark.parametrize("kind", [list, tuple])
def test_two_files(corpus, write, kind):
    two = corpus(kind([write("train.en", "a\nb\n"), write("train.de", "A\nB\n")]))
    assert read(two) == [("a", "A"), ("b", "B")]


@pytest.mark.parametrize(
    ("content", "sentences"),
    [
        ("a\nb", ["a", "b"]),  # no line end after the last
        ("a\nb\n", ["a", "b"]),
        ("a\n\nb\n", ["a", "", "b"]),  # an empty line is a line
        ("a\r\nb\r\n", ["a", "b"]),
        ("\ufeffa\nb\ufeff\n", ["a", "b\ufeff"]),  # a byte order mark counts at the start alone
        ("a\u2028b\x85c\x0bd\x0ce\x1cf\n", ["a\u2028b\x85c\x0bd\x0ce\x1cf"]),
        ("a\0b\n", ["a b"]),
        ("a\rb\r\n", ["a b"]),
        ("a\tb\n", ["a b"]),
    ],
)
def test_what_ends_a_line(corpus, write, content, sentences):
    partner = write("train.de", "".join(f"{number}\n" for number in range(len(sentences))))
    pairs = read(corpus([write("train.en", content), partner]))
    assert pairs == [(sentence, str(number)) for number, sentence in enumerate(sentences)]


def test_what_ends_a_line_in_tab_separated_files(corpus, write):
    content = b"\xef\xbb\xbfa\xe2\x80\xa8b\tA\0B\r\nc\td"
    assert read(corpus(write("train.tsv", content))) == [("a\u2028b", "A B"), ("c", "d")]


def test_one_very_long_line(corpus, write):
    long = " ".join(["word"] * 10_000)
    assert read(corpus(write("train.tsv", f"{long}\tlang\n"))) == [(long, "lang")]


def test_empty_sides_are_left_to_the_caller(corpus, write):
    assert read(corpus(write("train.tsv", "\tA\nb\t\n"))) == [("", "A"), ("b", "")]


def test_unequal_line_counts(corpus, write):
    english, german = write("train.en", "a\nb\nc\n"), write("train.de", "A\nB\nC\nD\nE")
    pairs = corpus([english, german]).pairs("train")
    message = f"{english} has 3 lines, {german} has 5: line 4 of {german} has no partner"
    with pytest.raises(CorpusError, match=re.escape(message)):
        next(pairs)  # before a single pair is handed out


@pytest.mark.parametrize("name", ["train.en", "train.tsv"])
def test_invalid_utf8(corpus, write, name):
    path = write(name, b"\xef\xbb\xbfab\tc\nd\xc3\xa9\te\ngr\xfcn\tf\n")
    split = [path, write("train.de", "A\nB\nC\n")] if name == "train.en" else path
    message = f"{path}, line 3: byte 0xfc at offset 16 of the file is not valid UTF-8"
    with pytest.raises(CorpusError, match=re.escape(message)):
        read(corpus(split))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (gzip.compress(b"a\tA\n"), r"train\.tsv: is compressed; unpack it first, as in `gunzip"),
        ("a\tA\n".encode("utf-16"), r"train\.tsv: is UTF-16; convert it, as in `iconv -f UTF-16"),
    ],
    ids=["gzip", "UTF-16"],
)
def test_other_kinds_of_text_files_are_named(corpus, write, content, words):
    with pytest.raises(CorpusError, match=words):
        read(corpus(write("train.tsv", content)))


@pytest.mark.parametrize("value", [5, [5, 6], [None, "a"], [["a", "b"], "c"], "", {"a": "b"}], ids=str)
def test_what_is_no_path(corpus, value):
    with pytest.raises(ConfigError, match=r"data\.train=.*must be one path or two"):
        corpus(value)


def test_offset_of_an_invalid_byte_counts_the_byte_order_mark(corpus, write):
    path = write("train.tsv", b"\xef\xbb\xbfa\xff\tb\n")
    with pytest.raises(CorpusError, match=r"line 1: byte 0xff at offset 4 of the file"):
        read(corpus(path))


@pytest.mark.parametrize(("line", "fields"), [("b", 1), ("", 1), ("b\tc\td", 3)])
def test_fields_of_a_line(corpus, write, line, fields):
    path = write("train.tsv", f"a\tA\n{line}\nz\tZ\n")
    with pytest.raises(CorpusError, match=re.escape(f"{path}, line 2: found {fields} fields, must be 2")):
        read(corpus(path))


@pytest.mark.parametrize("content", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("side", [None, 0, 1])
def test_empty_file(corpus, write, content, side):
    empty = write("empty", content)
    paths = [write("train.en", "a\n"), write("train.de", "A\n")]
    split = empty if side is None else [empty if place == side else path for place, path in enumerate(paths)]
    with pytest.raises(CorpusError, match=re.escape(f"{empty}: holds no line; data.train needs at least one pair")):
        read(corpus(split))


def test_missing_file(corpus, tmp_path):
    with pytest.raises(CorpusError, match=r"absent\.tsv: no such file"):
        corpus(str(tmp_path / "absent.tsv"))


def test_folder(corpus, tmp_path):
    with pytest.raises(CorpusError, match=re.escape(f"{tmp_path}: is a folder")):
        corpus(str(tmp_path))


def test_same_file_as_source_and_target(corpus, write, tmp_path):
    path = write("train.en", "a\n")
    (tmp_path / "link").symlink_to(path)
    for twin in (path, str(tmp_path / "link")):
        with pytest.raises(CorpusError, match=r"data\.train: identical source and target, both are .*train\.en"):
            corpus([path, twin])


def test_same_file_in_two_splits(corpus, write):
    path = write("train.tsv", "a\tA\n")
    with pytest.raises(CorpusError, match=r"train\.tsv is in both data\.train and data\.test"):
        corpus(path, test=path)


@pytest.mark.parametrize("split", ["train", "valid", "test"])
def test_missing_split(corpus, write, split):
    settings = {"train": write("train.tsv", "a\tA\n"), split: None}
    message = rf"data\.{split} is not set: name your files, as in `python train\.py data=text .*data\.{split}="
    with pytest.raises(ConfigError, match=message):
        corpus(**settings)


@pytest.mark.parametrize("count", [0, 3])
def test_neither_one_path_nor_two(corpus, write, count):
    with pytest.raises(ConfigError, match=r"data\.train=\[.*\]: must be one path or two"):
        corpus([write(f"{number}", "a\n") for number in range(count)])


def test_identity_follows_the_bytes_and_nothing_else(corpus, write):
    base = corpus(write("train.tsv", "a\tA\n")).identity()
    assert corpus(write("elsewhere.tsv", "a\tA\n")).identity() == base
    assert corpus(write("train.tsv", "a\tB\n")).identity() != base
    assert corpus(write("elsewhere.tsv", "a\tA\n"), source="fr").identity() != base
    two = [write("train.en", "a\n"), write("train.de", "A\n")]
    assert corpus(two).identity() != corpus(two[::-1]).identity()


LINES = st.lists(st.text(max_size=12).map(lambda text: text.replace("\n", "")), min_size=1, max_size=6)
"""Any Unicode text but the line feed, which ends a line."""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("text")
    for name in ("valid.tsv", "test.tsv"):
        (folder / name).write_text(f"{name}\tT\n")
    return folder


def as_read(line, end):
    """Without one carriage return before its end, and with a space for each character that would break a table."""
    return f"{line}{end}".removesuffix("\n").removesuffix("\r").translate(dict.fromkeys(map(ord, "\t\r\0"), " "))


@given(LINES, LINES, st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_line_n_of_one_file_translates_line_n_of_the_other(place, sources, targets, end, closed):
    count = min(len(sources), len(targets))
    sides = {"train.en": sources[:count], "train.de": targets[:count]}
    expected = []
    for name, lines in sides.items():
        ends = [end] * (count - 1) + [end if closed or not lines[-1] else ""]
        text = "".join(f"{line}{each}" for line, each in zip(lines, ends, strict=True))
        # A mark of the byte order belongs to the file, not to its first line.
        (place / name).write_bytes(b"\xef\xbb\xbf" + text.encode())
        expected.append([as_read(*each) for each in zip(lines, ends, strict=True)])
    corpus = TextCorpus([str(place / name) for name in sides], str(place / "valid.tsv"), str(place / "test.tsv"))
    assert read(corpus) == list(zip(*expected, strict=True))


@given(st.lists(st.binary(max_size=8).map(lambda line: line.replace(b"\n", b"")), min_size=1, max_size=6))
def test_any_bytes_are_read_or_refused_by_line(place, lines):
    path = place / "train.tsv"
    path.write_bytes(b"".join(b"a\t" + line + b"\n" for line in lines))

    def good(line):
        try:
            return b"\t" not in line and line.decode("utf-8") is not None
        except UnicodeDecodeError:
            return False

    corpus = TextCorpus(str(path), str(place / "valid.tsv"), str(place / "test.tsv"))
    bad = next((number for number, line in enumerate(lines, start=1) if not good(line)), None)
    if bad is None:
        assert read(corpus) == [("a", as_read(line.decode(), "\n")) for line in lines]
    else:
        with pytest.raises(CorpusError, match=rf"train\.tsv, line {bad}: "):
            read(corpus)
