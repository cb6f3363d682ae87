"""Items found again in a hypothesis, by hand."""

import pytest

from seq2seq.probes.recall import recalled


def found(items: list[str], hypothesis: str, separator: str = ", ") -> list[bool]:
    """What is recalled of a list of items."""
    reference, ranges = separator.join(items), []
    for item in items:
        start = ranges[-1][1] + len(separator) if ranges else 0
        ranges.append((start, start + len(item)))
    return recalled(reference, ranges, hypothesis).tolist()


def test_all_none_and_some():
    items = ["Fidschi", "3 Stunden", "Montag, 1. März 1999"]
    assert found(items, "Fidschi, 3 Stunden, Montag, 1. März 1999") == [True] * 3
    assert found(items, "") == [False] * 3
    assert found(items, "Montag, 1. März 1998, 3 Stunden") == [False, True, False]


def test_order_does_not_matter():
    assert found(["Euro", "Fidschi"], "Fidschi und Euro") == [True, True]


def test_each_occurrence_counts_once():
    assert found(["Euro", "Euro", "Euro"], "Euro und Euro") == [True, True, False]
    assert found(["Euro"], "Euro, Euro, Euro") == [True]


def test_a_part_of_a_longer_item_is_left_to_it():
    assert found(["Englisch", "Englisch (Kanada)"], "Englisch (Kanada)") == [False, True]
    assert found(["Englisch", "Englisch (Kanada)"], "Englisch (Kanada), Englisch") == [True, True]


@pytest.mark.parametrize(
    ("item", "hypothesis"),
    [("Niger", "Nigeria"), ("3 Stunden", "13 Stunden"), ("Englisch", "Altenglisch"), ("a", "bad")],
)
def test_a_part_of_a_word_is_not_the_word(item: str, hypothesis: str):
    assert found([item], hypothesis) == [False]


def test_a_whole_word_after_a_part_of_one_is_found():
    assert found(["Niger"], "Nigeria, Niger") == [True]


def test_an_item_to_which_the_reference_attaches_a_word_may_have_one():
    """Arabic writes "and" as a prefix of what follows; Chinese writes it between two items without a space."""
    arabic, last = "فيجي ويورو", "يورو"
    start = arabic.index(last)
    assert recalled(arabic, [(0, 4), (start, start + 4)], arabic).tolist() == [True, True]
    assert recalled("斐济和欧元", [(0, 2), (3, 5)], "斐济和欧元").tolist() == [True, True]


def test_both_sides_are_compared_in_the_tokenizers_form():
    reference = "3\u00a0Euro"
    assert recalled(reference, [(0, 6)], "3 Euro").tolist() == [False]
    assert recalled(reference, [(0, 6)], "3 Euro", lambda text: text.replace("\u00a0", " ")).tolist() == [True]


def test_an_item_of_which_nothing_is_left_is_not_found():
    assert recalled("\u200b", [(0, 1)], "anything", lambda text: "").tolist() == [False]
    assert recalled("Euro", [], "Euro").tolist() == []
