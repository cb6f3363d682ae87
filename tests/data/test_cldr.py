import itertools
import json
import pickle
import random
import re
from collections import Counter
from datetime import date, timedelta

import pytest
from babel import Locale
from babel.dates import format_date
from babel.units import format_unit

from seq2seq.data import cldr
from seq2seq.data.cldr import CldrCorpus, ListTemplate, fill, item_kinds, list_template
from seq2seq.data.corpus import Corpus
from seq2seq.errors import ConfigError

LOCALES = ["en", "de", "fr", "ru", "ja", "ar"]
SPLITS = ["train", "valid", "test"]


def kind(name, source="en", target="de"):
    return next(kind for kind in item_kinds(source, target) if kind.name == name)


def texts(kind):
    return [kind.texts(index) for index in range(kind.size)]


def small(**settings):
    return CldrCorpus(**{"train_size": 60, "valid_size": 40, "test_size": 40, **settings})


def test_satisfies_the_protocol():
    assert isinstance(small(), Corpus)


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("territory", ("Germany", "Deutschland")),
        ("language", ("Swedish", "Schwedisch")),
        ("currency", ("Japanese Yen", "Japanischer Yen")),
        ("date", ("Friday, November 10, 1989", "Freitag, 10. November 1989")),
        ("amount", ("1 week", "1 Woche")),
        ("amount", ("12 light years", "12\N{NO-BREAK SPACE}Lichtjahre")),
    ],
)
def test_items_are_the_translations_of_cldr(name, known):
    wanted = known[0], known[1].replace("\N{NO-BREAK SPACE}", " ")
    assert wanted in [(source, target.replace("\N{NO-BREAK SPACE}", " ")) for source, target in texts(kind(name))]


def test_currencies_are_those_in_use():
    names = [source for source, _ in texts(kind("currency"))]
    assert "Euro" in names
    assert "German Mark" not in names
    assert not [name for name in names if re.search(r"\d", name)]


def test_units_without_a_translation_are_left_out():
    amounts = texts(kind("amount"))
    assert not [pair for pair in amounts if "[JP]" in pair[0] or "[JP]" in pair[1]]
    assert ("3 fortnights", "3 fw") not in amounts


@pytest.mark.parametrize("name", ["territory", "language", "currency"])
def test_no_two_items_share_a_text(name):
    sources, targets = zip(*texts(kind(name, "en", "ja")), strict=True)
    assert len(set(sources)) == len(sources)
    assert len(set(targets)) == len(targets)


def test_a_list_of_three_by_hand():
    english, _ = fill(list_template("en", 3), ["Fiji", "Monday, March 1, 1999", "3 hours"])
    german, ranges = fill(list_template("de", 3), ["Fidschi", "Montag, 1. März 1999", "3 Stunden"])
    assert english == "Fiji, Monday, March 1, 1999, and 3 hours"
    assert german == "Fidschi, Montag, 1. März 1999 und 3 Stunden"
    assert ranges == [(0, 7), (9, 29), (34, 43)]


@pytest.mark.parametrize(
    ("locale", "two", "four"),
    [
        ("en", "a and b", "a, b, c, and d"),
        ("de", "a und b", "a, b, c und d"),
        ("fr", "a et b", "a, b, c et d"),
        ("ru", "a и b", "a, b, c и d"),
        ("ja", "a、b", "a、b、c、d"),
        ("ar", "a وb", "a وb وc وd"),
    ],
)
def test_list_separators(locale, two, four):
    assert fill(list_template(locale, 1), ["a"])[0] == "a"
    assert fill(list_template(locale, 2), list("ab"))[0] == two
    assert fill(list_template(locale, 4), list("abcd"))[0] == four


def test_a_pattern_may_reorder_its_items():
    text, ranges = fill(ListTemplate((("<", 1), (" after ", 0)), ">"), ["one", "three"])
    assert text == "<three after one>"
    assert ranges == [(13, 16), (1, 6)]


