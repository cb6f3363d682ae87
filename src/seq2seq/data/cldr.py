"""Parallel phrases from Unicode CLDR, made by Babel: no download, any two locales, the true alignment known.

A phrase is a list of k items, k uniform in 1..``max_items``; an item is, with equal chance, the name of a territory, a
language or a currency, a full date, or an amount with its unit. Every item and the list around them is formatted in
both locales, so dates reorder, units agree with their number and the last comma may become a word. The items are drawn
independently: none can be guessed from another, so a fixed vector would have to store them all.

Source: Unicode Common Locale Data Repository, https://cldr.unicode.org, through Babel, https://babel.pocoo.org.
"""

import functools
import itertools
import random
import re
from collections.abc import Callable, Iterable, Iterator
from datetime import date
from typing import NamedTuple

import babel
from babel.core import Locale, UnknownLocaleError, get_global
from babel.dates import format_date
from babel.lists import format_list
from babel.units import format_unit

from seq2seq.data.corpus import Pair, Span
from seq2seq.errors import ConfigError
from seq2seq.types import Split

GENERATOR = 1
"""Version of the drawing below: raise it with every change that gives other pairs, so that no cache survives it."""
FIRST_DAY, LAST_DAY = date(1950, 1, 1), date(2049, 12, 31)
AMOUNTS = range(1, 200)
"""Covers every plural form of the languages in CLDR: Arabic has six, the last of them begins at 100."""
MOST_ITEMS = 1_000
"""Longest list that can be asked for."""
PATIENCE = 10_000
"""Rejected phrases in a row after which the space of phrases counts as used up."""
NO_TERRITORY = {"XA", "XB", "ZZ"}  # two pseudo-locales for testers, and "unknown region"
NO_LANGUAGE = {"mis", "mul", "und", "zxx"}  # uncoded, several, unknown, none
NO_UNIT = {"concentr-ofglucose", "pressure-ofhg"}  # parts of other units: "3 of mercury"

Texts = tuple[str, str]
"""One item in the source locale and in the target locale."""


class ItemKind(NamedTuple):
    """One kind of item: how many there are, and the n-th of them in both locales."""

    name: str
    size: int
    texts: Callable[[int], Texts]


class ListTemplate(NamedTuple):
    """How a locale writes a list of k items: the text before each slot, the item in it, the text after the last."""

    slots: tuple[tuple[str, int], ...]
    tail: str


