"""Text to token ids and back: SentencePiece, held in memory as the bytes of one model."""

import io
import re
from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

import sentencepiece

from seq2seq.errors import CheckpointError, ConfigError, CorpusError
from seq2seq.types import BOS, EOS, PAD, UNK

Kind = Literal["bpe", "unigram", "char", "word"]
Normalization = Literal["nmt_nfkc", "nmt_nfkc_cf", "nfkc", "nfkc_cf", "identity"]

EOS_LABEL = "</s>"
"""How ``pieces`` writes the end of a sentence."""
NAME = re.compile("<pad>|<unk>|<s>|</s>")
"""What the control symbols are called, where a text happens to hold it."""
_BEGINS = re.compile("[<\ufe64\uff1c]")
"""What normalisation may make the first character of such a name."""
_CONTROL = frozenset((PAD, BOS, EOS))
_SMALLEST = 5
"""The four control symbols and one piece of text."""
SPACE = "\u2581"
"""How SentencePiece writes a space."""


class Tokenizer:
    """One SentencePiece model. Its four control ids never come out of a text, and never go into one."""

    def __init__(self, model: bytes) -> None:
        """Read a model from its bytes, for example those kept in a checkpoint.

        Raises:
            CheckpointError: the bytes are no SentencePiece model, or one with other control ids.
        """
        self.model = model
        self._processor = sentencepiece.SentencePieceProcessor()
        try:
            self._processor.LoadFromSerializedProto(model)
        except (RuntimeError, TypeError) as error:
            raise CheckpointError(
                f"the {len(model)} bytes of the tokenizer are no SentencePiece model: the file that held them is damaged"
            ) from error
        control = tuple(int(getattr(self._processor, name)()) for name in ("pad_id", "unk_id", "bos_id", "eos_id"))
        if control != (PAD, UNK, BOS, EOS):
            raise CheckpointError(
                f"the tokenizer has pad, unk, bos, eos = {control}, expected {(PAD, UNK, BOS, EOS)}: "
                "it comes from another program"
            )

    @classmethod
    def train(
        cls,
        lines: Iterable[str],
        vocabulary_size: int,
        kind: Kind = "bpe",
        normalization: Normalization = "nmt_nfkc",
    ) -> "Tokenizer":
        """Learn a vocabulary; the same lines in the same order always give the same bytes.

        Raises:
            ConfigError: the lines cannot fill so large a vocabulary, or their characters do not fit into so small a
                one; names the nearest size that works.
            CorpusError: the lines hold no text.
        """
        model = io.BytesIO()
        watched = _Watched(lines, normalization)
        try:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=watched,
                model_writer=model,
                model_type=kind,
                vocab_size=max(vocabulary_size, _SMALLEST),
                normalization_rule_name=normalization,
                character_coverage=1.0,
                max_sentence_length=1 << 30,  # the default silently skips lines of over 4,192 bytes
                num_threads=4,  # a constant: sums of floats depend on it
                minloglevel=9,
                pad_id=PAD,
                unk_id=UNK,
                bos_id=BOS,
                eos_id=EOS,
            )
        except RuntimeError as error:
            if watched.failure is not None:
                raise watched.failure from None
            raise _explain(str(error), vocabulary_size, kind) or error from None
        if vocabulary_size < _SMALLEST:
            raise _too_small(vocabulary_size, _SMALLEST, kind)
        tokenizer = cls(model.getvalue())
        if tokenizer.vocabulary_size < vocabulary_size:  # a vocabulary of characters is cut without an error
            raise _too_large(vocabulary_size, tokenizer.vocabulary_size, kind)
        return tokenizer

    @property
    def vocabulary_size(self) -> int:
        """Number of ids, the four control symbols among them."""
        return self._processor.get_piece_size()

    def encode(self, lines: list[str], threads: int = 1) -> list[list[int]]:
        """The ids of every line, without ``BOS`` and ``EOS``."""
        if threads > 1:
            return self._processor.encode(lines, num_threads=threads)
        # Any list makes SentencePiece start threads, which takes longer than a line does.
        return [self._processor.encode(line) for line in lines]

    def merges(self) -> dict[str, float]:
        """Pieces of more than one character, and where they stand in the order of merging, the first of which is made first.

        Those of a ``bpe`` model; other kinds merge nothing.
        """
        pieces = self.pieces(list(range(self.vocabulary_size)))
        return {
            piece: -self._processor.get_score(number)
            for number, piece in enumerate(pieces)
            if len(piece) > 1 and not self._processor.is_control(number) and not self._processor.is_unknown(number)
        }

    def decode(self, ids: list[list[int]]) -> list[str]:
        """The text of every list of ids, without ``PAD``, ``BOS`` and ``EOS``; ``UNK`` reads as a double question mark."""
        return [self._processor.decode([i for i in row if i not in _CONTROL]) for row in ids]

    def offsets(self, text: str) -> list[tuple[int, int]]:
        """For every id that ``encode`` gives to ``text``, the half-open range of characters of ``text`` that it stands for.

        Ranges follow one another without overlap, also where normalisation changed the text: one id of a character that
        became two has an empty range. White space before a word is in the word's range; a range is empty as well for the
        space that is imagined before the first word.
        """
        return self._processor.encode(text, out_type="offset_mapping")["offsets"]

    def normalised(self, text: str) -> str:
        """The text as it is before it is cut into pieces: what decoding gives back if no character is unknown."""
        return self._processor.normalize(text).replace(SPACE, " ").strip(" ")

    def pieces(self, ids: list[int]) -> list[str]:
        """The written form of every id, control symbols as ``<pad> <unk> <s> </s>``."""
        return self._processor.id_to_piece(ids) if ids else []

    def __reduce__(self) -> tuple[type["Tokenizer"], tuple[bytes]]:
        return Tokenizer, (self.model,)


