"""Which items of a source arrive in the free translation.

An item counts if its own text stands in the hypothesis, letter by letter, anywhere; each place there counts for one item,
so an item that is asked for twice has to be written twice. The longest items choose first: what is part of a longer item
is left for the longer one. And an item must stand as free as in the reference: "Niger" is not found in "Nigeria", while
the last item of an Arabic list, to which the word for "and" is attached, is found with it.
"""

from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Bool


def recalled(
    reference: str,
    items: Sequence[tuple[int, int]],
    hypothesis: str,
    normalise: Callable[[str], str] = str,
) -> Bool[np.ndarray, "I"]:
    """True for every item of ``reference`` that ``hypothesis`` holds.

    Args:
        reference: the target as the corpus has it.
        items: half-open ranges of characters in it.
        hypothesis: what was found by a search, in the form that ``normalise`` gives to a text.
        normalise: what a tokenizer does to a text before it cuts it, and what no decoding can undo: such as a plain space
            for an unbreakable one.
    """
    texts = [normalise(reference[start:end]) for start, end in items]
    found = np.zeros(len(items), bool)
    used = np.zeros(len(hypothesis), bool)
    for item in sorted(range(len(items)), key=lambda item: -len(texts[item])):
        start, end = items[item]
        may_touch = _is_inside_word(reference, start), _is_inside_word(reference, end)
        place = _free_place(texts[item], may_touch, hypothesis, used)
        if place is not None:
            used[place : place + len(texts[item])] = True
            found[item] = True
    return found


def _free_place(
    text: str, may_touch: tuple[bool, bool], hypothesis: str, used: Bool[np.ndarray, "characters"]
) -> int | None:
    """Where in ``hypothesis`` the text stands first, unused, and as a whole word on each side that may touch no other."""
    place = hypothesis.find(text) if text else -1
    while place >= 0:
        end = place + len(text)
        touches = _is_inside_word(hypothesis, place), _is_inside_word(hypothesis, end)
        allowed = all(may or not does for may, does in zip(may_touch, touches, strict=True))
        if allowed and not used[place:end].any():
            return place
        place = hypothesis.find(text, place + 1)
    return None


def _is_inside_word(text: str, place: int) -> bool:
    """True if the characters on both sides of ``place`` are letters or digits."""
    return 0 < place < len(text) and text[place - 1].isalnum() and text[place].isalnum()
