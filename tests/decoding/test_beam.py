"""Beam search against exhaustive search, against greedy search, and against itself in other batches."""

import itertools
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from seq2seq.decoding.beam import LEAST_COVERAGE, Beam
from seq2seq.decoding.ensemble import Ensemble
from seq2seq.decoding.greedy import Greedy
from seq2seq.errors import CheckpointError, ConfigError
from seq2seq.models.recipe import build
from seq2seq.types import BOS, EOS, PAD, State
from tests.decoding.test_greedy import Scripted, sources
from tests.tiny import ATTENTIONS, MODELS, padded, tiny_model, tiny_recipe

WORDS = [1, 4, 5, 6]
"""Of a language of three words and the unknown one."""
LONGEST = 3


@pytest.fixture(scope="module", params=["scaled", "none"])
def small_world(request):
    """A model with steep preferences, and all it can say about a source: tokens, log probability, weights."""
    torch.manual_seed(11)
    recipe = tiny_recipe(request.param)
    model = build(recipe, source_vocabulary=7, target_vocabulary=7, joint=True).eval()
    for weight in model.parameters():
        weight.data *= 3
    source = [4, 6, 5, EOS]
    everything = []
    for length in range(LONGEST + 1):
        for tokens in itertools.product(WORDS, repeat=length):
            with torch.no_grad():
                decoded = model(torch.tensor([source]), torch.tensor([[BOS, *tokens]]))
            logits = model.output(decoded.features[0]).detach()
            logits[:, [PAD, BOS]] = -math.inf
            scores = logits.log_softmax(dim=-1)
            # At the cap only what wants to end has ended.
            if length == LONGEST and scores[-1].argmax() != EOS:
                continue
            total = sum(float(scores[at, token]) for at, token in enumerate((*tokens, EOS)))
            everything.append((list(tokens), total, decoded.weights[0]))
    return model, source, everything


PENALTIES = [
    {"length_penalty": "none"},
    {"length_penalty": "average"},
    {"length_penalty": "gnmt", "alpha": 0.6},
    {"length_penalty": "gnmt", "alpha": 2.0, "coverage_penalty": 0.5},
    {"length_penalty": "none", "coverage_penalty": 0.2},
    {"length_penalty": "average", "min_length": 2},
    {"length_penalty": "average", "no_repeat_ngram": 1},
]


def expected_score(tokens, total, weights, length_penalty, alpha=0.6, coverage_penalty=0.0, **_):
    """GNMT's equation 14, written out."""
    length = len(tokens) + 1
    divisor = {"none": 1.0, "average": length, "gnmt": (5 + length) ** alpha / 6**alpha}[length_penalty]
    received = weights.sum(dim=0).tolist()
    coverage = sum(math.log(min(max(each, LEAST_COVERAGE), 1.0)) for each in received)
    return total / divisor + coverage_penalty * coverage


@pytest.mark.parametrize("settings", PENALTIES[:5], ids=str)
def test_a_beam_as_wide_as_the_language_is_exhaustive(small_world, settings):
    model, source, everything = small_world
    search = Beam(beam=4 ** (LONGEST + 1), cap_ratio=0.0, cap_extra=LONGEST, **settings)
    found = search.n_best(model, torch.tensor([source]), 6, with_weights=True)[0]
    ranked = sorted(((expected_score(*each, **settings), each[0]) for each in everything), reverse=True)[:6]
    assert [hypothesis.tokens for hypothesis in found] == [tokens for _, tokens in ranked]
    assert [hypothesis.score for hypothesis in found] == pytest.approx([score for score, _ in ranked], abs=1e-4)
    for hypothesis in found:
        (weights,) = (weights for tokens, _, weights in everything if tokens == hypothesis.tokens)
        torch.testing.assert_close(hypothesis.weights, weights)


@pytest.mark.parametrize("settings", PENALTIES[5:], ids=str)
def test_what_is_forbidden_is_not_said(small_world, settings):
    model, source, _ = small_world
    search = Beam(beam=64, cap_ratio=0.0, cap_extra=LONGEST, **settings)
    found = search.n_best(model, torch.tensor([source]))[0]
    assert len(found) > 5
    for hypothesis in found:
        if "min_length" in settings:
            assert len(hypothesis.tokens) >= 2
        else:
            assert len(set(hypothesis.tokens)) == len(hypothesis.tokens)
    free = Beam(beam=64, cap_ratio=0.0, cap_extra=LONGEST).n_best(model, torch.tensor([source]))[0]
    assert len(free) > len(found) or "min_length" in settings