class Tokenizers(NamedTuple):
    """The tokenizers of the two sides; one and the same object if ``joint``."""

    source: Tokenizer
    target: Tokenizer
    joint: bool

    def sizes(self) -> dict[str, int | bool]:
        """What a model needs to know of its vocabularies."""
        return {
            "source_vocabulary": self.source.vocabulary_size,
            "target_vocabulary": self.target.vocabulary_size,
            "joint": self.joint,
        }


class _Watched:
    """Lines on their way into SentencePiece, which turns what is raised on that way into a bare RuntimeError."""

    def __init__(self, lines: Iterable[str], normalization: Normalization) -> None:
        self._lines = iter(lines)
        self._normalizer = sentencepiece.SentencePieceNormalizer(rule_name=normalization)
        self.failure: Exception | None = None

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        try:
            line = next(self._lines)
            if not _BEGINS.search(line):
                return line
            # SentencePiece would learn from the text around the name of a control symbol, and not that name's characters.
            normalised = self._normalizer.normalize(line)
            return NAME.sub(lambda name: " ".join(name[0]), normalised) if NAME.search(normalised) else line
        except StopIteration:
            raise
        except Exception as error:
            self.failure = error
            raise


def _explain(message: str, vocabulary_size: int, kind: Kind) -> Exception | None:
    """What SentencePiece complains about, in the words of a user's settings; None if it is a fault of ours."""
    if "sentences_.empty()" in message or "all_chars_count" in message:
        return CorpusError("there is no text to train a tokenizer on: every line is empty")
    if too_large := re.search(r"too high .* value <= (\d+)", message):
        return _too_large(vocabulary_size, int(too_large[1]), kind)
    if too_small := re.search(r"smaller than required_chars\. -?\d+ vs (\d+)", message):
        return _too_small(vocabulary_size, int(too_small[1]), kind)
    return None


def _too_large(found: int, largest: int, kind: Kind) -> ConfigError:
    return ConfigError(
        f"vocabulary_size={found} is too large for this text with tokenizer={kind}; the largest possible: {largest}. "
        f"Set vocabulary_size={largest} or less, or use more text"
    )


def _too_small(found: int, smallest: int, kind: Kind) -> ConfigError:
    return ConfigError(
        f"vocabulary_size={found} is too small for this text with tokenizer={kind}; the smallest possible: {smallest}. "
        f"Set vocabulary_size={smallest} or more"
    )
