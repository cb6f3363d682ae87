"""Beam search: the best of several continuations kept side by side.

Sources: beams that shrink as hypotheses end, Sutskever et al. 2014, arXiv:1409.3215, section 3.2; length and coverage
penalty, Wu et al. 2016, arXiv:1609.08144, section 7, equation 14; the average of log probabilities, Cho et al. 2014,
arXiv:1409.1259, section 4.2; no repeated n-grams, Paulus et al. 2017, arXiv:1705.04304, section 2.5.
Differs: penalties rank hypotheses that have ended; beams that go on have the same length and are ranked by probability.
Cost: that of greedy search times the beam, less what finished sentences save.
"""

import math

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from seq2seq.decoding.caps import Caps
from seq2seq.decoding.greedy import Searchable, not_numbers
from seq2seq.errors import ConfigError
from seq2seq.types import BOS, EOS, PAD, Hypothesis, is_whole

BLOCK = 64
LEAST_COVERAGE = 1e-9
"""In place of 0, whose logarithm would rank all that leave out a token alike."""
PENALTIES = ("none", "average", "gnmt")
LARGEST = 1000
"""Places of a beam; each takes the memory of a whole sentence."""
LARGEST_ALPHA = 10


class Beam:
    """Decodes a batch, ``beam`` hypotheses a sentence. A sentence's result does not depend on the others in its batch.

    A hypothesis that ends leaves the beam, which goes on with one place less; the search of a sentence stops when no place
    is left, or when nothing that goes on can still get ahead of what has ended.

    Args:
        beam: ``K``, hypotheses side by side. 1 is greedy search.
        length_penalty: by what a log probability is divided: ``none``, nothing; ``average``, the length; ``gnmt``,
            ``((5 + length) / 6) ^ alpha``. The length counts ``EOS``.
        alpha: of ``gnmt``: 0 divides by 1; the larger, the longer.
        coverage_penalty: ``beta``, factor of the sum over source tokens of ``log min(1, attention received)``, which is
            added. 0 leaves it out.
        no_repeat_ngram: forbids a second occurrence of so many tokens in a row; 0 forbids nothing.
        min_length: tokens before ``EOS`` may come.
        max_length: tokens at most; null for no such limit beside the source's.
        cap_ratio, cap_extra: at most ``cap_ratio * source tokens + cap_extra`` tokens.

    Raises:
        ConfigError: a number is out of range, or a penalty unknown.
    """

    def __init__(
        self,
        beam: int = 5,
        length_penalty: str = "gnmt",
        alpha: float = 0.6,
        coverage_penalty: float = 0.0,
        no_repeat_ngram: int = 0,
        min_length: int = 0,
        max_length: int | None = None,
        cap_ratio: float = 2.0,
        cap_extra: int = 10,
    ):
        if not is_whole(beam, 1) or beam > LARGEST:
            raise ConfigError(f"decoding.beam must be a whole number from 1 to {LARGEST}, found {beam}")
        if length_penalty not in PENALTIES:
            raise ConfigError(
                f"decoding.length_penalty must be one of {', '.join(PENALTIES)}, found {length_penalty!r}"
            )
        if not (0 <= alpha <= LARGEST_ALPHA and 0 <= coverage_penalty < math.inf and is_whole(no_repeat_ngram, 0)):
            raise ConfigError(
                f"decoding.alpha must be from 0 to {LARGEST_ALPHA}, decoding.coverage_penalty 0 or more and finite, and "
                f"decoding.no_repeat_ngram a whole number of 0 or more, found {alpha}, {coverage_penalty} and "
                f"{no_repeat_ngram}"
            )
        self.beam = beam
        self.length_penalty = length_penalty
        self.alpha = alpha
        self.coverage_penalty = coverage_penalty
        self.no_repeat_ngram = no_repeat_ngram
        self.caps = Caps(cap_ratio, cap_extra, min_length, max_length)

    def __call__(self, model: Searchable, source: Int[Tensor, "B S"], with_weights: bool = False) -> list[Hypothesis]:
        """The best hypothesis for each row of ``source``, in order; arguments as ``n_best`` has them."""
        return [found[0] for found in self.n_best(model, source, 1, with_weights)]

    @torch.inference_mode()
    def n_best(
        self, model: Searchable, source: Int[Tensor, "B S"], count: int | None = None, with_weights: bool = False
    ) -> list[list[Hypothesis]]:
        """For each row of ``source`` up to ``count`` different hypotheses, best first.

        Those that ended come before those that were cut at the length cap. There are fewer than ``count`` only where the
        model has no more to say.

        Args:
            model: in evaluation mode.
            source: ends with ``EOS`` in every row, then ``PAD``.
            count: ``beam`` if not given, and at most that.
            with_weights: also return the attention weights, cut to the row's own source.
        """
        count = self.beam if count is None else count
        if not 1 <= count <= self.beam:
            raise ConfigError(f"{count} best hypotheses need a beam as large, found decoding.beam={self.beam}")
        return _Search(self, model, source, count, with_weights).run()

    def divisor(self, length: Tensor | int) -> Tensor:
        """What the log probability of so many tokens, ``EOS`` among them, is divided by."""
        length = torch.as_tensor(length, dtype=torch.float32)
        if self.length_penalty == "gnmt":
            return ((5 + length) / 6) ** self.alpha
        return length if self.length_penalty == "average" else torch.ones_like(length)


