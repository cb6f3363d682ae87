"""The sentences on which a system and its baseline differ most."""

from typing import NamedTuple

from sacrebleu.metrics import BLEU, CHRF

from seq2seq.report.runs import Run


class Difference(NamedTuple):
    """One test sentence in two runs; scores of the single sentence, 0 to 100.

    Args:
        id: row of the test split.
        drawn: the system kept the attention weights of the sentence.
    """

    id: int
    source: str
    reference: str
    hypothesis: str
    baseline_hypothesis: str
    bleu: float
    baseline_bleu: float
    chrf: float
    baseline_chrf: float
    drawn: bool

    @property
    def gain(self) -> tuple[float, float]:
        return self.bleu - self.baseline_bleu, self.chrf - self.baseline_chrf


def biggest(run: Run, baseline: Run, most: int = 2, drawn: int = 5) -> list[Difference]:
    """Sentences where ``run`` gains most in BLEU, then in chrF; equal ones in the order of the test split.

    Args:
        run, baseline: on the same test sentences.
        most: how many over all.
        drawn: how many more of those whose attention weights were kept.
    """
    bleu, chrf = BLEU(tokenize=run.tokenizer, effective_order=True), CHRF()
    columns = zip(run.ids, run.sources, run.references, run.hypotheses, baseline.hypotheses, strict=True)
    found = [
        Difference(
            *row,
            bleu.sentence_score(row[3], [row[2]]).score,
            bleu.sentence_score(row[4], [row[2]]).score,
            chrf.sentence_score(row[3], [row[2]]).score,
            chrf.sentence_score(row[4], [row[2]]).score,
            row[0] in run.weights,
        )
        for row in columns
        if row[3] != row[4]
    ]
    gains = sorted((each for each in found if each.gain > (0.0, 0.0)), key=lambda each: each.gain, reverse=True)
    return [*gains[:most], *[each for each in gains[most:] if each.drawn][:drawn]]