def plain_beam(model, source, beam, cap, **settings):
    """The definition: one sentence, every prefix through teacher forcing again, no hypothesis given up."""
    going, places, found = [([], 0.0)], beam, []
    while going:
        candidates = []
        for tokens, total in going:
            decoded = model(torch.tensor([source]), torch.tensor([[BOS, *tokens]]))
            logits = model.output(decoded.features[0, -1])
            logits[[PAD, BOS]] = -math.inf
            scores = logits.log_softmax(dim=-1).tolist()
            allowed = {token: score for token, score in enumerate(scores) if score > -math.inf}
            if len(tokens) < settings.get("min_length", 0):
                del allowed[EOS]
            if settings.get("no_repeat_ngram"):
                allowed = {token: score for token, score in allowed.items() if token not in tokens}
            if len(tokens) == cap:
                likeliest = max(allowed, key=allowed.get)
                allowed = {likeliest: allowed[likeliest]}
            candidates += [
                (total + score, total, tokens, token, decoded.weights[0]) for token, score in allowed.items()
            ]
        going = []
        for total, before, tokens, token, weights in sorted(candidates, key=lambda each: -each[0])[:places]:
            if token == EOS:
                found.append((False, -expected_score(tokens, total, weights, **settings), tokens))
                places -= 1
            elif len(tokens) == cap:
                found.append((True, -expected_score(tokens[:-1], before, weights[:-1], **settings), tokens))
            else:
                going.append(([*tokens, token], total))
    return [(tokens, truncated, -score) for truncated, score, tokens in sorted(found)]


@pytest.mark.parametrize("settings", PENALTIES, ids=str)
@pytest.mark.parametrize("model", MODELS)
def test_equals_the_definition_in_a_batch_whose_rows_come_and_go(model, settings):
    """Beams that shrink, sentences that leave, and beams that grow again where little is allowed."""
    model = tiny_model(seed=5, model=model)
    rows = sources(9)
    search = Beam(beam=4, cap_ratio=0.5, cap_extra=4, **settings)
    with torch.no_grad():
        for row, hypotheses in zip(rows, search.n_best(model, padded(rows)), strict=True):
            expected = plain_beam(model, row, 4, int(0.5 * (len(row) - 1)) + 4, **settings)
            assert [(each.tokens, each.truncated) for each in hypotheses] == [each[:2] for each in expected]
            assert [each.score for each in hypotheses] == pytest.approx([score for *_, score in expected], abs=1e-4)


class Counting(Scripted):
    """Notes how many rows every step computes, and looks whether each stands beside what was read of its own source."""

    def __init__(self):
        super().__init__()
        self.rows = []

    def start(self, source):
        state = super().start(source)
        return State((*state.recurrent, source[:, 0]), state.bound._replace(keys=source[:, :1]))

    def step(self, tokens, state):
        left, source = state.recurrent
        assert torch.equal(source, state.bound.keys[:, 0])
        self.rows.append(len(tokens))
        logits, weights, after = super().step(tokens, State((left,), state.bound))
        return logits, weights, State((*after.recurrent, source), state.bound)


def test_places_of_what_has_ended_are_not_computed():
    """A beam of two. The first sentence ends at once, its second hypothesis a step later; the other says two words."""
    model = Counting()
    Beam(2).n_best(model, torch.tensor([[0, EOS], [2, EOS]]))
    assert model.rows[:3] == [2, 3, 2]
    # Which of two equally likely hypotheses is the last is open; one more step may be needed.
    assert sum(model.rows[3:]) <= 1


def test_a_sentence_whose_best_is_certain_is_not_searched_to_its_end():
    """The same, and only the best is wanted: the first sentence is over after a step."""
    model = Counting()
    found = Beam(2)(model, torch.tensor([[0, EOS], [2, EOS]]))
    assert [each.tokens for each in found] == [[], [7, 7]]
    assert model.rows == [2, 2, 2]


def test_rows_stay_beside_their_own_source():
    """Thirteen sentences whose beams shrink at different steps; ``Counting`` looks at every row."""
    model = Counting()
    lengths = [3, 0, 5, 1, 4, 2, 9, 1, 1, 6, 0, 2, 8]
    found = Beam(3).n_best(model, torch.tensor([[length, EOS] for length in lengths]))
    assert [each[0].tokens for each in found] == [[7] * length for length in lengths]
    assert len(set(model.rows)) > 5


class Late(Scripted):
    """Says EOS with probability ``ends``, token 7 with ``goes_on``, else 8 or 9; after the first token EOS for certain."""

    def __init__(self, ends, goes_on):
        super().__init__()
        self.first = torch.full((10,), -50.0)
        self.first[EOS], self.first[7] = math.log(ends), math.log(goes_on)
        self.first[8:] = math.log((1 - ends - goes_on) / 2)

    def step(self, tokens, state):
        begins = (tokens == BOS).unsqueeze(1)
        then = torch.full((10,), -50.0)
        then[EOS] = 0.0
        return torch.where(begins, self.first, then), torch.zeros(len(tokens), 2), state


