"""Text in, text out: a trained model, or several that vote, behind one object.

translator = Translator.load("runs/.../checkpoints/best.ckpt")
translator.translate(["A dog runs.", ""])  # ["Ein Hund rennt.", ""]
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

import torch

from seq2seq.attention.base import reach
from seq2seq.data.clauses import split_line
from seq2seq.data.tokenizer import Tokenizers
from seq2seq.decoding.beam import Beam
from seq2seq.decoding.candidate import Candidate, candidate_of, joined
from seq2seq.decoding.ensemble import Ensemble
from seq2seq.decoding.greedy import Search, Searchable
from seq2seq.errors import CheckpointError, ConfigError, CorpusError
from seq2seq.export import load_exported
from seq2seq.models.recipe import TRUSTED
from seq2seq.sharing import Shareable, checkpoint_in
from seq2seq.training.checkpoint import load
from seq2seq.types import EOS, PAD, Hypothesis


class Translator(Shareable):
    """Translates lines of text. ``push_to_hub``, ``save_pretrained`` and ``from_pretrained`` share it.

    Args:
        models: in evaluation mode; several vote at every step.
        tokenizers: the one pair of all of them.
        search: how to decode; one that is no ``Beam`` finds one translation a line.
        batch_tokens: source tokens a batch, padding included.
        longest: tokens of a line at most, less where an attention knows fewer positions; longer ones are split where
            punctuation allows, or else at spaces, or else within a word.
        replace_unknown: writes what was looked at most in place of an unknown token: the text of an unknown source token,
            the word of any other.
        device: where the models are.
    """

    def __init__(
        self,
        models: Sequence[Searchable],
        tokenizers: Tokenizers,
        search: Search | None = None,
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
        known = [
            reach(model) if isinstance(model, torch.nn.Module) else getattr(model, "reach", None)
            for model in self.models
        ]
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
        search: Search | None = None,
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
            reason = str(error).strip().splitlines()[0][:150]
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

    def n_best(
        self, lines: Sequence[str], count: int = 1, with_weights: bool = False, with_alignment: bool = False
    ) -> list[list[Candidate]]:
        """Up to ``count`` translations of every line, best first; exactly one empty one of a line without words.

        Their tokens differ, and their texts as far as the search has found so many. Of a line that was split, the best of
        all parts make the best, and so on.

        Args:
            lines: any text without line ends.
            count: at most the search's beam.
            with_weights: also return weights and alignments.
            with_alignment: also return alignments, which take no memory for every pair of positions.

        Raises:
            CorpusError: a line is no text; names it.
        """
        if isinstance(lines, str):
            raise CorpusError(f"a list of lines is expected, found one text: give [{lines[:20]!r}]")
        parts = []
        for number, line in enumerate(lines, start=1):
            try:
                parts.append(self.parts(line))
            except CorpusError as error:
                raise CorpusError(f"line {number}: {error}") from error
        return self.n_best_of_parts(parts, count, with_weights, with_alignment)

    def n_best_of_parts(
        self, parts: Sequence[Sequence[str]], count: int = 1, with_weights: bool = False, with_alignment: bool = False
    ) -> list[list[Candidate]]:
        """As ``n_best``, of lines that ``parts`` has cut already."""
        flat = [part for line in parts for part in line]
        found = iter(self._search(flat, count, with_weights or with_alignment or self.replace_unknown))
        return [joined(line, [next(found) for _ in line], with_weights) for line in parts]

    def parts(self, line: str) -> list[str]:
        """The line as it is translated: whole, in pieces of at most ``longest`` tokens, or nothing if it has no words.

        Raises:
            CorpusError: it is no text, or has a character that is longer than that by itself.
        """
        if not isinstance(line, str):
            raise CorpusError(f"text is expected, found {type(line).__name__}")
        try:
            line.encode("utf-8")
        except UnicodeEncodeError as error:
            raise CorpusError(
                f"character {error.start} is half of a pair ({line[error.start]!r}) and no text"
            ) from error
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
            for place, hypotheses in zip(batch, self._found(source, count, with_weights), strict=True):
                candidates = [
                    candidate_of(texts[place], encoded[place], each, self.tokenizers, self.replace_unknown)
                    for each in hypotheses
                ]
                found[place] = _first_different(candidates, count)
        return [found[place] for place in range(len(texts))]

    def _found(self, source: torch.Tensor, count: int, with_weights: bool) -> list[list[Hypothesis]]:
        """More than one hypothesis a row only if more than one is wanted: other pieces may make the same text."""
        if isinstance(self.search, Beam):
            return self.search.n_best(
                self.model, source, None if 1 < count <= self.search.beam else count, with_weights
            )
        if count > 1:
            raise ConfigError(f"{count} best translations need a beam search, found {type(self.search).__name__}")
        return [[hypothesis] for hypothesis in self.search(self.model, source, with_weights)]

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


def _loaded(path: Path, device: str, trusted: Sequence[str]) -> tuple[Searchable, Tokenizers]:
    if not path.is_dir():
        model, tokenizers = load(path, trusted)
        return model.to(device), tokenizers
    if torch.device(device).type != "cpu":
        raise ConfigError(f"device {device!r}: an exported model such as {path} runs on the cpu alone")
    return load_exported(path)


def _first_different(candidates: Sequence[Candidate], count: int) -> list[Candidate]:
    """The best ``count``, in order, those whose text a better one has only where there are too few others."""
    texts = [candidate.text for candidate in candidates]
    order = sorted(range(len(texts)), key=lambda place: (texts.index(texts[place]) != place, place))
    return [candidates[place] for place in sorted(order[:count])]
