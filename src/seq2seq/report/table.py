"""The main table: what every system scores, whether it differs from the baseline, what it cost, where it came from."""

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from sacrebleu.metrics import CHRF

from seq2seq.report.bootstrap import CorpusBleu, Interval, draw, interval
from seq2seq.report.grid import Grid
from seq2seq.report.runs import Run
from seq2seq.report.systems import System


class Spread(NamedTuple):
    """A number over seeds; ``sd`` is the sample's standard deviation, None for a single seed."""

    mean: float
    sd: float | None

    def text(self, digits: int = 2) -> str:
        """Such as ``30.12 ± 0.45``."""
        return f"{self.mean:.{digits}f}" + ("" if self.sd is None else f" ± {self.sd:.{digits}f}")


class Versus(NamedTuple):
    """A system against its baseline, over the seeds that both have.

    Args:
        baseline: its name.
        delta: mean difference in BLEU, with the 95% interval of resampled test sets.
        p_values: sacreBLEU's paired bootstrap test by seed.
    """

    baseline: str
    delta: float
    interval: Interval
    p_values: Mapping[int, float]

    @property
    def p_median(self) -> float:
        return statistics.median(self.p_values.values())

    @property
    def p_largest(self) -> float:
        return max(self.p_values.values())


class Row(NamedTuple):
    """One system."""

    system: System
    bleu: Spread
    chrf: Spread
    versus: Versus | None
    chrf_signature: str


def spread(values: Sequence[float]) -> Spread:
    """Mean and sample standard deviation."""
    return Spread(statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else None)


def main_table(
    systems: Sequence[System], bleu: CorpusBleu, baselines: Mapping[str, System], resamples: int
) -> list[Row]:
    """Scores every hypothesis anew from the text and tests each system against its baseline.

    Args:
        systems: at least one.
        bleu: over all of their runs.
        baselines: by the name of the system that is compared to it.
        resamples: how many test sets to draw.
    """
    first = systems[0].runs[0]
    chrf = CHRF(references=[list(first.references)])
    counts = draw(len(first.ids), resamples)
    rows = []
    for system in systems:
        baseline = baselines.get(system.name)
        rows.append(
            Row(
                system,
                spread([bleu.score(run) for run in system.runs]),
                spread([chrf.corpus_score(run.hypotheses, None).score for run in system.runs]),
                None if baseline is None else _versus(system, baseline, bleu, counts),
                str(chrf.get_signature()),
            )
        )
    return rows


def disagreements(runs: Sequence[Run], bleu: CorpusBleu) -> list[str]:
    """Sentences on runs whose ``scores.json`` says another BLEU than their hypotheses give."""
    return [
        f"{run.folder}: scores.json says BLEU {run.scores['bleu']:.2f}, hypotheses.tsv gives {bleu.score(run):.2f}"
        for run in runs
        if abs(run.scores["bleu"] - bleu.score(run)) > 0.005
    ]


def results_grid(rows: Sequence[Row]) -> Grid:
    """What was measured, for reading."""
    headers = ["system", "seeds", "BLEU", "chrF", "Δ BLEU", "95%", "median p", "max p"]
    headers += ["parameters", "tokens seen", "minutes", "tokens/s", "peak MiB"]
    cells = []
    for row in rows:
        versus = ["", "", "", ""]
        if row.versus:
            low, high = row.versus.interval
            versus = [f"{row.versus.delta:+.2f}", f"{low:+.2f} to {high:+.2f}"]
            versus += [_p_text(row.versus.p_median), _p_text(row.versus.p_largest)]
        costs = (_parameters, _tokens, _minutes, _speed, _peak)
        costs_text = [_text(_mean(row.system, cost), 1 if cost is _minutes else 0) for cost in costs]
        cells.append(
            [row.system.name, str(len(row.system.runs)), row.bleu.text(), row.chrf.text(), *versus, *costs_text]
        )
    return Grid("results", "Scores on the test set (mean ± standard deviation over seeds)", headers, cells)