@functools.cache
def item_kinds(source: str, target: str) -> tuple[ItemKind, ...]:
    """The kinds of items that two locales share, each sorted by its CLDR code; texts are formatted once and kept."""
    locales = Locale.parse(source), Locale.parse(target)

    def names(field: str, codes: Iterable[str]) -> list[Texts]:
        tables = [getattr(locale, field) for locale in locales]
        return _unambiguous(tuple(table[code] for table in tables) for code in codes if all(code in t for t in tables))

    # Currencies in use today: the others have names with years in them, to tell one peso from the next.
    uses = itertools.chain.from_iterable(get_global("territory_currencies").values())
    tender = {code for code, _, end, is_tender in uses if is_tender and end is None}
    named = {
        "territory": names("territories", sorted(set(locales[0].territories) - NO_TERRITORY)),
        "language": names("languages", sorted(set(locales[0].languages) - NO_LANGUAGE)),
        "currency": names("currencies", sorted(tender)),
    }
    units = _shared_units(locales)

    @functools.cache
    def full_date(index: int) -> Texts:
        day = date.fromordinal(FIRST_DAY.toordinal() + index)
        return format_date(day, "full", locales[0]), format_date(day, "full", locales[1])

    @functools.cache
    def amount(index: int) -> Texts:
        unit, number = units[index // len(AMOUNTS)], AMOUNTS[index % len(AMOUNTS)]
        text = functools.partial(format_unit, number, unit, "long")
        return text(locale=locales[0]), text(locale=locales[1])

    kinds = [ItemKind(name, len(texts), texts.__getitem__) for name, texts in named.items()]
    kinds.append(ItemKind("date", LAST_DAY.toordinal() - FIRST_DAY.toordinal() + 1, full_date))
    kinds.append(ItemKind("amount", len(units) * len(AMOUNTS), amount))
    return tuple(kind for kind in kinds if kind.size)


def _unambiguous(items: Iterable[Texts]) -> list[Texts]:
    """Drops an item whose text another item already has on either side: it could not be translated, only guessed."""
    kept: dict[str, str] = {}
    targets: set[str] = set()
    for source, target in items:
        if source not in kept and target not in targets:
            kept[source] = target
            targets.add(target)
    return list(kept.items())


def _shared_units(locales: tuple[Locale, Locale]) -> list[str]:
    """Codes of the units that both locales translate, by their words for three of them."""
    root = Locale("root")

    def three(unit: str, locale: Locale) -> str:
        return format_unit(3, unit, "long", locale=locale)

    by_texts: dict[Texts, str] = {}
    for unit in sorted(set(locales[0].unit_display_names) & set(locales[1].unit_display_names) - NO_UNIT):
        texts = three(unit, locales[0]), three(unit, locales[1])
        if three(unit, root) not in texts:  # a unit without a translation falls back to the root locale's symbol
            by_texts.setdefault(texts, unit)
    return [by_texts[texts] for texts in _unambiguous(by_texts)]


@functools.cache
def list_template(locale: str, k: int) -> ListTemplate:
    """The list pattern of a locale for k items, as Babel writes it around k private-use characters."""
    first = 0xF0000  # of a private-use plane
    pattern = format_list([chr(first + i) for i in range(k)], "standard", locale)
    *slots, tail = re.split(f"([{chr(first)}-{chr(first + k - 1)}])", pattern)
    return ListTemplate(tuple(zip(slots[::2], (ord(mark) - first for mark in slots[1::2]), strict=True)), tail)


def fill(template: ListTemplate, items: list[str]) -> tuple[str, list[tuple[int, int]]]:
    """The list as text, and the half-open range of characters that each item takes in it, in the order of ``items``."""
    pieces: list[str] = []
    ranges = [(0, 0)] * len(items)
    position = 0
    for before, index in template.slots:
        item = items[index]
        pieces += before, item
        start = position + len(before)
        position = start + len(item)
        ranges[index] = start, position
    pieces.append(template.tail)
    return "".join(pieces), ranges


class CldrCorpus:
    """Random lists of names, dates and amounts in two locales.

    The same locales, sizes, seed and Babel version give the same pairs. Each split draws from a stream of its own, so
    the size of one does not move the pairs of another. Neither text of a validation or test pair occurs on its side
    in another split or twice in its own; training pairs may repeat, and are drawn as they are read, in constant memory.

    Args:
        source, target: locales that Babel knows, such as ``en``, ``de``, ``pt_BR``.
        max_items: longest list.
        train_size, valid_size, test_size: pairs of each split.
        seed: of the drawing.

    Raises:
        ConfigError: Babel does not know a locale, both are the same, a number is out of range, or there are fewer
            different phrases than asked for.
    """

    def __init__(
        self,
        source: str = "en",
        target: str = "de",
        max_items: int = 10,
        train_size: int = 20_000,
        valid_size: int = 500,
        test_size: int = 1_000,
        seed: int = 0,
    ) -> None:
        self.source, self.target, self.max_items, self.seed = source, target, max_items, seed
        self.sizes: dict[Split, int] = {"train": train_size, "valid": valid_size, "test": test_size}
        self._locales = _known_locale("source", source), _known_locale("target", target)
        if self._locales[0] == self._locales[1]:
            raise ConfigError(
                f"identical source and target: data.source={source} data.target={target} name one locale; "
                "choose two, such as data.source=en data.target=de"
            )
        _check_whole("max_items", max_items, 1, MOST_ITEMS)
        _check_whole("seed", seed, 0)
        for split, size in self.sizes.items():
            _check_whole(f"{split}_size", size, 0)
        if valid_size + test_size + min(train_size, 1) > self._capacity():
            raise self._too_few(f"data.valid_size={valid_size} and data.test_size={test_size} cannot be had")

    def identity(self) -> dict[str, object]:
        return {
            "corpus": "cldr",
            "generator": GENERATOR,
            "babel": babel.__version__,
            "cldr": str(get_global("cldr").get("version")),
            "source": self.source,
            "target": self.target,
            "max_items": self.max_items,
            "seed": self.seed,
            "sizes": dict(self.sizes),
        }

    def pairs(self, split: Split) -> Iterator[Pair]:
        """The pairs of one split.

        Raises:
            ConfigError: there are not enough phrases that differ from those of the other splits.
        """
        taken: tuple[set[str], set[str]] = set(), set()
        for held_out in ("valid", "test"):
            for pair in self._untaken(held_out, taken):
                taken[0].add(pair.source)
                taken[1].add(pair.target)
                if held_out == split:
                    yield pair
            if held_out == split:
                return
        yield from self._untaken("train", taken)

    def _untaken(self, split: Split, taken: tuple[set[str], set[str]]) -> Iterator[Pair]:
        """As many phrases as the split has, none with a text in ``taken``, which may grow from one to the next."""
        found = rejected = 0
        phrases = self._phrases(split)
        while found < self.sizes[split]:
            pair = next(phrases)
            if pair.source in taken[0] or pair.target in taken[1]:
                rejected += 1
                if rejected == PATIENCE:
                    raise self._too_few(f"data.{split}_size={self.sizes[split]} cannot be had: stopped after {found}")
                continue
            rejected = 0
            found += 1
            yield pair

    def _phrases(self, split: Split) -> Iterator[Pair]:
        """An endless stream of random phrases."""
        kinds = item_kinds(*self._locales)
        # Python promises the same numbers in every version for seeds of text and for random(), not for randrange().
        draw = random.Random(f"{self.seed} {split}").random
        while True:
            k = 1 + int(draw() * self.max_items)
            items = []
            for _ in range(k):
                kind = kinds[int(draw() * len(kinds))]
                items.append(kind.texts(int(draw() * kind.size)))
            source, source_ranges = fill(list_template(self._locales[0], k), [item[0] for item in items])
            target, target_ranges = fill(list_template(self._locales[1], k), [item[1] for item in items])
            yield Pair(source, target, tuple(Span(*s, *t) for s, t in zip(source_ranges, target_ranges, strict=True)))

    def _capacity(self) -> int:
        """An upper bound of the number of different phrases."""
        items = sum(kind.size for kind in item_kinds(*self._locales))
        return sum(items**k for k in range(1, self.max_items + 1))

    def _too_few(self, what: str) -> ConfigError:
        return ConfigError(
            f"{what}; with data.max_items={self.max_items}, {self.source}-{self.target} has at most "
            f"{self._capacity():,} different phrases for all splits together: "
            "raise data.max_items, or lower data.valid_size and data.test_size"
        )


def _known_locale(side: str, code: str) -> str:
    """The name by which Babel knows a locale, which may be written ``pt-BR`` or ``pt_BR``."""
    try:
        return str(Locale.parse(code.replace("-", "_")))
    except (UnknownLocaleError, ValueError, AttributeError):
        raise ConfigError(
            f"data.{side}={code}: Babel {babel.__version__} knows no such locale; it knows en, de, fr, ru, ja, ar, "
            "pt_BR and those that `pybabel --list-locales` prints"
        ) from None


def _check_whole(key: str, value: object, at_least: int, at_most: int | None = None) -> None:
    if not isinstance(value, int) or value < at_least or (at_most is not None and value > at_most):
        limits = f"of at least {at_least}" if at_most is None else f"from {at_least} to {at_most}"
        raise ConfigError(f"data.{key}={value}: must be a whole number {limits}")
