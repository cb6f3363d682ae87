"""The report section by section: which figures and tables it has, and what is said about them."""

from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

from seq2seq.report import figures
from seq2seq.report.alignments import alignment_grid
from seq2seq.report.comparison import Comparison
from seq2seq.report.gradients import FAR, reach_grid
from seq2seq.report.grid import Grid
from seq2seq.report.lengths import FEW, lengths_grid
from seq2seq.report.page import Picture, Section
from seq2seq.report.positions import shares_grid
from seq2seq.report.progress import AXES, UNITS, curves, progress_grid, unlogged
from seq2seq.report.start import MEASURES, at_start, start_grid
from seq2seq.report.style import looks, save
from seq2seq.report.sweep import Sweep, sweep_grid, swept
from seq2seq.report.table import origin_grid, raw_grid, results_grid

START = (
    "How far the scores of a target token lie apart, how evenly it weighs the source (1: all alike, 0: one token only), and "
    "how large a gradient the loss sends back to its scores. Scores that grow with the size of what is compared sharpen the "
    "weights before anything is learned, and a weight that is almost 1 has almost no slope (Vaswani et al. 2017).",
)


class Sections:
    """What the page says, section by section; making one writes its figures and tables.

    Args:
        comparison: all numbers.
        out: the report's folder, with its folders for figures and tables.
    """

    def __init__(self, comparison: Comparison, out: Path):
        self.comparison = comparison
        self.out = out
        self.look = looks([system.name for system in comparison.systems])

    def all(self) -> list[Section]:
        """In the order of the page."""
        sections = [
            self.table(),
            *self.sweep(),
            self.lengths(),
            self.learning(),
            self.alignments(),
            self.positions(),
            self.gradients(),
            self.differences(),
        ]
        for section in sections:
            for grid in section.grids:
                grid.save(self.out / "tables")
        return sections

    def table(self) -> Section:
        comparison = self.comparison
        raw_grid(comparison.rows, comparison.bleu).save(self.out / "tables")
        left_out = [[str(folder), reason] for folder, reason in comparison.failed]
        Grid("left_out", "Run folders that are left out", ["folder", "reason"], left_out, ("reason",)).save(
            self.out / "tables"
        )
        grids = [
            results_grid(comparison.rows),
            origin_grid(comparison.systems, comparison.bleu, comparison.rows[0].chrf_signature),
        ]
        text = [
            "Scores are sacreBLEU's, computed anew from every run's hypotheses. Δ BLEU is against the baseline with the "
            "same seed, its 95% interval over resampled test sets; p is sacreBLEU's paired bootstrap test, one for each "
            "shared seed, of which the median and the largest are given. Tokens seen are target tokens.",
            *comparison.notes,
        ]
        return Section("table", "Scores", text, grids=grids, failed=comparison.failed)

    def sweep(self) -> list[Section]:
        """Results along a number that the systems vary, and the scores before training, where they were measured."""
        sections = []
        found = swept(self.comparison.rows)
        if found is not None:
            bleu = {"corpus BLEU": found.of(lambda row: row.bleu)}
            figure = figures.sweep_figure(found.setting, bleu, looks(list(found.curves)))
            caption = f"BLEU on the test set by {found.setting}: mean and standard deviation over seeds."
            picture = self._picture(figure, "bleu_by_setting", caption)
            title = f"BLEU by {found.setting}"
            sections.append(Section("setting", title, (), [picture], [sweep_grid(found)]))
        grid = start_grid(self.comparison.systems)
        if grid.rows:
            sections.append(Section("start", "Scores before training", START, self._start(found), [grid]))
        return sections

    def _start(self, found: Sweep | None) -> list[Picture]:
        """Only where they can be seen along a number."""
        if found is None:
            return []
        panels = {each.words: found.of(lambda row, key=each.key: at_start(row.system, key)) for each in MEASURES}
        if not all(panels.values()):
            return []
        figure = figures.sweep_figure(found.setting, panels, looks(list(found.curves)))
        caption = f"Scores of the untrained attention by {found.setting}, on sentences of the validation set."
        return [self._picture(figure, "scores_at_start", caption)]

    def lengths(self) -> Section:
        comparison = self.comparison
        figure = figures.length_figure(comparison.lengths, comparison.by, self.look)
        caption = (
            f"Corpus BLEU by {comparison.by} of the source: mean over seeds, a dot for each seed, 95% band of resampled "
            f"sentences, n sentences a bin; bins of fewer than {FEW} are grey."
        )
        grid = lengths_grid(comparison.lengths, comparison.by)
        return Section(
            "lengths", "BLEU by source length", (), [self._picture(figure, "bleu_by_length", caption)], [grid]
        )

    def learning(self) -> Section:
        pictures, text = [], []
        # Where nothing else was logged, both go along training steps, and one figure is enough.
        for along, found in dict(curves(self.comparison.systems, column) for column in AXES).items():
            if found:
                caption = f"BLEU and loss on the validation set over {along}, one line a run."
                figure = figures.progress_figure(along, found, self.look)
                pictures.append(self._picture(figure, f"learning_by_{UNITS[along]}", caption))
        if missing := unlogged(self.comparison.systems):
            text.append(f"No validations in metrics.csv, so no curve: {', '.join(missing)}.")
        grids = [progress_grid(self.comparison.systems)] if pictures else []
        return Section("learning", "Learning curves", text, pictures, grids)

    def alignments(self) -> Section:
        text = [
            "Each row is a target token, each column a source token, and the stronger a cell's colour, the more of the "
            "source token went into the row's context. Point at a cell, or tab into a table and use the arrow keys, for "
            "the weight.",
            "Alignment error rate compares each item's strongest weights with the true alignment, where the corpus has "
            "one. Entropy says how many tokens share the weight (0: always one), coverage how much of the source was "
            "looked at (1: every token once).",
        ]
        grid = alignment_grid(self.comparison.systems)
        grids = [grid] if grid.rows else []
        return Section("alignments", "Alignments", [*text, *self._unprobed()], grids=grids)

    def positions(self) -> Section:
        comparison = self.comparison
        pictures, grids = [], []
        for name, along, what, caption, shares in (
            (
                "accuracy_by_position",
                "position in the target (tokens)",
                "accuracy (%)",
                "Share of target tokens that are the model's first choice, given the true tokens before them.",
                comparison.accuracy,
            ),
            (
                "recall_by_position",
                "position in the source (items)",
                "recall (%)",
                "Share of source items whose translation is in the hypothesis, by their place in the source; phrases with "
                "more than half of the largest number of items.",
                comparison.recall,
            ),
        ):
            if shares:
                pictures.append(self._picture(figures.share_figure(shares, along, what, self.look), name, caption))
                grids.append(shares_grid(name, f"{what.split()[0].capitalize()} in % by {along}", shares))
        text = [*self._unprobed()]
        if comparison.accuracy and not comparison.recall:
            text.append(
                "This corpus does not mark the items of its sentences, so there is no recall by source position."
            )
        return Section("positions", "What is forgotten", text, pictures, grids)

    def gradients(self) -> Section:
        reaches = self.comparison.reaches
        text = [
            f"At {found.distance} steps from the fixed vector, the median of {found.system} is {found.ratio:.3g} times that "
            f"of {found.baseline}"
            + ("." if found.distance == FAR else f"; no sentence with values reaches {FAR} steps.")
            for found in self.comparison.ratios.values()
        ]
        caption = (
            "Norm of the loss's gradient at a source token, relative to the mean of its sentence: median and quartiles by "
            "the number of recurrent steps between the token and the fixed vector (tokens to EOS after self-attention)."
        )
        pictures = (
            [self._picture(figures.reach_figure(reaches, self.look), "gradient_reach", caption)] if reaches else []
        )
        grids = [reach_grid(reaches)] if reaches else []
        return Section("gradients", "Gradient reach", [*text, *self._unprobed()], pictures, grids)

    def differences(self) -> Section:
        title, best = "Where they differ most", self.comparison.best
        if best is None:
            return Section("differences", title, ["No two systems share a seed and a baseline."])
        names = (best.system.name, best.versus.baseline)
        seed = best.system.paired(next(each for each in self.comparison.systems if each.name == names[1]))[0][0].seed
        text = [
            f"Sentences on which {names[0]} gains most over {names[1]}, both with seed {seed}, by BLEU of the sentence."
        ]
        if not self.comparison.differences:
            text = [f"{names[0]} gains on no sentence over {names[1]} with seed {seed}."]
        return Section("differences", title, text, differences=self.comparison.differences, names=names)

    def _picture(self, figure: Figure, name: str, caption: str) -> Picture:
        return Picture(name, save(figure, self.out / "figures", name), caption)

    def _unprobed(self) -> Sequence[str]:
        missing = [str(run.folder) for system in self.comparison.systems for run in system.runs if run.probes is None]
        return [f"Not measured here, as there is no probes.npz: {', '.join(missing)}."] if missing else []