def test_dates_reorder_and_plurals_agree():
    day = date(1999, 3, 1).toordinal() - date(1950, 1, 1).toordinal()
    assert kind("date").texts(day) == ("Monday, March 1, 1999", "Montag, 1. März 1999")
    assert kind("date", "ja", "ru").texts(day) == ("1999年3月1日月曜日", "понедельник, 1 марта 1999\u202fг.")  # noqa: RUF001
    russian = dict(texts(kind("amount", "en", "ru")))
    words = [russian[f"{n} meters"].split()[1] for n in (2, 5, 22)] + [russian["1 meter"].split()[1]]
    assert words == ["метра", "метров", "метра", "метр"]


def formatted_alone(name, index, locale):
    """All texts that Babel may give for an item: one for a date, one a territory for a territory, and so on."""
    if name == "date":
        return [format_date(date(1950, 1, 1) + timedelta(days=index), "full", locale)]
    if name == "amount":
        return [format_unit(index % 199 + 1, unit, "long", locale=locale) for unit in UNITS]
    return [getattr(Locale(locale), TABLES[name]).get(code) for code in getattr(Locale("en"), TABLES[name])]


TABLES = {"territory": "territories", "language": "languages", "currency": "currencies"}
UNITS = sorted(Locale("en").unit_display_names)


@pytest.mark.parametrize(("source", "target"), list(itertools.pairwise([*LOCALES, "en"])))
def test_spans_slice_to_the_items_alone(source, target, monkeypatch):
    drawn = []

    def recorded(kind):
        return kind._replace(texts=lambda index: drawn.append((kind.name, index)) or kind.texts(index))

    kinds = tuple(recorded(kind) for kind in item_kinds(source, target))
    monkeypatch.setattr(cldr, "item_kinds", lambda *_: kinds)
    pairs = list(CldrCorpus(source, target, max_items=6, train_size=0, valid_size=12, test_size=0).pairs("valid"))
    slices = [
        (pair.source[span.source_from : span.source_to], pair.target[span.target_from : span.target_to])
        for pair in pairs
        for span in pair.spans
    ]
    assert len(slices) == len(drawn)
    assert {name for name, _ in drawn} == {*TABLES, "date", "amount"}
    for (name, index), item in zip(drawn, slices, strict=True):
        both = zip(formatted_alone(name, index, source), formatted_alone(name, index, target), strict=True)
        assert item in list(both), (name, index)


@pytest.mark.parametrize(("source", "target"), list(itertools.pairwise([*LOCALES, "en"])))
def test_every_locale_gives_all_of_its_pairs(source, target):
    corpus = small(source=source, target=target)
    assert [len(list(corpus.pairs(split))) for split in SPLITS] == [60, 40, 40]
    assert not [
        text for pair in corpus.pairs("train") for text in pair[:2] if re.search(r"[\t\n\r\0\uE000-\uF8FF]", text)
    ]


def test_list_lengths_are_uniform():
    lengths = Counter(len(pair.spans) for pair in small(max_items=4, train_size=4_000).pairs("train"))
    assert sorted(lengths) == [1, 2, 3, 4]
    assert all(900 < count < 1_100 for count in lengths.values())


def test_same_settings_same_pairs_whatever_the_global_seed():
    random.seed(1)
    first = [list(small().pairs(split)) for split in SPLITS]
    random.seed(2)
    assert [list(small().pairs(split)) for split in SPLITS] == first
    assert [list(pickle.loads(pickle.dumps(small())).pairs(split)) for split in SPLITS] == first
    assert [list(small(seed=1).pairs(split)) for split in SPLITS] != first


def test_the_drawing_is_pinned():
    """Fails with another Babel whose data differ, or when the drawing changes: then raise ``GENERATOR``."""
    if cldr.babel.__version__ != "2.19.0":
        pytest.skip(f"pinned for Babel 2.19.0, found {cldr.babel.__version__}")
    assert next(CldrCorpus().pairs("valid"))[:2] == (
        "Thursday, July 10, 2008, Chadian Arabic, Friday, May 21, 1965, Friday, July 5, 1985, and Colombia",
        "Donnerstag, 10. Juli 2008, Tschadisch-Arabisch, Freitag, 21. Mai 1965, Freitag, 5. Juli 1985 und Kolumbien",
    )


