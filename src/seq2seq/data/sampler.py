"""A plan as the loader sees it: one request for a batch after another, for one rank."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from torch.utils.data import SequentialSampler

from seq2seq.data.batching import Plan, evaluation_plan, loss_denominators, plan


class Request(NamedTuple):
    """One batch to be made."""

    ids: Int[np.ndarray, "B"]
    """Positions of the pairs in their split."""
    loss_denominator: float
    """See ``Batch.loss_denominator``."""
    seed: int = 0
    """Of what is drawn for this batch: another one for every epoch, step and rank."""


# Lightning puts a sampler of its own in the place of any that is not sequential when it is asked to overfit.
class PlannedSampler(SequentialSampler):
    """The training batches of one rank, planned anew for every epoch."""

    def __init__(
        self,
        lengths: Int[np.ndarray, "N 2"],
        max_tokens: int | None,
        max_sentences: int | None,
        *,
        ids: Int[np.ndarray, "K"] | None = None,
        world: int = 1,
        rank: int = 0,
        accumulate: int = 1,
        seed: int = 0,
        reshuffle: bool = True,
    ) -> None:
        """Plan the first epoch, so that what cannot be planned is said at once.

        Args:
            lengths: source and target tokens of every pair, ``EOS`` included.
            max_tokens: see :func:`~seq2seq.data.batching.plan`.
            max_sentences: see there.
            ids: the pairs to use; None for all.
            world: number of ranks.
            rank: the one that this sampler serves.
            accumulate: batches of one update and rank.
            seed: decides every epoch's plan.
            reshuffle: False repeats the plan of epoch 0 in every epoch.

        Raises:
            ConfigError: see :func:`~seq2seq.data.batching.plan`.
        """
        self.epoch, self.start_step = 0, 0
        self._lengths, self._ids = lengths, ids
        self._max_tokens, self._max_sentences = max_tokens, max_sentences
        self._world, self._rank, self._accumulate, self._seed = world, rank, accumulate, seed
        self._reshuffle = reshuffle
        self._planned: tuple[Plan, Float[np.ndarray, " steps"]] | None = None
        self._now()

    def set_epoch(self, epoch: int) -> None:
        """Use the plan of ``epoch``, from its first step unless it is the epoch already begun."""
        if epoch != self.epoch:
            self.start_at(epoch, 0)

    def start_at(self, epoch: int, step: int) -> None:
        """Use the plan of ``epoch`` from ``step`` on, as when training goes on where it stopped."""
        changed = epoch != self.epoch
        self.epoch, self.start_step = epoch, step
        if changed and self._reshuffle:
            self._planned = None  # the next one is made when it is needed, so that never two take memory

    def __len__(self) -> int:
        """Steps of a whole epoch, the same in every epoch."""
        return self.plan.steps

    def __iter__(self) -> Iterator[Request]:
        planned, denominators = self._now()
        batches = planned.steps * self._world
        for step in range(self.start_step, planned.steps):
            place = self.epoch * batches + step * self._world + self._rank
            # Neighbouring seeds of a run, and of runs whose own seeds are neighbours, are far apart.
            seed = int(np.random.SeedSequence((self._seed, place)).generate_state(1)[0])
            yield Request(planned.batch(step, self._rank), float(denominators[step]), seed)

    @property
    def plan(self) -> Plan:
        """The plan of this epoch."""
        return self._now()[0]

    def _now(self) -> tuple[Plan, Float[np.ndarray, " steps"]]:
        """The plan of this epoch and the denominator of each step."""
        if self._planned is None:
            epoch = self.epoch if self._reshuffle else 0
            made = plan(
                self._lengths, self._max_tokens, self._max_sentences, self._world, self._seed, epoch, ids=self._ids
            )
            tokens = made.target_tokens(self._lengths)
            self._planned = made, loss_denominators(tokens, self._world, self._accumulate)
        return self._planned


class EvaluationSampler(SequentialSampler):
    """The batches that one rank scores; over all ranks every pair once, the most costly first."""

    def __init__(
        self,
        lengths: Int[np.ndarray, "N 2"],
        max_tokens: int | None,
        max_sentences: int | None,
        *,
        world: int = 1,
        rank: int = 0,
    ) -> None:
        """Plan once; see :func:`~seq2seq.data.batching.evaluation_plan` for the ceilings and what it raises."""
        self.plan = evaluation_plan(lengths, max_tokens, max_sentences, world)
        self._rank = rank
        self._tokens = self.plan.target_tokens(lengths)[rank::world]

    def __len__(self) -> int:
        return self.plan.steps_of(self._rank)

    def __iter__(self) -> Iterator[Request]:
        for step, tokens in enumerate(self._tokens):
            yield Request(self.plan.batch(step, self._rank), float(tokens))
