"""A few out of many."""

import pytest

from seq2seq.spread import evenly, thinned


@pytest.mark.parametrize(
    ("count", "most", "places"),
    [(0, 3, []), (3, 8, [0, 1, 2]), (3, 3, [0, 1, 2]), (20, 4, [0, 6, 13, 19]), (5, 1, [0]), (5, 0, [])],
)
def test_places(count, most, places):
    assert list(evenly(count, most)) == places


@pytest.mark.parametrize(
    ("count", "most", "kept"),
    [
        (0, 2, []),
        (4, 4, [0, 1, 2, 3]),
        (5, 4, [0, 2, 4]),
        (7, 4, [0, 2, 4, 6]),
        (8, 4, [0, 2, 4, 6]),
        (9, 4, [0, 4, 8]),
        (100, 3, [0, 64]),
        (3, 2, [0, 2]),
    ],
)
def test_thinned_in_one_pass(count, most, kept):
    assert thinned(iter(range(count)), most) == kept