def test_a_split_does_not_move_with_the_size_of_another():
    base, other = small(), small(train_size=500, test_size=90)
    assert list(other.pairs("valid")) == list(base.pairs("valid"))
    assert list(other.pairs("test"))[:40] == list(base.pairs("test"))
    assert list(small(train_size=500).pairs("train"))[:60] == list(base.pairs("train"))


@pytest.mark.parametrize("max_items", [1, 2])
def test_splits_share_no_text_on_either_side(max_items):
    """With few items a list, independent drawings would collide: 2,000 of 292 territories and the like."""
    corpus = CldrCorpus(max_items=max_items, train_size=4_000, valid_size=300, test_size=300)
    for side in (0, 1):
        train, valid, test = ([pair[side] for pair in corpus.pairs(split)] for split in SPLITS)
        assert (len(train), len(set(valid)), len(set(test))) == (4_000, 300, 300)
        assert not set(train) & (set(valid) | set(test))
        assert not set(valid) & set(test)


def test_identity_names_everything_the_pairs_depend_on():
    base = small().identity()
    assert base == small().identity()
    assert (base["babel"], base["source"], base["target"]) == (cldr.babel.__version__, "en", "de")
    assert base["cldr"].isdigit()
    changes = [
        {"seed": 1},
        {"max_items": 9},
        {"target": "fr"},
        {"source": "ru"},
        {"train_size": 61},
        {"valid_size": 41},
    ]
    identities = [small(**change).identity() for change in changes]
    assert all(identity != base for identity in identities)
    assert json.loads(json.dumps(base)) == base


@pytest.mark.parametrize("code", ["xx", "klingon", "", "e n", "de_XX"])
@pytest.mark.parametrize("side", ["source", "target"])
def test_unknown_locale(side, code):
    with pytest.raises(
        ConfigError, match=rf"data\.{side}={code}: Babel .* knows no such locale; it knows en, de.*list-locales"
    ):
        small(**{side: code})


def test_a_locale_may_be_written_with_a_hyphen():
    hyphen, underscore = small(target="pt-BR"), small(target="pt_BR")
    assert list(hyphen.pairs("valid")) == list(underscore.pairs("valid"))


@pytest.mark.parametrize(("source", "target"), [("de", "de"), ("pt-BR", "pt_BR")])
def test_identical_source_and_target(source, target):
    with pytest.raises(ConfigError, match=rf"identical source and target: data\.source={source} data\.target={target}"):
        small(source=source, target=target)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("max_items", 0),
        ("max_items", 1_001),
        ("train_size", -1),
        ("valid_size", -1),
        ("test_size", -1),
        ("seed", -1),
    ],
)
def test_number_out_of_range(key, value):
    with pytest.raises(ConfigError, match=rf"data\.{key}={value}: must be a whole number"):
        small(**{key: value})


@pytest.mark.parametrize("value", [2.5, "many", None])
def test_value_that_is_no_whole_number(value):
    with pytest.raises(ConfigError, match=rf"data\.max_items={value}: must be a whole number from 1 to 9"):
        cldr._check_whole("max_items", value, 1, 9)


def test_more_phrases_than_there_are():
    with pytest.raises(
        ConfigError, match=r"data\.valid_size=90000 .*at most 76,615 different.*raise data\.max_items, or lower"
    ):
        small(max_items=1, valid_size=90_000)


def test_more_phrases_than_can_be_found(monkeypatch):
    """Below the bound, it shows only as they are drawn that the last phrases are not to be had."""
    same = tuple(
        kind._replace(size=3, texts=lambda index: (str(index), str(-index))) for kind in item_kinds("en", "de")
    )
    monkeypatch.setattr(cldr, "item_kinds", lambda *_: same)
    corpus = small(max_items=1, valid_size=2, test_size=2, train_size=5)
    assert len(list(corpus.pairs("valid"))) == 2
    with pytest.raises(ConfigError, match=r"data\.test_size=2 cannot be had: stopped after 1.*at most 15 different"):
        list(corpus.pairs("test"))


def test_empty_splits_are_allowed():
    assert [list(small(train_size=0, valid_size=0, test_size=0).pairs(split)) for split in SPLITS] == [[], [], []]