def origin_grid(systems: Sequence[System], bleu: CorpusBleu, chrf_signature: str) -> Grid:
    """Where the numbers come from: one row a run."""
    cells = [
        [system.name, str(run.seed), str(run.folder), f"{bleu.score(run):.2f}", _commit(run), _versions(run)]
        for system in systems
        for run in system.runs
    ]
    title = f"The runs. Signatures: BLEU {bleu.signature}, chrF {chrf_signature}"
    headers = ["system", "seed", "folder", "BLEU", "git commit", "versions"]
    return Grid("runs", title, headers, cells, text=("folder", "git commit", "versions"))


def raw_grid(rows: Sequence[Row], bleu: CorpusBleu) -> Grid:
    """Everything in one table, unrounded, for programs. Numbers are means over seeds."""
    records = []
    for row in rows:
        system, versus = row.system, row.versus
        record: dict[str, Any] = {
            "system": system.name,
            "seeds": " ".join(str(run.seed) for run in system.runs),
            "bleu": row.bleu.mean,
            "bleu_sd": row.bleu.sd,
            "chrf": row.chrf.mean,
            "chrf_sd": row.chrf.sd,
            "baseline": versus and versus.baseline,
            "delta_bleu": versus and versus.delta,
            "delta_low": versus and versus.interval.low,
            "delta_high": versus and versus.interval.high,
            "p_median": versus and versus.p_median,
            "p_largest": versus and versus.p_largest,
            "p_by_seed": versus and " ".join(f"{seed}:{p:.6f}" for seed, p in versus.p_values.items()),
            "bleu_signature": bleu.signature,
            "chrf_signature": row.chrf_signature,
            "parameters": _mean(system, _parameters),
            "target_tokens_seen": _mean(system, _tokens),
            "minutes": _mean(system, _minutes),
            "tokens_per_s": _mean(system, _speed),
            "peak_mib": _mean(system, _peak),
            "git_commit": _common(system, _commit),
            "versions": _common(system, _versions),
        }
        records.append(record)
    cells = [["" if value is None else str(value) for value in record.values()] for record in records]
    return Grid("table", "The main table, unrounded", list(records[0]), cells)


def _versus(system: System, baseline: System, bleu: CorpusBleu, counts: np.ndarray) -> Versus:
    pairs = system.paired(baseline)
    # One draw of sentences serves both sides and all seeds: what they have in common cancels out.
    differences = np.mean([bleu.resampled(run, counts) - bleu.resampled(other, counts) for run, other in pairs], axis=0)
    return Versus(
        baseline.name,
        statistics.fmean(bleu.score(run) - bleu.score(other) for run, other in pairs),
        interval(differences),
        {run.seed: bleu.p_value(run, other, len(counts)) for run, other in pairs},
    )


def _p_text(p: float) -> str:
    return f"{p:.3f}" if p >= 0.0005 else "< 0.001"


def _parameters(run: Run) -> int:
    return run.scores["parameters"]["total"]


def _tokens(run: Run) -> int:
    return run.scores["train_tokens"]


def _minutes(run: Run) -> float:
    return run.scores["train_seconds"] / 60


def _speed(run: Run) -> float:
    return run.scores["train_tokens_per_s"]


def _peak(run: Run) -> float | None:
    return run.scores.get("peak_mib")


def _mean(system: System, of: Callable[[Run], float | None]) -> float | None:
    values = [value for value in map(of, system.runs) if value is not None]
    return statistics.fmean(values) if values else None


def _text(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:,.{digits}f}"


def _commit(run: Run) -> str:
    return str(run.scores.get("git_commit") or "")[:12]


def _versions(run: Run) -> str:
    return ", ".join(f"{name} {version}" for name, version in (run.scores.get("versions") or {}).items())


def _common(system: System, of: Callable[[Run], str]) -> str:
    return " / ".join(dict.fromkeys(map(of, system.runs)))
