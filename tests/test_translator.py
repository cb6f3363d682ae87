"""The translator on a model that copies: what goes in must come out, however it was cut."""

import numpy as np
import pytest
import torch

from seq2seq.data.tokenizer import Tokenizer, Tokenizers
from seq2seq.decoding import candidate
from seq2seq.decoding.beam import Beam
from seq2seq.decoding.candidate import Candidate
from seq2seq.decoding.greedy import Greedy
from seq2seq.decoding.sampling import Sampling
from seq2seq.errors import CheckpointError, ConfigError, CorpusError
from seq2seq.models.recipe import build
from seq2seq.training.checkpoint import pack
from seq2seq.translator import Translator, _first_different
from seq2seq.types import EOS, PAD, UNK, Bound, State
from tests.tiny import tiny_model, tiny_recipe

WORDS = ["ant", "bee", "cat", "dog", "eel", "fox", "gnu", "hen"]


class Copier(torch.nn.Module):
    """Says its source, token by token, looking at what it says; unknown tokens too."""

    def __init__(self, vocabulary):
        super().__init__()
        self.vocabulary = vocabulary
        self.nothing = torch.nn.Parameter(torch.zeros(1))

    def start(self, source):
        at = torch.zeros(len(source), 1)
        keys = source.unsqueeze(-1).float()
        return State((at,), Bound(keys, keys, source != PAD))

    def step(self, tokens, state):
        at, source = state.recurrent[0][:, 0].long(), state.bound.keys[..., 0].long()
        here = at.clamp(max=source.shape[1] - 1)
        wanted = source.gather(1, here.unsqueeze(1)).squeeze(1).masked_fill(at >= source.shape[1], EOS)
        wanted = wanted.masked_fill(wanted == PAD, EOS)
        logits = torch.zeros(len(tokens), self.vocabulary).scatter(1, wanted.unsqueeze(1), 9.0)
        weights = torch.zeros_like(source, dtype=torch.float32).scatter(1, here.unsqueeze(1), 1.0)
        return logits, weights, State((state.recurrent[0] + 1,), state.bound)


@pytest.fixture(scope="module")
def tokenizers():
    lines = [" ".join(WORDS[at:] + WORDS[:at]) + end for at in range(8) for end in (".", ",", "!")]
    tokenizer = Tokenizer.train(lines, 45)
    return Tokenizers(tokenizer, tokenizer, joint=True)


@pytest.fixture
def translator(tokenizers):
    def make(**settings):
        return Translator([Copier(tokenizers.target.vocabulary_size)], tokenizers, **settings)

    return make


def test_lines_come_out_in_order_and_empty_ones_stay_empty(translator):
    lines = ["ant bee", "", "cat", "   ", "dog, eel! fox", "gnu " * 30]
    assert translator(batch_tokens=40).translate(lines) == [
        "ant bee",
        "",
        "cat",
        "",
        "dog, eel! fox",
        ("gnu " * 30).strip(),
    ]
    assert translator().translate([]) == []


def test_a_long_line_is_split_at_clauses_then_at_spaces(translator):
    short = translator(longest=7)
    line = "ant, bee, cat, dog! eel fox gnu hen ant bee cat dog eel fox gnu hen"
    parts = short.parts(line)
    assert "".join(parts) == line
    assert len(parts) > 2
    assert parts[0].rstrip()[-1] in ",!"
    assert all(len(short.tokenizers.source.encode([part])[0]) <= 7 for part in parts)
    assert short.translate([line]) == [line]
    (candidate,) = short.n_best([line], with_weights=True)[0]
    words = line.split()
    assert candidate.alignment == tuple((at, at) for at in range(len(words)))
    assert candidate.weights.shape == (len(candidate.target), len(candidate.source))
    np.testing.assert_allclose(candidate.weights.sum(axis=1), 1)


def test_a_word_that_is_too_long_is_cut_where_one_more_character_would_be_too_many(translator):
    short = translator(longest=12)
    line = "ant " + "antbee" * 20 + " cat"
    parts = short.parts(line)
    assert "".join(parts) == line
    tokens = [len(short.tokenizers.source.encode([part])[0]) for part in parts]
    assert max(tokens) <= 12
    within = [number for number, part in enumerate(parts[:-1]) if not part.endswith(" ")]
    assert len(within) > 1
    for number in within:
        assert len(short.tokenizers.source.encode([parts[number] + parts[number + 1][0]])[0]) > 12
    assert short.n_best([line])[0][0].alignment == ()


def test_a_line_is_no_longer_than_the_attention_reaches(tokenizers):
    sizes = tokenizers.sizes()
    recipe = tiny_recipe("location")
    recipe["decoder"]["attention"]["max_positions"] = 9
    translator = Translator([build(recipe, **sizes).eval()], tokenizers, longest=12)
    assert translator.longest == 8
    assert len(translator.translate(["ant bee cat dog eel fox gnu hen ant bee cat dog"])) == 1
    assert Translator([build(tiny_recipe(), **sizes).eval()], tokenizers, longest=12).longest == 12


def test_a_character_that_is_too_long_is_refused(translator):
    long = "\ufdfa"  # a ligature that normalisation writes out as eighteen letters
    with pytest.raises(CorpusError, match=r"the character .* has more than 4 tokens by itself: allow more"):
        translator(longest=4).translate([long * 20])


