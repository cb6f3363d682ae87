"""A few out of many."""

import pytest

from seq2seq.spread import evenly


@pytest.mark.parametrize(
    ("count", "most", "places"),
    [(0, 3, []), (3, 8, [0, 1, 2]), (3, 3, [0, 1, 2]), (20, 4, [0, 6, 13, 19]), (5, 1, [0]), (5, 0, [])],
)
def test_places(count, most, places):
    assert list(evenly(count, most)) == places
