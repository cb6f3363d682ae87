"""Text in, text out: a trained model, or several that vote, behind one object.

translator = Translator.load("runs/.../checkpoints/best.ckpt")
translator.translate(["A dog runs.", ""])  # ["Ein Hund rennt.", ""]
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float

from seq2seq.attention.base import reach
from seq2seq.data.clauses import split_line
from seq2seq.data.tokenizer import EOS_LABEL, Tokenizer, Tokenizers
from seq2seq.decoding.beam import Beam
from seq2seq.decoding.ensemble import Ensemble
from seq2seq.decoding.greedy import Searchable
from seq2seq.decoding.words import NO_WORD, Link, links, word_weights, words_of_source, words_of_target
from seq2seq.errors import CheckpointError, ConfigError
from seq2seq.export import load_exported
from seq2seq.models.recipe import TRUSTED
from seq2seq.sharing import Shareable, checkpoint_in
from seq2seq.training.checkpoint import load
from seq2seq.types import EOS, PAD, UNK, Hypothesis


class Candidate(NamedTuple):
    """One translation of a line."""

    text: str
    score: float
    """What the search ranks by, 0 for an empty line."""
    log_probability: float
    truncated: bool
    """True if it was cut at the length cap."""
    source: tuple[str, ...]
    target: tuple[str, ...]
    """Tokens as they are written, ``</s>`` last."""
    weights: Float[np.ndarray, "T S"] | None
    """Of each target token over the source tokens, if they were asked for."""
    alignment: tuple[Link, ...]
    """Words of the line and of the translation, split at white space, that belong together; empty without weights."""


class Translator(Shareable):
    """Translates lines of text. ``push_to_hub``, ``save_pretrained`` and ``from_pretrained`` share it.

    Args:
        models: in evaluation mode; several vote at every step.
        tokenizers: the one pair of all of them.
        search: how to decode.
        batch_tokens: source tokens a batch, padding included.
        longest: tokens of a line at most, less where an attention knows fewer positions; longer ones are split where
            punctuation allows, or else at spaces, or else within a word.
        replace_unknown: writes the source word that was looked at most in place of an unknown token.
        device: where the models are.
    """

    def __init__(
        self,
        models: Sequence[Searchable],
        tokenizers: Tokenizers,
        search: Beam | None = None,
        batch_tokens: int = 4000,
        longest: int = 200,
        replace_unknown: bool = False,
        device: str = "cpu",
    ):
        if batch_tokens < 1 or longest < 1:
            raise ConfigError(f"batch_tokens and longest must be at least 1, found {batch_tokens} and {longest}")
        self.models = list(models)
        self.model = self.models[0] if len(self.models) == 1 else Ensemble(self.models)
        self.tokenizers = tokenizers
        self.search = search or Beam()
        self.batch_tokens = batch_tokens
        known = [reach(model) for model in self.models if isinstance(model, torch.nn.Module)]
        # ``EOS`` has a position, too.
        self.longest = min([longest, *(limit - 1 for limit in known if limit is not None)])
        self.replace_unknown = replace_unknown
        self.device = device

    @classmethod
    def load(
        cls,
        *checkpoints: str | Path,
        device: str = "cpu",
        trusted: Sequence[str] = TRUSTED,
        search: Beam | None = None,
        batch_tokens: int = 4000,
        longest: int = 200,
        replace_unknown: bool = False,
    ) -> "Translator":
        """Of checkpoints that training wrote; several make an ensemble.

        Args:
            checkpoints: files, or folders: of a run, or as ``seq2seq-share`` or ``seq2seq-export`` wrote them.
            device: where to compute, such as ``cpu`` or ``cuda``.
            trusted: import paths that their recipes may name begin so.
            search, batch_tokens, longest, replace_unknown: as for ``Translator``.

        Raises:
            CheckpointError: a file cannot be used, or two have other vocabularies.
            ConfigError: the device is not there.
        """
        if not checkpoints:
            raise ConfigError("name at least one checkpoint")
        try:
            torch.zeros(1, device=device).item()
        except (RuntimeError, AssertionError, NotImplementedError) as error:
            reason = str(error).strip().splitlines()[0]
            raise ConfigError(f"device {device!r} cannot be used ({reason}); cpu always can") from error
        paths = [checkpoint_in(Path(path)) for path in checkpoints]
        loaded = [_loaded(path, device, trusted) for path in paths]
        first = loaded[0][1]
        for path, (_, tokenizers) in zip(checkpoints, loaded, strict=True):
            if [side.model for side in tokenizers[:2]] != [side.model for side in first[:2]]:
                raise CheckpointError(
                    f"{path} and {checkpoints[0]} have different vocabularies; an ensemble needs runs on the same data with "
                    "the same tokenizer"
                )
        models = [model for model, _ in loaded]
        translator = cls(models, first, search, batch_tokens, longest, replace_unknown, device)
        translator.checkpoints = paths
        return translator

    def translate(self, lines: Sequence[str]) -> list[str]:
        """The best translation of every line, in order; an empty line for an empty line."""
        return [found[0].text for found in self.n_best(lines, 1)]

    def n_best(self, lines: Sequence[str], count: int = 1, with_weights: bool = False) -> list[list[Candidate]]:
        """Up to ``count`` translations of every line, best first; exactly one empty one of a line without words.

        Of a line that was split, the best of all parts make the best, and so on.

        Args:
            lines: any text without line ends.
            count: at most the search's beam.
            with_weights: also return weights and alignments.
        """
        return self.n_best_of_parts([self.parts(line) for line in lines], count, with_weights)

    def n_best_of_parts(
        self, parts: Sequence[Sequence[str]], count: int = 1, with_weights: bool = False
    ) -> list[list[Candidate]]:
        """As ``n_best``, of lines that ``parts`` has cut already."""
        flat = [part for line in parts for part in line]
        found = iter(self._search(flat, count, with_weights or self.replace_unknown))
        return [_joined(line, [next(found) for _ in line], with_weights) for line in parts]

    def parts(self, line: str) -> list[str]:
        """The line as it is translated: whole, in pieces of at most ``longest`` tokens, or nothing if it has no words.

        Raises:
            CorpusError: it has a character that is longer than that by itself.
        """
        length = self._length(line)
        if length <= self.longest:
            return [line] if length and line.strip() else []
        return split_line(line, self._length, self.longest)

    def fits(self, line: str) -> bool:
        """Whether the line is translated whole."""
        return self._length(line) <= self.longest

    def _length(self, text: str) -> int:
        return len(self.tokenizers.source.encode([text])[0])

    def _search(self, texts: Sequence[str], count: int, with_weights: bool) -> list[list[Candidate]]:
        encoded = self.tokenizers.source.encode(list(texts))
        found: dict[int, list[Candidate]] = {}
        for batch in self._batches([len(tokens) + 1 for tokens in encoded]):
            rows = [[*encoded[place], EOS] for place in batch]
            width = max(map(len, rows))
            source = torch.tensor([row + [PAD] * (width - len(row)) for row in rows], device=self.device)
            for place, hypotheses in zip(
                batch, self.search.n_best(self.model, source, count, with_weights), strict=True
            ):
                found[place] = [self._candidate(texts[place], encoded[place], each) for each in hypotheses]
        return [found[place] for place in range(len(texts))]

    def _batches(self, lengths: Sequence[int]) -> Iterable[list[int]]:
        """Places of texts of similar length, as many as ``batch_tokens`` allows and at least one."""
        batch: list[int] = []
        for place in sorted(range(len(lengths)), key=lambda place: lengths[place]):
            if batch and lengths[place] * (len(batch) + 1) > self.batch_tokens:
                yield batch
                batch = []
            batch.append(place)
        if batch:
            yield batch

    def _candidate(self, text: str, encoded: Sequence[int], hypothesis: Hypothesis) -> Candidate:
        source, target = self.tokenizers.source, self.tokenizers.target
        translation = target.decode([hypothesis.tokens])[0]
        weights = None if hypothesis.weights is None else hypothesis.weights.numpy()
        alignment: list[Link] = []
        if weights is not None:
            # EOS belongs to no word.
            source_words = np.append(words_of_source(source, text), NO_WORD)
            target_words = words_of_target(target, hypothesis.tokens)
            by_word = word_weights(weights[: len(target_words)], source_words, target_words)
            alignment = links(by_word)
            if self.replace_unknown and UNK in hypothesis.tokens:
                translation = _without_unknown(translation, text, hypothesis.tokens, target_words, target, alignment)
        ends = () if hypothesis.truncated else (EOS_LABEL,)
        return Candidate(
            " ".join(translation.split("\n")),
            hypothesis.score,
            hypothesis.log_probability,
            hypothesis.truncated,
            (*source.pieces(list(encoded)), EOS_LABEL),
            (*target.pieces(hypothesis.tokens), *ends),
            weights,
            tuple(alignment),
        )


def _loaded(path: Path, device: str, trusted: Sequence[str]) -> tuple[Searchable, Tokenizers]:
    if not path.is_dir():
        model, tokenizers = load(path, trusted)
        return model.to(device), tokenizers
    if torch.device(device).type != "cpu":
        raise ConfigError(f"device {device!r}: an exported model such as {path} runs on the cpu alone")
    return load_exported(path)


def _without_unknown(
    translation: str,
    text: str,
    tokens: Sequence[int],
    target_words: np.ndarray,
    target: Tokenizer,
    alignment: Sequence[Link],
) -> str:
    """Each word that is nothing but unknown becomes the source word that it was aligned with."""
    words, source_words, of_word = translation.split(), text.split(), {link[1]: link[0] for link in alignment}
    unknown = target.decode([[UNK]])[0].strip()
    for place, word in zip(target_words.tolist(), tokens, strict=True):
        if word == UNK and place in of_word and words[place] == unknown:
            words[place] = source_words[of_word[place]]
    return " ".join(words)


def _joined(texts: Sequence[str], parts: Sequence[Sequence[Candidate]], with_weights: bool) -> list[Candidate]:
    """The candidates of a line from those of its parts, whose texts together are the line."""
    if not parts:
        weights = np.zeros((1, 1), np.float32) if with_weights else None
        return [Candidate("", 0.0, 0.0, False, (EOS_LABEL,), (EOS_LABEL,), weights, ())]
    if len(parts) == 1:
        return list(parts[0])
    return [_chained(texts, [part[rank] for part in parts]) for rank in range(min(map(len, parts)))]


def _chained(texts: Sequence[str], parts: Sequence[Candidate]) -> Candidate:
    """Parts one after the other: scores are added, weights are zero between one part's target and another's source."""
    source = tuple(token for part in parts for token in part.source)
    target = tuple(token for part in parts for token in part.target)
    weights = None
    if all(part.weights is not None for part in parts):
        weights = np.zeros((len(target), len(source)), np.float32)
    alignment: list[Link] = []
    row = column = words = 0
    before = ""
    for text, part in zip(texts, parts, strict=True):
        if weights is not None and part.weights is not None:
            weights[row : row + len(part.target), column : column + len(part.source)] = part.weights
        # A part may begin in the middle of a word.
        first = len(f"{before}x".split()) - 1
        alignment += [(first + one, words + other) for one, other in part.alignment]
        row, column, words = row + len(part.target), column + len(part.source), words + len(part.text.split())
        before += text
    return Candidate(
        " ".join(part.text for part in parts),
        sum(part.score for part in parts),
        sum(part.log_probability for part in parts),
        any(part.truncated for part in parts),
        source,
        target,
        weights,
        tuple(alignment),
    )
