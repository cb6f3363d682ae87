"""Which pairs go into which batch: planned once for all ranks, under a ceiling, then sharded.

A batch of ``n`` pairs costs ``n * (longest source + longest target)`` tokens, padding and ``EOS`` included. ``max_tokens``
is a ceiling on that cost, ``max_sentences`` one on ``n``; at least one of them must be given.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from seq2seq.errors import ConfigError

_UNLIMITED = 1 << 31
_BLOCK = 1 << 16


@dataclass(frozen=True)
class Plan:
    """Batches of pairs. Step ``s`` of rank ``r`` is batch ``s * world + r``."""

    order: Int[np.ndarray, "N"]
    """Positions of the pairs, batch by batch."""
    starts: Int[np.ndarray, "batches"]
    ends: Int[np.ndarray, "batches"]
    """Batch ``b`` is ``order[starts[b]:ends[b]]``."""
    world: int

    @property
    def batches(self) -> int:
        """Number of batches of all ranks together."""
        return len(self.starts)

    @property
    def steps(self) -> int:
        """Number of steps of the rank that has most; in training all ranks have as many."""
        return self.steps_of(0)

    def steps_of(self, rank: int) -> int:
        """Number of steps of one rank."""
        return len(range(rank, self.batches, self.world))

    def batch(self, step: int, rank: int = 0) -> Int[np.ndarray, "B"]:
        """Positions of the pairs that ``rank`` sees at ``step``."""
        index = step * self.world + rank
        return self.order[self.starts[index] : self.ends[index]]

    def costs(self, lengths: Int[np.ndarray, "N 2"]) -> Int[np.ndarray, "batches"]:
        """Padded tokens of every batch, both sides."""
        longest = np.empty((self.batches, 2), np.int64)
        for index, (start, end) in enumerate(zip(self.starts, self.ends, strict=True)):
            lengths[self.order[start:end]].max(axis=0, out=longest[index])
        return (self.ends - self.starts) * longest.sum(axis=1)

    def target_tokens(self, lengths: Int[np.ndarray, "N 2"]) -> Int[np.ndarray, "batches"]:
        """Real target tokens of every batch, ``EOS`` included."""
        # Batch by batch, as all lengths in their order would take as much memory again as the plan.
        bounds = zip(self.starts, self.ends, strict=True)
        totals = (lengths[self.order[start:end], 1].sum(dtype=np.int64) for start, end in bounds)
        return np.fromiter(totals, np.int64, self.batches)

    def padding_share(self, lengths: Int[np.ndarray, "N 2"]) -> float:
        """Share of padding in the tokens of all batches, both sides, in [0, 1)."""
        return 1.0 - float(lengths[self.order].sum(dtype=np.int64)) / float(self.costs(lengths).sum())


def plan(
    lengths: Int[np.ndarray, "N 2"],
    max_tokens: int | None,
    max_sentences: int | None,
    world: int = 1,
    seed: int = 0,
    epoch: int = 0,
    shuffle: bool = True,
    ids: Int[np.ndarray, "K"] | None = None,
) -> Plan:
    """Batches for an epoch of training: each pair exactly once, as many steps for every rank, similar lengths together.

    The number of steps is the same in every epoch: only pairs of equal lengths trade places.

    Args:
        lengths: source and target tokens of every pair, ``EOS`` included.
        max_tokens: ceiling on the padded tokens of a batch, both sides.
        max_sentences: ceiling on the pairs of a batch.
        world: number of ranks. A step is cut for all of them together and then shared out evenly, so that what is in an
            update hardly depends on how many they are, and with ``max_sentences`` alone not at all.
        seed: with ``epoch``, decides which of the pairs of equal lengths share a batch, and the order of the steps.
        epoch: see ``seed``.
        shuffle: False takes equal lengths in the order of the corpus, and the steps from short to long.
        ids: positions of the pairs to plan; None for all.

    Raises:
        ConfigError: no ceiling is given, a pair alone is over it, or there are not enough pairs for the ranks.
    """
    most_tokens, most_sentences = ceilings(max_tokens, max_sentences)
    used = lengths if ids is None else lengths[ids]
    if len(used) < world:
        raise ConfigError(f"{len(used)} training pairs cannot be shared by {world} processes: use at most {len(used)}")
    longest = int(used.sum(axis=1, dtype=np.int32).max())
    if longest > most_tokens:
        raise ConfigError(
            f"max_tokens={max_tokens} is less than the {longest} tokens of the longest training pair, source and target "
            "together: raise max_tokens, or lower max_length"
        )
    del used
    random = np.random.default_rng((seed, epoch)) if shuffle else None
    order = _by_length(lengths, ids, random)
    bounds = _enough_for_all(_cut(lengths, order, most_tokens, most_sentences, world), world)
    steps = np.arange(len(bounds) - 1) if random is None else random.permutation(len(bounds) - 1)
    shares = bounds[steps][:, None] + np.diff(bounds)[steps][:, None] * np.arange(world + 1) // world
    return Plan(order, shares[:, :-1].reshape(-1), shares[:, 1:].reshape(-1), world)


def evaluation_plan(
    lengths: Int[np.ndarray, "N 2"], max_tokens: int | None, max_sentences: int | None, world: int = 1
) -> Plan:
    """Batches for scoring: each pair exactly once, the dearest batch first, so that memory runs out at once or never.

    A pair over the ceiling is a batch of its own. Ranks may differ by one step; each has at least one.

    Raises:
        ConfigError: no ceiling is given, or there are more ranks than pairs.
    """
    most_tokens, most_sentences = ceilings(max_tokens, max_sentences)
    if len(lengths) < world:
        raise ConfigError(
            f"{world} processes cannot share {len(lengths)} sentences of validation or test: give each at least one, or set "
            f"trainer.devices={len(lengths)} or less"
        )
    order = np.ascontiguousarray(_by_length(lengths, None, None)[::-1])
    # Every rank needs a batch, as one without any takes no part in adding up the scores.
    bounds = _cut(lengths, order, most_tokens, min(most_sentences, len(lengths) // world))
    batches = Plan(order, bounds[:-1], bounds[1:], world)
    dearest = np.argsort(-batches.costs(lengths), kind="stable")
    return Plan(order, batches.starts[dearest], batches.ends[dearest], world)


def loss_denominators(tokens: Int[np.ndarray, "batches"], world: int, accumulate: int) -> Float[np.ndarray, "steps"]:
    """What the summed loss of a batch is divided by, for every step, the same on every rank.

    Gradients are averaged over ``world`` ranks, and each loss is divided by ``accumulate`` even in the last, short group
    of an epoch. Divided by ``target tokens of the group / (accumulate * world)``, every token of an update weighs the same.
    """
    steps = tokens.reshape(-1, world).sum(axis=1)
    groups = np.add.reduceat(steps, np.arange(0, len(steps), accumulate))
    return np.repeat(groups / (accumulate * world), accumulate)[: len(steps)]


def ceilings(max_tokens: int | None, max_sentences: int | None, prefix: str = "") -> tuple[int, int]:
    """Both ceilings as numbers; ``prefix`` is what stands before their names in the user's settings.

    Raises:
        ConfigError: none is given, or one is less than 1.
    """
    names = f"{prefix}max_tokens", f"{prefix}max_sentences"
    if max_tokens is None and max_sentences is None:
        raise ConfigError(f"{names[0]} and {names[1]} are both null: give at least one, for example {names[0]}=8000")
    for name, value in zip(names, (max_tokens, max_sentences), strict=True):
        if value is not None and value < 1:
            raise ConfigError(f"{name}={value} is not possible: give at least 1, or null for no such ceiling")
    return max_tokens or _UNLIMITED, max_sentences or _UNLIMITED


def _by_length(
    lengths: Int[np.ndarray, "N 2"], ids: Int[np.ndarray, "K"] | None, random: np.random.Generator | None
) -> Int[np.ndarray, "K"]:
    """Positions by target length; within one target length by source length, up and down in turn like a snake.

    Neighbours then stay similar on both sides where the target length changes. Equal lengths come in random order, or in
    that of the corpus.
    """
    pairs = len(lengths) if ids is None else len(ids)
    widest, tallest = (lengths.max(axis=0).astype(np.int64) + 1).tolist() if len(lengths) else (1, 1)
    # One number a pair, sorted in place: key, random bits, position. It takes half the memory of sorting indices by key.
    position_bits = max(1, pairs.bit_length())
    random_bits = 63 - position_bits - (widest * tallest).bit_length()
    packed = np.empty(pairs, np.int64)
    for start in range(0, pairs, _BLOCK):
        here = slice(start, min(start + _BLOCK, pairs))
        source, target = lengths[here if ids is None else ids[here]].astype(np.int64).T
        keys = target * widest + np.where(target % 2 == 0, source, widest - 1 - source)
        ties = 0 if random is None else random.integers(0, 1 << random_bits, len(keys))
        packed[here] = ((keys << random_bits | ties) << position_bits) + np.arange(here.start, here.stop)
    packed.sort()
    order = np.empty(pairs, np.int32)
    np.bitwise_and(packed, (1 << position_bits) - 1, out=order, casting="unsafe")
    return order if ids is None else ids[order].astype(np.int32)


def _cut(
    lengths: Int[np.ndarray, "N 2"], order: Int[np.ndarray, "K"], max_tokens: int, max_sentences: int, world: int = 1
) -> Int[np.ndarray, "bounds"]:
    """Bounds of the steps, each with as many pairs as the ceilings allow when ``world`` ranks share them evenly."""
    bounds, start = [0], 0
    while start < len(order):
        most = world * min(max_sentences, max(1, max_tokens // int(lengths[order[start]].sum())))
        longest = np.maximum.accumulate(lengths[order[start : start + most]], axis=0).sum(axis=1, dtype=np.int64)
        costs = longest * ((np.arange(len(longest)) + world) // world)  # of the largest share
        start += max(world, int(np.searchsorted(costs, max_tokens, side="right")))  # one pair each is always possible
        bounds.append(min(start, len(order)))
    return np.array(bounds, np.int64)


def _enough_for_all(bounds: Int[np.ndarray, "bounds"], world: int) -> Int[np.ndarray, "bounds"]:
    """Let the last step, if it has fewer pairs than there are ranks, take some from those before it."""
    latest = bounds[-1] - world * np.arange(len(bounds) - 1, -1, -1)
    if latest[0] < 0:
        raise ConfigError(
            f"{bounds[-1]} training pairs in batches of one pair cannot be shared evenly by {world} processes: "
            "raise max_tokens or max_sentences, or use fewer processes"
        )
    return np.minimum(bounds, latest)
