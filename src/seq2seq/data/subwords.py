"""BPE-dropout: the pieces of a word are put together as ever, but every merge is left out with some probability.

Source: Provilkov, Emelianenko and Voita 2020, "BPE-Dropout: Simple and Effective Subword Regularization",
arXiv:1910.13267, section 3.
SentencePiece has it as well, but its random numbers differ from process to process, whatever the seed: no run could be
repeated or resumed. Without dropout the pieces here are those of SentencePiece; a test holds them to it.
Cost: a dictionary look-up for a word that no drop hits, its merges one by one for the others.
"""

import math
import random
from itertools import pairwise
from typing import NamedTuple

from seq2seq.data.tokenizer import Tokenizer
from seq2seq.types import UNK

_SPACE = "\u2581"


class _Usual(NamedTuple):
    """What becomes of a word without dropout."""

    ids: list[int]
    merges: int


class Subwords:
    """Cuts lines into pieces at random.

    Args:
        tokenizer: of kind ``bpe``.
        dropout: probability with which each merge is left out whenever it could be made, in [0, 1].
    """

    def __init__(self, tokenizer: Tokenizer, dropout: float):
        self.tokenizer = tokenizer
        self.dropout = dropout
        pieces = tokenizer.pieces(list(range(tokenizer.vocabulary_size)))
        self._ids = {piece: number for number, piece in enumerate(pieces)}
        self._ranks = tokenizer.merges()
        self._usual: dict[str, _Usual] = {}
        # Of the number of merges before the first that is left out, a geometric variable.
        self._per_merge = math.log1p(-dropout) if 0 < dropout < 1 else 0.0

    def encode(self, lines: list[str], seed: int) -> list[list[int]]:
        """The ids of every line, without ``BOS`` and ``EOS``; the same for the same lines and seed."""
        draw = random.Random(seed)
        return [self._line(line, draw) for line in lines]

    def _line(self, line: str, draw: random.Random) -> list[int]:
        ids: list[int] = []
        for word in self.tokenizer.normalised(line).split(" "):
            if word:
                ids += self._word(_SPACE + word, draw)
        # SentencePiece makes one unknown token of several in a row.
        return [number for place, number in enumerate(ids) if number != UNK or not place or ids[place - 1] != UNK]

    def _word(self, word: str, draw: random.Random) -> list[int]:
        usual = self._usual.get(word)
        if usual is None:
            symbols = self._merged(word, math.inf, draw)
            usual = self._usual[word] = _Usual(self._numbers(symbols), len(word) - len(symbols))
        if not self.dropout:
            return usual.ids
        first = math.log1p(-draw.random()) / self._per_merge if self._per_merge else 0.0
        # No merge on the usual way is left out.
        if first >= usual.merges:
            return usual.ids
        return self._numbers(self._merged(word, int(first), draw))

    def _merged(self, word: str, untouched: int | float, draw: random.Random) -> list[str]:
        """Symbols after all merges.

        Args:
            word: characters to begin with.
            untouched: so many merges are made for certain, and the best one after them is left out; then chance decides.
            draw: random numbers.
        """
        symbols, ranks, step = list(word), self._ranks, 0
        while True:
            pairs = [first + second for first, second in pairwise(symbols)]
            possible = sorted((ranks[pair], place) for place, pair in enumerate(pairs) if pair in ranks)
            chosen = None
            for order, (_, place) in enumerate(possible):
                if step < untouched or not ((step == untouched and order == 0) or draw.random() < self.dropout):
                    chosen = place
                    break
            if chosen is None:
                return symbols
            symbols[chosen : chosen + 2] = [pairs[chosen]]
            step += 1

    def _numbers(self, symbols: list[str]) -> list[int]:
        return [self._ids.get(symbol, UNK) for symbol in symbols]
