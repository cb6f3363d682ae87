"""chrF of a corpus that comes in batches, on one process or several. Source: Popovic 2015, W15-3049."""

from collections.abc import Sequence

import torch
from sacrebleu.metrics import CHRF
from torch import Tensor
from torchmetrics import Metric


class ChrF(Metric):
    """sacreBLEU's score, 0 to 100, from its own counts of n-grams.

    torchmetrics takes no-break spaces for letters, and counts each n-gram in a tensor of its own, which takes longer than
    all else of a validation together.
    """

    full_state_update = False
    higher_is_better = True
    counts: Tensor

    def __init__(self) -> None:
        super().__init__()
        self._chrf = CHRF()
        # Of every order: n-grams of the hypotheses, of the references, and those in both.
        count = 3 * (self._chrf.char_order + self._chrf.word_order)
        self.add_state("counts", torch.zeros(count, dtype=torch.int64), dist_reduce_fx="sum")

    def update(self, hypotheses: Sequence[str], references: Sequence[str]) -> None:
        """Counts sentence ``i`` of the hypotheses against sentence ``i`` of the references."""
        if not hypotheses:
            return
        # sacreBLEU has no public name for the sums of its own scores.
        counts = self._chrf._extract_corpus_statistics(list(hypotheses), [list(references)])
        self.counts += torch.tensor(counts, device=self.counts.device).sum(dim=0)

    def compute(self) -> Tensor:
        """The score of all that was counted."""
        return torch.tensor(self._chrf._compute_score_from_stats(self.counts.tolist()).score)
