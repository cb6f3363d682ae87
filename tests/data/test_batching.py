"""The plan: each pair once, the ceilings, equal steps, and what a loss is divided by."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seq2seq.data.batching import Plan, evaluation_plan, loss_denominators, plan
from seq2seq.data.sampler import EvaluationSampler, PlannedSampler
from seq2seq.data.tokenizer import Tokenizer
from seq2seq.errors import ConfigError

LENGTHS = st.lists(st.tuples(st.integers(1, 40), st.integers(1, 40)), min_size=1, max_size=120).map(
    lambda pairs: np.array(pairs, np.int32)
)
CEILINGS = st.tuples(st.none() | st.integers(80, 600), st.none() | st.integers(1, 20)).filter(any)
WORLD = st.integers(1, 4)


def all_batches(planned: Plan) -> list[list[int]]:
    return [
        planned.batch(step, rank).tolist() for rank in range(planned.world) for step in range(planned.steps_of(rank))
    ]


def cost(lengths: np.ndarray, ids: list[int]) -> int:
    return len(ids) * int(lengths[ids].max(axis=0).sum())


def can_be_shared(lengths: np.ndarray, ceilings: tuple[int | None, int | None], world: int) -> bool:
    """True where the batches are not all of one pair, with a rest that some rank would have to go without."""
    try:
        plan(lengths, *ceilings, world)
    except ConfigError:
        return False
    return True


@given(LENGTHS, CEILINGS, WORLD, st.booleans(), st.integers(0, 3))
def test_every_pair_once_under_the_ceilings_with_equal_steps(lengths, ceilings, world, shuffle, epoch) -> None:
    if not can_be_shared(lengths, ceilings, world):
        assert len(lengths) < world or len(lengths) % world
        return
    planned = plan(lengths, *ceilings, world, seed=5, epoch=epoch, shuffle=shuffle)
    batches = all_batches(planned)
    max_tokens, max_sentences = ceilings
    assert sorted(i for batch in batches for i in batch) == list(range(len(lengths)))
    assert {planned.steps_of(rank) for rank in range(world)} == {planned.steps}
    assert all(batches)
    if max_tokens is not None:
        assert max(cost(lengths, batch) for batch in batches) <= max_tokens
    if max_sentences is not None:
        assert max(map(len, batches)) <= max_sentences
    in_a_step = [[len(planned.batch(step, rank)) for rank in range(world)] for step in range(planned.steps)]
    assert max(max(sizes) - min(sizes) for sizes in in_a_step) <= 1


@given(LENGTHS, CEILINGS, WORLD)
def test_same_seed_same_plan_and_as_many_steps_in_every_epoch(lengths, ceilings, world) -> None:
    if not can_be_shared(lengths, ceilings, world):
        return
    first, again = (plan(lengths, *ceilings, world, seed=1, epoch=2) for _ in range(2))
    assert all_batches(first) == all_batches(again)
    assert {plan(lengths, *ceilings, world, seed=1, epoch=epoch).steps for epoch in range(4)} == {first.steps}


@given(LENGTHS, CEILINGS, WORLD, st.data())
def test_only_the_pairs_asked_for(lengths, ceilings, world, data) -> None:
    ids = np.array(sorted(data.draw(st.sets(st.integers(0, len(lengths) - 1), min_size=1))), np.int32)
    if not can_be_shared(lengths[ids], ceilings, world):
        return
    batches = all_batches(plan(lengths, *ceilings, world, ids=ids))
    assert sorted(i for batch in batches for i in batch) == ids.tolist()


@given(LENGTHS, st.tuples(st.none() | st.integers(1, 200), st.none() | st.integers(1, 20)).filter(any), WORLD)
def test_evaluation_scores_every_pair_once_the_dearest_first(lengths, ceilings, world) -> None:
    if len(lengths) < world:
        with pytest.raises(ConfigError, match=f"{world} processes cannot share {len(lengths)} sentences"):
            evaluation_plan(lengths, *ceilings, world)
        return
    planned = evaluation_plan(lengths, *ceilings, world)
    batches = all_batches(planned)
    max_tokens, max_sentences = ceilings
    assert planned.steps_of(world - 1) >= 1
    assert sorted(i for batch in batches for i in batch) == list(range(len(lengths)))
    costs = [cost(lengths, planned.batch(b // world, b % world).tolist()) for b in range(planned.batches)]
    assert costs == sorted(costs, reverse=True) == planned.costs(lengths).tolist()
    for batch in batches:
        assert max_sentences is None or len(batch) <= max_sentences
        assert max_tokens is None or len(batch) == 1 or cost(lengths, batch) <= max_tokens
    assert max(planned.steps_of(rank) for rank in range(world)) - planned.steps_of(world - 1) <= 1
    assert all_batches(evaluation_plan(lengths, *ceilings, world)) == batches


SMALL = np.array([[2, 2], [5, 3], [3, 2], [4, 3], [6, 5], [2, 2]], np.int32)


def test_small_plan_by_hand() -> None:
    # Even target lengths go up in source length, odd ones down: (2,2) (2,2) (3,2) | (5,3) (4,3) (6,5).
    planned = plan(SMALL, max_tokens=16, max_sentences=None, shuffle=False)
    assert all_batches(planned) == [[0, 5, 2], [1, 3], [4]]  # 3 * (3 + 2), 2 * (5 + 3), 1 * (6 + 5)
    assert planned.costs(SMALL).tolist() == [15, 16, 11]
    assert planned.target_tokens(SMALL).tolist() == [6, 6, 5]
    assert planned.padding_share(SMALL) == pytest.approx(1 - 39 / 42)


def test_small_plan_for_two_ranks_by_hand() -> None:
    # One step holds all five that two ranks can share in threes at 3 * (5 + 3) <= 24, and the sixth waits for the next,
    # which needs a pair for each rank and takes one back.
    planned = plan(SMALL, max_tokens=24, max_sentences=None, world=2, shuffle=False)
    assert [[planned.batch(step, rank).tolist() for rank in range(2)] for step in range(planned.steps)] == [
        [[0, 5], [2, 1]],
        [[3], [4]],
    ]


def test_an_update_does_not_depend_on_the_number_of_ranks() -> None:
    lengths = np.random.default_rng(0).integers(2, 30, (1200, 2)).astype(np.int32)
    updates = []
    for world in (1, 2, 3):
        planned = plan(lengths, None, 48 // world, world, seed=3, epoch=1)
        steps = [np.concatenate([planned.batch(step, rank) for rank in range(world)]) for step in range(planned.steps)]
        updates.append([sorted(step.tolist()) for step in steps])
    assert updates[0] == updates[1] == updates[2]


def test_epochs_differ() -> None:
    lengths = np.random.default_rng(0).integers(5, 8, (200, 2)).astype(np.int32)
    first, second = (all_batches(plan(lengths, None, 10, seed=1, epoch=epoch)) for epoch in (0, 1))
    assert first != second
    assert {frozenset(batch) for batch in first} != {frozenset(batch) for batch in second}
    assert first != all_batches(plan(lengths, None, 10, seed=2, epoch=0))


def test_without_shuffling_every_epoch_is_the_same() -> None:
    lengths = np.random.default_rng(0).integers(5, 8, (200, 2)).astype(np.int32)
    assert all_batches(plan(lengths, None, 10, epoch=0, shuffle=False)) == all_batches(
        plan(lengths, None, 10, epoch=1, shuffle=False)
    )


@pytest.mark.parametrize(
    ("ceilings", "world", "message"),
    [
        ((None, None), 1, "max_tokens and max_sentences are both null"),
        ((0, None), 1, "max_tokens=0 is not possible"),
        ((None, -2), 1, "max_sentences=-2 is not possible"),
        ((10, None), 1, "max_tokens=10 is less than the 11 tokens of the longest training pair"),
        ((100, None), 7, "6 training pairs cannot be shared by 7 processes"),
        ((None, 1), 4, "in batches of one pair cannot be shared evenly by 4 processes"),
    ],
)
def test_what_cannot_be_planned(ceilings, world, message) -> None:
    with pytest.raises(ConfigError, match=message):
        plan(SMALL, *ceilings, world)


def test_denominators_by_hand() -> None:
    # Two ranks, two batches to an update, three steps: batches 0 1 | 2 3 make the first update, 4 5 the last, short one.
    tokens = np.array([10, 20, 30, 40, 7, 9])
    assert loss_denominators(tokens, world=2, accumulate=2).tolist() == [25.0, 25.0, 4.0]
    assert loss_denominators(tokens, world=1, accumulate=1).tolist() == tokens.tolist()
    assert loss_denominators(tokens, world=1, accumulate=4).tolist() == [25.0] * 4 + [4.0] * 2


@given(LENGTHS, WORLD, st.integers(1, 5))
def test_every_target_token_of_an_update_weighs_the_same(lengths, world, accumulate) -> None:
    if not can_be_shared(lengths, (100, None), world):
        return
    made = [
        list(PlannedSampler(lengths, 100, None, world=world, rank=rank, accumulate=accumulate)) for rank in range(world)
    ]
    steps = len(made[0])
    for first in range(0, steps, accumulate):
        group = [made[rank][step] for rank in range(world) for step in range(first, min(first + accumulate, steps))]
        tokens = sum(int(lengths[request.ids, 1].sum()) for request in group)
        # If each token's loss is 1, what is averaged over ranks and divided by the number of batches must be 1.
        update = sum(int(lengths[request.ids, 1].sum()) / request.loss_denominator for request in group)
        assert update / accumulate / world == pytest.approx(1.0)
        assert {request.loss_denominator for request in group} == {tokens / (accumulate * world)}


def ids_of(sampler: PlannedSampler | EvaluationSampler) -> list[list[int]]:
    return [request.ids.tolist() for request in sampler]


def test_sampler_reshuffles_and_comes_back() -> None:
    lengths = np.random.default_rng(0).integers(2, 30, (300, 2)).astype(np.int32)
    sampler = PlannedSampler(lengths, 400, None, seed=4)
    first = ids_of(sampler)
    assert len(first) == len(sampler)
    sampler.set_epoch(1)
    second = ids_of(sampler)
    assert first != second
    assert len(second) == len(sampler)
    sampler.set_epoch(0)
    assert ids_of(sampler) == first


def test_sampler_goes_on_inside_an_epoch() -> None:
    lengths = np.random.default_rng(0).integers(2, 30, (300, 2)).astype(np.int32)
    whole = PlannedSampler(lengths, 400, None, seed=4)
    whole.set_epoch(3)
    resumed = PlannedSampler(lengths, 400, None, seed=4)
    resumed.start_at(3, 2)
    resumed.set_epoch(3)  # as the trainer does when it takes the epoch up again
    assert ids_of(resumed) == ids_of(whole)[2:]
    assert len(resumed) == len(whole)
    whole.set_epoch(4)
    resumed.set_epoch(4)
    assert ids_of(resumed) == ids_of(whole)


def test_sampler_that_is_to_repeat_itself() -> None:
    lengths = np.random.default_rng(0).integers(2, 30, (300, 2)).astype(np.int32)
    sampler = PlannedSampler(lengths, 400, None, reshuffle=False)
    first = ids_of(sampler)
    sampler.set_epoch(1)
    assert ids_of(sampler) == first


def test_evaluation_sampler_shares_all_pairs_out() -> None:
    lengths = np.random.default_rng(0).integers(2, 30, (50, 2)).astype(np.int32)
    samplers = [EvaluationSampler(lengths, None, 8, world=3, rank=rank) for rank in range(3)]
    assert [len(sampler) for sampler in samplers] == [3, 2, 2]
    assert [len(list(sampler)) for sampler in samplers] == [3, 2, 2]
    assert sorted(i for sampler in samplers for batch in ids_of(sampler) for i in batch) == list(range(50))
    for request in samplers[0]:
        assert request.loss_denominator == lengths[request.ids, 1].sum()


def test_every_rank_has_something_to_score() -> None:
    for rank in range(2):
        assert [len(request.ids) for request in EvaluationSampler(SMALL[:3], None, 8, world=2, rank=rank)] == [1] * (
            2 - rank
        )


def test_large_plan_is_small_and_tight() -> None:
    lengths = np.random.default_rng(0).integers(2, 60, (200_000, 2)).astype(np.int32)
    planned = plan(lengths, 8000, None, world=4)
    assert planned.order.dtype == np.int32
    assert planned.padding_share(lengths) < 0.03


def test_little_padding_on_multi30k(multi30k: Path) -> None:
    pairs = [json.loads(line) for line in (multi30k / "train.jsonl").open(encoding="utf-8")]
    sides = [[pair[side] for pair in pairs] for side in ("en", "de")]
    tokenizer = Tokenizer.train((line for pair in zip(*sides, strict=True) for line in pair), 5000, "bpe")
    lengths = np.array([[len(ids) + 1 for ids in tokenizer.encode(side)] for side in sides], np.int32).T.copy()
    for epoch in range(3):
        assert plan(lengths, None, 128, epoch=epoch).padding_share(lengths) < 0.05
        assert plan(lengths, 4000, None, epoch=epoch).padding_share(lengths) < 0.05
