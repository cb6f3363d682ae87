"""All numbers of a report over several runs, computed once, before anything is drawn."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from seq2seq.errors import ConfigError
from seq2seq.report.bootstrap import CorpusBleu
from seq2seq.report.differences import Difference, biggest
from seq2seq.report.gradients import Ratio, Reach, ratio, reach
from seq2seq.report.headline import best_of, headline
from seq2seq.report.lengths import WORDS, BinScore, bins_of, by_length, source_lengths
from seq2seq.report.positions import Share, accuracy, recall
from seq2seq.report.runs import Failed, check_same_test, find_runs
from seq2seq.report.systems import BASELINE, System, baselines, group
from seq2seq.report.table import Row, disagreements, main_table


@dataclass(frozen=True, eq=False)
class Comparison:
    """What was measured. Mappings are by system name; a system without probes is not in those that need them.

    Args:
        systems: in the order in which everything lists them.
        failed: run folders that are left out.
        notes: what does not fit together and was not a reason to stop.
        rows: of the main table.
        bleu: scores of any part of the test set.
        by: the unit of source lengths.
        lengths: BLEU by source length.
        accuracy, recall: by target and by source position.
        reaches, ratios: gradient reach, and its ratio to the baseline.
        best: the row with the highest BLEU that has a baseline.
        differences: sentences on which ``best`` and its baseline differ most.
        headline: the sentences at the top.
    """

    systems: Sequence[System]
    failed: Sequence[Failed]
    notes: Sequence[str]
    rows: Sequence[Row]
    bleu: CorpusBleu
    by: str
    lengths: Mapping[str, list[BinScore]]
    accuracy: Mapping[str, list[Share]]
    recall: Mapping[str, list[Share]]
    reaches: Mapping[str, list[Reach]]
    ratios: Mapping[str, Ratio]
    best: Row | None
    differences: Sequence[Difference]
    headline: Sequence[str]


def gather(
    paths: Iterable[Path | str],
    baseline: str | None = None,
    bins: int = 6,
    edges: Sequence[int] | None = None,
    by: str = WORDS,
    resamples: int = 1000,
) -> Comparison:
    """Reads the runs and computes everything that the report shows. The same runs give the same numbers.

    Args:
        paths: run folders, or sweeps' folders that hold them.
        baseline: an attention or a system's name; None is ``none``, where there is one.
        bins: how many source lengths of about equal size.
        edges: last length of each bin but the last, instead of ``bins``.
        by: ``words`` or ``items``.
        resamples: test sets to draw for intervals and tests.

    Raises:
        ConfigError: an argument does not fit, no run is readable, or the runs cannot be compared.
    """
    if resamples < 1:
        raise ConfigError(f"--resamples {resamples}: there must be at least one")
    runs, failed = find_runs(paths)
    check_same_test(runs)
    systems = group(runs)
    others = baselines(systems, baseline)
    bleu = CorpusBleu(runs)
    lengths = source_lengths(runs, by)
    scored = by_length(systems, bleu, lengths, bins_of(lengths, bins, edges), resamples)
    rows = main_table(systems, bleu, others, resamples)
    reaches = _measured({system.name: reach(system) for system in systems})
    ratios = {name: ratio(name, other.name, reaches) for name, other in others.items()}
    ratios = {name: found for name, found in ratios.items() if found is not None}
    best = best_of(rows)
    differences = biggest(*best.system.paired(others[best.system.name])[0]) if best else []
    return Comparison(
        systems,
        failed,
        disagreements(runs, bleu),
        rows,
        bleu,
        by,
        scored,
        _measured({system.name: accuracy(system) for system in systems}),
        _measured({system.name: recall(system) for system in systems}),
        reaches,
        ratios,
        best,
        differences,
        headline(rows, scored, by, ratios, baseline or BASELINE),
    )


def _measured(by_system: dict[str, list]) -> dict[str, list]:
    return {name: values for name, values in by_system.items() if values}