def test_alignments_join_words(translator):
    (candidate,) = translator().n_best(["ant  bee, cat"], with_weights=True)[0]
    assert candidate.alignment == ((0, 0), (1, 1), (2, 2))
    assert candidate.source == candidate.target
    assert candidate.target[-1] == "</s>"
    assert translator().n_best(["ant"])[0][0].weights is None


def test_an_unknown_word_can_be_copied(translator):
    line = "ant \u03a9 cat"
    assert "\u2047" in translator().translate([line])[0]
    assert translator(replace_unknown=True).translate([line]) == [line]
    assert UNK in translator().tokenizers.source.encode([line])[0]


@pytest.mark.parametrize("line", ["ant\u03a9 cat", "ant Zo\u00eb, bee", "\u03a9", "a\u03a9t \u03a9\u03a9"])
def test_what_is_unknown_within_a_word_is_copied_and_no_more(translator, line):
    (found,) = translator(replace_unknown=True).n_best([line], with_alignment=True)[0]
    assert (found.text, found.weights) == (line, None)
    assert all(max(link) < len(line.split()) for link in found.alignment)


@pytest.mark.parametrize("line", ["ant John Smith cat", "John Smith Xerxes", "John", "hen Ada"])
def test_unknown_words_in_a_row_are_copied_whole(line):
    """SentencePiece makes one token of them."""
    words = Tokenizer.train([" ".join(WORDS)] * 2, 12, kind="word")
    copier = Translator([Copier(words.vocabulary_size)], Tokenizers(words, words, joint=True), replace_unknown=True)
    assert copier.translate([line]) == [line]


def test_a_long_line_is_aligned_without_a_weight_for_every_pair(translator, monkeypatch):
    line = "ant bee cat dog eel " * 4
    whole = translator(longest=7).n_best([line], with_weights=True)[0][0]
    monkeypatch.setattr(candidate, "LARGEST", 10)
    (aligned,) = translator(longest=7).n_best([line], with_weights=True)[0]
    assert (whole.weights is None, aligned.weights) == (False, None)
    assert aligned.alignment == whole.alignment == tuple((at, at) for at in range(20))


def test_a_text_comes_twice_only_where_there_are_no_others():
    texts = ["a", "a", "b", "a", "c"]
    made = [Candidate(text, -float(at), 0.0, False, (), (), None, ()) for at, text in enumerate(texts)]
    assert [each.text for each in _first_different(made, 3)] == ["a", "b", "c"]
    assert [each.score for each in _first_different(made, 4)] == [0, -1, -2, -4]


def test_white_space_is_no_part_of_its_own(translator):
    line = "antbeecatdogeelfox" + " " * 100 + "gnu"
    short = translator(longest=5)
    assert "".join(short.parts(line)) == line
    assert all(part.strip() for part in short.parts(line))


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("Euro", r"a list of lines is expected, found one text: give \['Euro'\]"),
        (["ant", "\ud800"], "line 2: character 0 is half of a pair"),
    ],
)
def test_what_is_no_line_is_refused(translator, lines, words):
    with pytest.raises(CorpusError, match=words):
        translator().translate(lines)


def test_other_searches_find_one_translation_a_line(translator):
    for search in (Greedy(), Sampling(top_k=1)):
        assert translator(search=search).translate(["ant bee", "", "cat"]) == ["ant bee", "", "cat"]
    with pytest.raises(ConfigError, match="2 best translations need a beam search, found Greedy"):
        translator(search=Greedy()).n_best(["ant"], 2)


def test_n_best_is_as_long_as_asked(translator):
    found = translator(search=Beam(beam=3)).n_best(["ant bee", "", "cat"], 3)
    assert [len(candidates) for candidates in found] == [3, 1, 3]
    assert found[0][0].text == "ant bee"
    assert len({candidate.text for candidate in found[0]}) == 3
    assert found[1][0].text == ""


def test_checkpoints_load_vote_and_are_refused_where_they_do_not_fit(tokenizers, tmp_path):
    def write(name, tokenizers, seed=0):
        model = tiny_model(seed=seed)
        recipe = tiny_recipe()
        from seq2seq.models.recipe import build

        torch.manual_seed(seed)
        model = build(recipe, **tokenizers.sizes())
        weights = {f"model.{key}": value for key, value in model.state_dict().items()}
        torch.save({"state_dict": weights, **pack(recipe, tokenizers)}, tmp_path / name)
        return tmp_path / name

    one, other = write("one.ckpt", tokenizers), write("other.ckpt", tokenizers, seed=1)
    alone = Translator.load(one)
    lines = ["ant bee", "cat"]
    assert Translator.load(one, one).translate(lines) == alone.translate(lines)
    assert len(Translator.load(one, other).translate(lines)) == 2
    strange = Tokenizer.train(["fish swim far"] * 3, 16)
    with pytest.raises(CheckpointError, match=r"strange\.ckpt and .*one\.ckpt have different vocabularies"):
        Translator.load(one, write("strange.ckpt", Tokenizers(strange, strange, joint=True)))
    with pytest.raises(ConfigError, match="device 'gpu' cannot be used"):
        Translator.load(one, device="gpu")
    with pytest.raises(CheckpointError, match="no checkpoint at"):
        Translator.load(tmp_path / "none.ckpt")