@pytest.mark.parametrize(("goes_on", "tokens"), [(0.4, [7]), (0.2, [])])
def test_what_is_likelier_a_token_than_what_has_ended_is_waited_for(goes_on, tokens):
    """One word at most. The empty translation has ln 0.5 a token; ``7`` half of ln 0.4, which is more, or of ln 0.2."""
    search = Beam(2, length_penalty="average", cap_ratio=0.0, cap_extra=1)
    found = search(Late(0.5, goes_on), torch.tensor([[9, EOS]]))[0]
    assert found.tokens == tokens
    assert found.score == pytest.approx(math.log(0.4) / 2 if tokens else math.log(0.5))


def test_where_everything_is_forbidden_the_end_is_not(small_world):
    """No word twice, and EOS not before the seventh of a language that has four."""
    model, source, _ = small_world
    search = Beam(beam=3, no_repeat_ngram=1, min_length=6, cap_ratio=0.0, cap_extra=9)
    found = search.n_best(model, torch.tensor([source]))[0]
    assert [(sorted(hypothesis.tokens), hypothesis.truncated) for hypothesis in found] == [(WORDS, False)] * 3


def test_no_pair_of_tokens_comes_twice():
    model = tiny_model(seed=5)
    search = Beam(beam=3, no_repeat_ngram=2, cap_ratio=0.0, cap_extra=30)
    repeated = 0
    for found, free in zip(search(model, padded(sources(20))), Beam(beam=3)(model, padded(sources(20))), strict=True):
        pairs = list(itertools.pairwise(found.tokens))
        assert len(set(pairs)) == len(pairs)
        repeated += len(set(itertools.pairwise(free.tokens))) < len(list(itertools.pairwise(free.tokens)))
    assert repeated


@pytest.mark.parametrize("attention", ATTENTIONS)
@pytest.mark.parametrize("model", MODELS)
def test_a_beam_of_one_is_greedy(model, attention):
    model = tiny_model(attention, seed=5, model=model)
    rows = padded(sources(17))
    greedy = Greedy(cap_ratio=1.5, cap_extra=4)(model, rows, with_weights=True)
    beam = Beam(beam=1, cap_ratio=1.5, cap_extra=4)(model, rows, with_weights=True)
    for one, other in zip(greedy, beam, strict=True):
        assert (one.tokens, one.truncated) == (other.tokens, other.truncated)
        assert one.log_probability == pytest.approx(other.log_probability, abs=1e-4)
        torch.testing.assert_close(one.weights, other.weights)


@pytest.mark.parametrize("settings", [{}, {"length_penalty": "average", "coverage_penalty": 0.3}], ids=str)
@pytest.mark.parametrize("model", MODELS)
def test_batches_of_1_7_and_64_agree(model, settings):
    model = tiny_model(seed=5, model=model)
    rows = sources(64, seed=1)
    search = Beam(beam=4, **settings)

    def translations(size):
        starts = range(0, len(rows), size)
        found = [each for start in starts for each in search.n_best(model, padded(rows[start : start + size]))]
        return [[hypothesis.tokens for hypothesis in each] for each in found]

    alone = translations(1)
    assert translations(7) == alone
    assert translations(64) == alone


def test_n_best_is_sorted_distinct_and_as_long_as_asked():
    model = tiny_model(seed=5)
    search = Beam(beam=6)
    for found in search.n_best(model, padded(sources(20)), 4):
        assert len(found) == 4
        keys = [(hypothesis.truncated, -hypothesis.score) for hypothesis in found]
        assert keys == sorted(keys)
        assert len({tuple(hypothesis.tokens) for hypothesis in found}) == 4
        assert all(EOS not in hypothesis.tokens for hypothesis in found)
    with pytest.raises(ConfigError, match=r"7 best hypotheses need a beam as large, found decoding\.beam=6"):
        search.n_best(model, padded(sources(2)), 7)


def test_the_weights_of_a_hypothesis_hold_on_to_no_others():
    for found in Beam(3).n_best(tiny_model(seed=5), padded(sources(5)), with_weights=True):
        for weights in (hypothesis.weights for hypothesis in found):
            assert weights.untyped_storage().nbytes() == weights.numel() * weights.element_size()


def test_stopping_early_changes_nothing():
    """The best of 6 is the same whether 1 or all are asked for; asking for all searches to the end."""
    model = tiny_model(seed=6)
    rows = padded(sources(30, seed=2))
    for settings in ({}, {"length_penalty": "average"}, {"length_penalty": "none"}):
        search = Beam(beam=6, **settings)
        best = [found[0].tokens for found in search.n_best(model, rows, 1)]
        assert best == [found[0].tokens for found in search.n_best(model, rows, 6)]


