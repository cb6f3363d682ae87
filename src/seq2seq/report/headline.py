"""Three sentences at the top of the report, with the measured numbers in them."""

from collections.abc import Mapping, Sequence

from seq2seq.report.alignments import error_rate
from seq2seq.report.gradients import Ratio
from seq2seq.report.lengths import BinScore
from seq2seq.report.systems import System
from seq2seq.report.table import Row

SIGNIFICANT = 0.05
NOTABLE = 1.5
"""A smaller ratio of gradients says nothing in one sentence; the section on them has it."""


def best_of(rows: Sequence[Row]) -> Row | None:
    """The row with the highest BLEU among those that have a baseline."""
    return max((row for row in rows if row.versus), key=lambda row: row.bleu.mean, default=None)


def headline(
    rows: Sequence[Row], lengths: Mapping[str, list[BinScore]], by: str, ratios: Mapping[str, Ratio], baseline: str
) -> list[str]:
    """What the reader is looking at, what happens to the baseline as sentences grow, what attention changes.

    Args:
        rows: of the main table.
        lengths: bins by system.
        by: the unit of their lengths.
        ratios: gradient reach against the baseline, by system.
        baseline: the system to describe where no other is compared to one.
    """
    best = best_of(rows)
    fixed = best.versus.baseline if best else next((row.system.name for row in rows if row.system.name == baseline), "")
    sentences = [_looking_at([row.system for row in rows])]
    if fixed:
        setting = "Without attention the decoder reads one fixed vector, and" if fixed == "none" else f"With {fixed},"
        sentences.append(f"{setting} {_along(lengths[fixed], by)}.")
    else:
        names = "; ".join(f"with {row.system.name} {_along(lengths[row.system.name], by)}" for row in rows)
        sentences.append(f"No run here has the fixed vector alone, so nothing shows the bottleneck: {names}.")
    if best is None:
        sentences.append("What attention changes is not measured here: no two systems share a seed and a baseline.")
        return sentences
    sentences.append(_change(best, lengths[best.system.name], ratios.get(best.system.name)))
    return sentences


def alignment_error(system: System) -> float | None:
    """Mean over seeds, where the corpus has a true alignment."""
    rates = [rate for rate in map(error_rate, system.probes()) if rate is not None]
    return sum(rates) / len(rates) if rates else None


def _looking_at(systems: Sequence[System]) -> str:
    runs = [run for system in systems for run in system.runs]
    seeds = sorted({len(system.runs) for system in systems})
    each = f"{seeds[0]}" if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"
    data = ", ".join(sorted({str(run.scores["data"]) for run in runs}))
    names = ", ".join(system.name for system in systems)
    plain = not any(system.variant for system in systems)
    same = "; only how the decoder reads the source differs" if plain and len(systems) > 1 else ""
    return (
        f"{_count(len(runs), 'run')} of {_count(len(systems), 'system')} ({names}; {each} "
        f"{'seed' if each == '1' else 'seeds'}{' each' if len(systems) > 1 else ''}) "
        f"{'translate' if len(runs) > 1 else 'translates'} the same {len(runs[0].ids):,} test sentences of {data}{same}."
    )


def _along(bins: Sequence[BinScore], by: str) -> str:
    first, last = bins[0], bins[-1]
    unit = by if first.last > 1 else by.removesuffix("s")
    if len(bins) == 1:
        return f"BLEU is {first.bleu:.1f} on sources of {first.label} {unit}, and there is no other length"
    places = f"{first.bleu:.1f} on sources of {first.label} {unit}", f"{last.bleu:.1f} on {last.label}"
    kept = f" ({100 * last.bleu / first.bleu:.0f}% of that)" if first.bleu > 0 else ""
    if last.interval.high < first.interval.low:
        return f"BLEU falls from {places[0]} to {places[1]}{kept}"
    if last.interval.low > first.interval.high:
        return f"BLEU rises from {places[0]} to {places[1]}"
    return f"BLEU does not clearly change with length: {places[0]}, {places[1]}{kept}"


def _change(best: Row, bins: Sequence[BinScore], ratio: Ratio | None) -> str:
    versus = best.versus
    low, high = versus.interval
    seeds = f" for each of {len(versus.p_values)} seeds" if len(versus.p_values) > 1 else ""
    sure = (
        f"p at most {versus.p_largest:.3f}"
        if versus.p_largest < SIGNIFICANT
        else f"not significant, p up to {versus.p_largest:.2f}"
    )
    more = "more" if versus.delta >= 0 else "less"
    first, last = bins[0], bins[-1]
    parts = [
        f"Against {versus.baseline}, {best.system.name} scores {abs(versus.delta):.1f} BLEU {more} "
        f"(95% interval {low:+.1f} to {high:+.1f}; {sure}{seeds})"
    ]
    if len(bins) > 1 and first.bleu > 0:
        parts.append(f"keeps {100 * last.bleu / first.bleu:.0f}% of its BLEU on the longest sources")
    if ratio and ratio.ratio >= NOTABLE:
        parts.append(
            f"lets {ratio.ratio:.1f} times the relative gradient reach source tokens {ratio.distance} steps away from the "
            "fixed vector"
        )
    error = alignment_error(best.system)
    if error is not None:
        parts.append(f"aligns with an error rate of {error:.2f}")
    return (", ".join(parts[:-1]) + " and " + parts[-1] if len(parts) > 1 else parts[0]) + "."


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")
