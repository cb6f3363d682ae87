"""Beam search: the best of several continuations kept side by side.

Sources: beams that shrink as hypotheses end, Sutskever et al. 2014, arXiv:1409.3215, section 3.2; length and coverage
penalty, Wu et al. 2016, arXiv:1609.08144, section 7, equation 14; the average of log probabilities, Cho et al. 2014,
arXiv:1409.1259, section 4.2; no repeated n-grams, Paulus et al. 2017, arXiv:1705.04304, section 2.5.
Differs: penalties rank hypotheses that have ended; beams that go on have the same length and are ranked by probability.
Cost: that of greedy search times the beam, less the places of what has ended.
"""

import math

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from seq2seq.decoding.caps import Caps
from seq2seq.decoding.greedy import KEPT_SHARE, Searchable, not_numbers
from seq2seq.decoding.largest import largest, likeliest
from seq2seq.errors import ConfigError
from seq2seq.types import BOS, EOS, PAD, Hypothesis, is_whole

LEAST_COVERAGE = 1e-9
"""In place of 0, whose logarithm would rank all that leave out a token alike."""
PENALTIES = ("none", "average", "gnmt")
LARGEST = 1000
"""Places of a beam; each takes the memory of a whole sentence."""
LARGEST_ALPHA = 10


class Beam:
    """Decodes a batch, ``beam`` hypotheses a sentence. A sentence's result does not depend on the others in its batch.

    A hypothesis that ends leaves the beam, which goes on with one place less; the search of a sentence is over when no place
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
    """One batch on its way. A sentence has ``K`` places; ``-inf`` marks one that is free.

    The model computes rows, and few of them for free places: they leave its state once they are many. Only the model and
    the distributions over the vocabulary are on its device, which is waited for once a step; all else here is on the CPU.
    """

    def __init__(self, settings: Beam, model: Searchable, source: Tensor, count: int, with_weights: bool):
        self.settings, self.model, self.count, self.with_weights = settings, model, count, with_weights
        self.size = settings.beam
        sentences, self.device = source.shape[0], source.device
        self.lengths = (source != PAD).sum(dim=1).cpu()  # [B]
        self.caps = settings.caps.of(self.lengths - 1)
        self.sentences = torch.arange(sentences)  # whose rows are still there
        self.total = torch.full((sentences, self.size), -torch.inf)
        self.total[:, 0] = 0  # all beams begin alike: the first step is taken once
        self.left = torch.full_like(self.sentences, self.size)  # places that are not given to what has ended
        self.tokens = torch.full((sentences, self.size, 1), BOS)  # [B, K, steps + 1]
        self.weights: Tensor | None = None  # [B, K, steps, S]
        self.state = model.start(source)
        self.place = torch.arange(sentences) * self.size  # of each row, among all B K
        self.found: list[list[Hypothesis]] = [[] for _ in range(sentences)]

    def run(self) -> list[list[Hypothesis]]:
        while len(self.sentences):
            self._step()
        for found in self.found:
            found.sort(key=lambda hypothesis: (hypothesis.truncated, -hypothesis.score))
        return [found[: self.count] for found in self.found]

    def _step(self) -> None:
        written = self.tokens.flatten(0, 1)[self.place]  # [R, steps + 1]
        logits, weights, self.state = self.model.step(written[:, -1].to(self.device), self.state)
        logits[:, [PAD, BOS]] = -torch.inf
        scores = self._allowed(logits.float().log_softmax(dim=-1), written[:, 1:])  # [R, V]
        at_cap = written.shape[1] > self.caps  # [B]
        if at_cap.any():
            ending = at_cap[self.place // self.size].unsqueeze(1).to(self.device)
            scores = torch.where(ending, likeliest(scores), scores)
        # What is among the best of a sentence is among the best of its row.
        of_row, likely = (found.cpu() for found in largest(scores, min(self.size, scores.shape[1])))
        totals = self.total.flatten()[self.place].unsqueeze(1) + of_row
        candidates = self._by_place(totals, -torch.inf).flatten(1)  # [B, K K], of a small vocabulary fewer
        best, index = candidates.topk(self.size, dim=1)  # [B, K]
        best = best.masked_fill(torch.arange(self.size) >= self.left.unsqueeze(1), -torch.inf)
        parents = index // of_row.shape[1]
        chosen = self._by_place(likely, PAD).flatten(1).gather(1, index)
        before = self.total.gather(1, parents)
        self._write(parents, chosen, weights)
        valid = best > -torch.inf
        ended = valid & (chosen == EOS)
        cut = valid & ~ended & at_cap.unsqueeze(1)
        self._finish(ended, best)
        self._finish(cut, before, truncated=True)
        self.left = self.left - ended.sum(dim=1)
        self.total = best.masked_fill(ended | cut, -torch.inf)
        self._give_up()
        self._move(parents)

    def _by_place(self, rows: Shaped[Tensor, "R ..."], free: int | float) -> Shaped[Tensor, "B K ..."]:
        """What belongs to rows, at their places; ``free`` at places without a row."""
        places = rows.new_full((len(self.sentences) * self.size, *rows.shape[1:]), free)
        places[self.place] = rows
        return places.unflatten(0, (-1, self.size))

    def _allowed(self, scores: Float[Tensor, "R V"], written: Int[Tensor, "R T"]) -> Float[Tensor, "R V"]:
        """What is forbidden has no probability; what is not keeps the model's."""
        of_end = scores[:, EOS].clone()
        if written.shape[1] < self.settings.caps.min_length:
            scores[:, EOS] = -torch.inf
        size = self.settings.no_repeat_ngram
        if size and written.shape[1] >= size:
            windows = written.unfold(1, size, 1)  # [R, steps - size + 1, size]
            repeats = (windows[..., :-1] == written[:, written.shape[1] - size + 1 :].unsqueeze(1)).all(dim=-1)
            rows, at = repeats.nonzero(as_tuple=True)
            scores[rows.to(self.device), windows[rows, at, -1].to(self.device)] = -torch.inf
            # Where nothing is allowed any more, the end is.
            stuck = (scores == -torch.inf).all(dim=-1)
            scores[:, EOS] = torch.where(stuck, of_end, scores[:, EOS])
        return scores

    def _write(self, parents: Int[Tensor, "B K"], tokens: Int[Tensor, "B K"], weights: Float[Tensor, "R S"]) -> None:
        """Lets every place go on from its parent."""
        self.tokens = torch.cat((_of(self.tokens, parents), tokens.unsqueeze(2)), dim=2)
        if self.with_weights or self.settings.coverage_penalty:
            new = self._by_place(weights.cpu(), 0.0).unsqueeze(2)
            self.weights = _of(new if self.weights is None else torch.cat((self.weights, new), dim=2), parents)

    def _finish(self, which: Bool[Tensor, "B K"], totals: Float[Tensor, "B K"], truncated: bool = False) -> None:
        rows, places = which.nonzero(as_tuple=True)
        if not len(rows):
            return
        # The last token of either kind is none of the translation: EOS, or what came after the cap.
        written = self.tokens[rows, places, 1:-1].tolist()
        steps = len(written[0]) + (not truncated)
        divisor = float(self.settings.divisor(steps))
        sentences = self.sentences[rows]
        for tokens, total, sentence, length, row, place in zip(
            written,
            totals[which].tolist(),
            sentences.tolist(),
            self.lengths[sentences].tolist(),
            rows.tolist(),
            places.tolist(),
            strict=True,
        ):
            score = total / divisor
            weights = None if self.weights is None else self.weights[row, place, :steps, :length].float()
            if self.settings.coverage_penalty and weights is not None:
                covered = weights.sum(dim=0).clamp(LEAST_COVERAGE, 1.0)
                score += self.settings.coverage_penalty * float(covered.log().sum())
            # A view would hold on to all weights of the batch.
            kept = weights.clone() if self.with_weights and weights is not None else None
            self.found[sentence].append(Hypothesis(tokens, total, truncated, kept, score))

    def _give_up(self) -> None:
        """Frees the places of sentences in which nothing can get ahead any more."""
        going = self.total.amax(dim=1)  # [B]
        if going.isnan().any():
            raise not_numbers()
        # Probabilities only fall and no penalty is below 0, so the longest possible divisor bounds what may still come.
        bound = going / self.settings.divisor(self.caps + 1)
        over = []
        for row, (sentence, possible) in enumerate(zip(self.sentences.tolist(), bound.tolist(), strict=True)):
            ended = [each.score for each in self.found[sentence] if not each.truncated]
            if len(ended) >= self.count and sorted(ended)[-self.count] >= possible > -math.inf:
                over.append(row)
        self.total[over] = -torch.inf

    def _move(self, parents: Int[Tensor, "B K"]) -> None:
        """Lets every place that goes on do so from its parent's row; the model's state follows.

        Rows lie sentence by sentence. A sentence has as many as it needs or, as long as all together are not many too many,
        as many as it had.
        """
        goes_on = self.total > -torch.inf
        row_of = self._by_place(torch.arange(len(self.place)), -1)
        # What a free place computes is nobody's, but it has to come from its own sentence.
        source_row = torch.where(goes_on, row_of.gather(1, parents), row_of.amax(dim=1, keepdim=True))
        rows, needed = (row_of >= 0).sum(dim=1), goes_on.sum(dim=1)
        # Those that go on get a row before those that are free.
        places = goes_on.int().argsort(dim=1, descending=True, stable=True)
        move = self.state.exchange
        if (needed > rows).any() or needed.sum() <= KEPT_SHARE * len(self.place):
            move, rows = self.state.select, needed
            parts = (self.sentences, self.total, self.left, self.caps, self.tokens, source_row, places, rows)
            some = needed > 0
            self.sentences, self.total, self.left, self.caps, self.tokens, source_row, places, rows = (
                part[some] for part in parts
            )
            self.weights = None if self.weights is None else self.weights[some]
        first = torch.arange(len(places)).unsqueeze(1) * self.size
        self.place = (first + places)[torch.arange(self.size) < rows.unsqueeze(1)]
        self.state = move(source_row.flatten()[self.place].to(self.device))


def _of(parts: Shaped[Tensor, "B K ..."], parents: Int[Tensor, "B K"]) -> Shaped[Tensor, "B K ..."]:
    """Each place's own, taken from its parent."""
    first = torch.arange(len(parents)).unsqueeze(1) * parents.shape[1]
    return parts.flatten(0, 1).index_select(0, (first + parents).flatten()).unflatten(0, parents.shape)
