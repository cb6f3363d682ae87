"""Corpus scores of detokenised text against raw references, by sacreBLEU, with the signatures that make them comparable.

Source: Post 2018, "A Call for Clarity in Reporting BLEU Scores", W18-6319; Popovic 2015, "chrF", W15-3049.
"""

from collections.abc import Sequence
from typing import NamedTuple

from sacrebleu.metrics import BLEU, CHRF


class CorpusScores(NamedTuple):
    """BLEU and chrF of a corpus, both 0 to 100."""

    bleu: float
    bleu_signature: str
    chrf: float
    chrf_signature: str


TOKENIZERS = {"ja": "char", "zh": "zh"}
"""Languages written without spaces between words are not scored with sacreBLEU's default, ``13a``."""


def bleu_tokenizer(language: str) -> str:
    """The name of sacreBLEU's tokenizer for references in ``language``, a code such as ``de`` or ``zh_CN``."""
    return TOKENIZERS.get(language.replace("-", "_").split("_")[0].lower(), "13a")


def corpus_scores(hypotheses: Sequence[str], references: Sequence[str], tokenizer: str = "13a") -> CorpusScores:
    """Scores sentence ``i`` of the hypotheses against sentence ``i`` of the references."""
    bleu, chrf = BLEU(tokenize=tokenizer), CHRF()
    bleu_score = bleu.corpus_score(list(hypotheses), [list(references)]).score
    chrf_score = chrf.corpus_score(list(hypotheses), [list(references)]).score
    return CorpusScores(bleu_score, str(bleu.get_signature()), chrf_score, str(chrf.get_signature()))