def test_what_ends_comes_before_what_is_cut():
    """All likely hypotheses run into the cap of 7 tokens; a beam that is wide enough holds unlikely ones that end."""
    for beam, truncated in ((2, True), (12, False)):
        hypothesis = Beam(beam, cap_ratio=2.0, cap_extra=5)(Scripted(), torch.tensor([[9, EOS]]))[0]
        assert hypothesis.truncated is truncated
        assert (hypothesis.tokens == [7] * 7) is truncated


def test_twice_the_same_model_is_the_model():
    model = tiny_model(seed=5)
    rows = padded(sources(12))
    search = Beam(beam=3)
    alone, twice = search.n_best(model, rows), search.n_best(Ensemble([model, model]), rows)
    assert [[each.tokens for each in found] for found in alone] == [[each.tokens for each in found] for found in twice]
    for one, other in zip(itertools.chain(*alone), itertools.chain(*twice), strict=True):
        assert one.score == pytest.approx(other.score, abs=1e-4)


def test_two_models_vote_with_the_mean_of_their_probabilities():
    models = [tiny_model(seed=seed) for seed in (5, 6)]
    source, tokens = padded([[5, 6, EOS]]), torch.tensor([BOS])
    found, weights, _ = Ensemble(models).step(tokens, Ensemble(models).start(source))
    steps = [model.step(tokens, model.start(source)) for model in models]
    torch.testing.assert_close(found.exp(), (steps[0][0].softmax(-1) + steps[1][0].softmax(-1)) / 2)
    torch.testing.assert_close(weights, (steps[0][1] + steps[1][1]) / 2)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"beam": 0}, r"decoding\.beam must be a whole number from 1 to 1000, found 0"),
        ({"length_penalty": "wu"}, "none, average, gnmt, found 'wu'"),
        ({"alpha": -0.1}, r"decoding\.alpha"),
        ({"min_length": 5, "max_length": 4}, r"decoding\.max_length"),
        ({"cap_extra": 0}, r"decoding\.cap_extra"),
    ],
)
def test_settings_out_of_range_are_refused(settings, words):
    with pytest.raises(ConfigError, match=words):
        Beam(**settings)


@given(
    st.integers(0, 1000),
    st.integers(1, 5),
    st.integers(1, 4),
    st.sampled_from(PENALTIES),
    st.lists(st.lists(st.integers(4, 6), max_size=4), min_size=1, max_size=3),
)
def test_whatever_is_found_is_what_the_model_says(seed, beam, longest, settings, rows):
    """In order, distinct, no longer than the cap, with the log probability of teacher forcing, alone or in a batch."""
    torch.manual_seed(seed)
    model = build(tiny_recipe(), source_vocabulary=7, target_vocabulary=7, joint=True).eval()
    search = Beam(
        beam=beam,
        cap_ratio=0.0,
        cap_extra=longest,
        **settings | {"min_length": min(settings.get("min_length", 0), longest)},
    )
    source = padded([[*row, EOS] for row in rows])
    for row, hypotheses in zip(rows, search.n_best(model, source, beam), strict=True):
        assert 1 <= len(hypotheses) <= beam
        ranked = [(hypothesis.truncated, -hypothesis.score) for hypothesis in hypotheses]
        assert ranked == sorted(ranked)
        assert len({(*hypothesis.tokens, hypothesis.truncated) for hypothesis in hypotheses}) == len(hypotheses)
        for hypothesis in hypotheses:
            tokens = hypothesis.tokens
            assert len(tokens) <= longest
            assert not {PAD, BOS, EOS} & set(tokens)
            said = tokens if hypothesis.truncated else [*tokens, EOS]
            with torch.no_grad():
                features = model(torch.tensor([[*row, EOS]]), torch.tensor([[BOS, *tokens]])).features
            logits = model.output(features[0]).detach()
            logits[:, [PAD, BOS]] = -math.inf
            total = sum(float(each[token]) for each, token in zip(logits.log_softmax(dim=-1), said, strict=False))
            assert hypothesis.log_probability == pytest.approx(total, abs=1e-4)


@pytest.mark.parametrize("search", [Beam(1), Beam(3), Greedy()])
def test_scores_that_are_no_numbers_are_no_translation(search):
    model = tiny_model()
    model.output.bias.data.fill_(torch.nan)
    with pytest.raises(CheckpointError, match="scores are no numbers"):
        search(model, torch.tensor([[5, 6, EOS], [7, EOS, PAD]]))