class _Search:
    """One batch on its way. Rows of the state are sentence by sentence, ``K`` each; ``-inf`` marks a place that is free."""

    def __init__(self, settings: Beam, model: Searchable, source: Tensor, count: int, with_weights: bool):
        self.settings, self.model, self.count, self.with_weights = settings, model, count, with_weights
        self.size = settings.beam
        sentences, self.device = source.shape[0], source.device
        self.lengths = (source != PAD).sum(dim=1)  # [B]
        self.caps = settings.caps.of(self.lengths - 1)
        # All beams begin alike: the first step is taken once.
        self.state = model.start(source)
        self.sentences = torch.arange(sentences, device=self.device)  # of the rows still there
        self.total = torch.zeros(sentences, 1, device=self.device)
        self.places = torch.full((sentences,), self.size, device=self.device)  # that are not given to what has ended
        self.tokens = torch.full((sentences, 1), BOS, device=self.device)  # [B K, steps + 1]
        self.weights: Tensor | None = None  # [B K, steps, S]
        self.found: list[list[Hypothesis]] = [[] for _ in range(sentences)]

    def run(self) -> list[list[Hypothesis]]:
        while len(self.sentences):
            self._step()
        for found in self.found:
            found.sort(key=lambda hypothesis: (hypothesis.truncated, -hypothesis.score))
        return [found[: self.count] for found in self.found]

    def _step(self) -> None:
        logits, weights, self.state = self.model.step(self.tokens[:, -1], self.state)
        logits[:, [PAD, BOS]] = -torch.inf
        scores = self._allowed(logits.float().log_softmax(dim=-1))  # [B K, V]
        beams = self.total.shape[1]
        at_cap = self.tokens.shape[1] > self.caps  # [B]
        if at_cap.any():
            scores = torch.where(at_cap.repeat_interleave(beams).unsqueeze(1), _likeliest(scores), scores)
        # What is among the best of a sentence is among the best of its row.
        of_row, likely = largest(scores, min(self.size, scores.shape[1]))  # [B K, K]
        width = likely.shape[1]
        missing = max(self.size - beams * width, 0)  # of a vocabulary smaller than the beam, in the first step
        candidates = (self.total.unsqueeze(2) + of_row.view(-1, beams, width)).flatten(1)
        candidates = torch.nn.functional.pad(candidates, (0, missing), value=-torch.inf)
        likely = torch.nn.functional.pad(likely.reshape(-1, beams * width), (0, missing))
        best, index = candidates.topk(self.size, dim=1)  # [B, K]
        free = torch.arange(self.size, device=self.device) >= self.places.unsqueeze(1)
        best = best.masked_fill(free, -torch.inf)
        parents, tokens = (index // width).clamp(max=beams - 1), likely.gather(1, index)
        before = self.total.gather(1, parents)
        self._move(parents, tokens, weights)
        valid = best > -torch.inf
        ended = valid & (tokens == EOS)
        cut = valid & ~ended & at_cap.unsqueeze(1)
        self._finish(ended, best)
        self._finish(cut, before, truncated=True)
        self.places = self.places - ended.sum(dim=1)
        self.total = best.masked_fill(ended | cut, -torch.inf)
        self._drop_finished()

    def _allowed(self, scores: Float[Tensor, "R V"]) -> Float[Tensor, "R V"]:
        """What is forbidden has no probability; what is not keeps the model's."""
        written, of_end = self.tokens[:, 1:], scores[:, EOS].clone()
        if written.shape[1] < self.settings.caps.min_length:
            scores[:, EOS] = -torch.inf
        size = self.settings.no_repeat_ngram
        if size and written.shape[1] >= size:
            windows = written.unfold(1, size, 1)  # [R, steps - size + 1, size]
            repeats = (windows[..., :-1] == written[:, written.shape[1] - size + 1 :].unsqueeze(1)).all(dim=-1)
            rows, at = repeats.nonzero(as_tuple=True)
            scores[rows, windows[rows, at, -1]] = -torch.inf
            # Where nothing is allowed any more, the end is.
            stuck = (scores == -torch.inf).all(dim=-1)
            scores[:, EOS] = torch.where(stuck, of_end, scores[:, EOS])
        return scores

    def _move(self, parents: Int[Tensor, "B K"], tokens: Int[Tensor, "B K"], weights: Float[Tensor, "R S"]) -> None:
        """Lets every place go on from its parent."""
        beams = self.total.shape[1]
        first = torch.arange(len(parents), device=self.device).unsqueeze(1) * beams
        rows = (first + parents).flatten()
        self.state = self.state.exchange(rows) if beams == self.size else self.state.repeat(self.size)
        self.tokens = torch.cat((self.tokens.index_select(0, rows), tokens.view(-1, 1)), dim=1)
        if self.with_weights or self.settings.coverage_penalty:
            new = weights.unsqueeze(1)
            self.weights = new if self.weights is None else torch.cat((self.weights, new), dim=1)
            self.weights = self.weights.index_select(0, rows)

    def _finish(self, which: Bool[Tensor, "B K"], totals: Float[Tensor, "B K"], truncated: bool = False) -> None:
        rows = which.nonzero()[:, 0]
        if not len(rows):
            return
        at = which.flatten().nonzero()[:, 0]
        # The last token of either kind is none of the translation: EOS, or what came after the cap.
        written = self.tokens[at, 1:-1].tolist()
        steps = len(written[0]) + (not truncated)
        divisor = float(self.settings.divisor(max(steps, 1)))
        sentences = self.sentences[rows]
        for tokens, total, sentence, length, place in zip(
            written,
            totals[which].tolist(),
            sentences.tolist(),
            self.lengths[sentences].tolist(),
            at.tolist(),
            strict=True,
        ):
            score = total / divisor
            weights = None if self.weights is None else self.weights[place, :steps, :length].float()
            if self.settings.coverage_penalty and weights is not None:
                covered = weights.sum(dim=0).clamp(LEAST_COVERAGE, 1.0)
                score += self.settings.coverage_penalty * float(covered.log().sum())
            kept = weights.cpu() if self.with_weights and weights is not None else None
            self.found[sentence].append(Hypothesis(tokens, total, truncated, kept, score))

    def _drop_finished(self) -> None:
        """Sentences whose search is over leave the batch."""
        open_ones = self.total.amax(dim=1)  # [B]
        # Probabilities only fall and no penalty is below 0, so the longest possible divisor bounds what may still come.
        bound = open_ones / self.settings.divisor(self.caps + 1).to(self.device)
        if open_ones.isnan().any():
            raise not_numbers()
        keep = []
        for row, (sentence, best, possible) in enumerate(
            zip(self.sentences.tolist(), open_ones.tolist(), bound.tolist(), strict=True)
        ):
            scores = sorted((each.score for each in self.found[sentence] if not each.truncated), reverse=True)
            beaten = len(scores) >= self.count and scores[self.count - 1] >= possible
            if best > -torch.inf and not beaten:
                keep.append(row)
        if len(keep) == len(self.sentences):
            return
        left = torch.tensor(keep, dtype=torch.long, device=self.device)
        self.sentences, self.total, self.places, self.caps = (
            part[left] for part in (self.sentences, self.total, self.places, self.caps)
        )
        rows = (left.unsqueeze(1) * self.size + torch.arange(self.size, device=self.device)).flatten()
        self.state = self.state.select(rows)
        self.tokens = self.tokens[rows]
        self.weights = None if self.weights is None else self.weights[rows]


def largest(scores: Float[Tensor, "R V"], count: int) -> tuple[Float[Tensor, "R K"], Int[Tensor, "R K"]]:
    """The ``count`` largest of each row and where they are, as ``topk`` finds them.

    They lie in the blocks whose own largest are the largest, and only those are sorted; a ``nan`` is found, too.
    """
    whole = scores.shape[1] // BLOCK
    if whole <= count:
        return scores.topk(count, dim=1)
    blocks = scores[:, : whole * BLOCK].unflatten(1, (whole, BLOCK))
    chosen = blocks.amax(dim=2).topk(count, dim=1).indices  # [R, K]
    columns = (chosen.unsqueeze(2) * BLOCK + torch.arange(BLOCK, device=scores.device)).flatten(1)
    rest = torch.arange(whole * BLOCK, scores.shape[1], device=scores.device).expand(len(scores), -1)
    columns = torch.cat((columns, rest), dim=1)
    best, index = scores.gather(1, columns).topk(count, dim=1)
    return best, columns.gather(1, index)


def _likeliest(scores: Float[Tensor, "R V"]) -> Float[Tensor, "R V"]:
    """Minus infinity for all but the largest of each row."""
    best, index = scores.max(dim=-1, keepdim=True)
    return torch.full_like(scores, -torch.inf).scatter(1, index, best)
