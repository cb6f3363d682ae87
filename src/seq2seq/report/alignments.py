"""Where attention looks: alignment error rate, entropy and coverage, and the weights of single sentences."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from seq2seq.report.grid import Grid
from seq2seq.report.runs import Weights
from seq2seq.report.systems import System
from seq2seq.report.table import spread
from seq2seq.spread import evenly

PER_MILLE = 1000


def error_rate(probe: Mapping[str, np.ndarray]) -> float | None:
    """Alignment error rate, 0 to 1: ``1 - 2 found / (predicted + true)``; None without a true alignment or any weights.

    Source: Och & Ney 2003, "A Systematic Comparison of Various Statistical Alignment Models", J03-1002, section 5, with all
    true links sure.
    """
    found, predicted, true = (int(probe[f"alignment_{name}"].sum()) for name in ("found", "predicted", "true"))
    return None if predicted == 0 or true == 0 else 1 - 2 * found / (predicted + true)


def alignment_grid(systems: Sequence[System]) -> Grid:
    """One row a system that was probed, over its seeds; an empty cell where it has no weights or the corpus no items."""
    rows = []
    for system in systems:
        probes = system.probes()
        if probes:
            rates = [error_rate(probe) for probe in probes]
            entropies = [_mean(probe["entropy"]) for probe in probes]
            coverages = [_mean(probe["coverage"]) for probe in probes]
            rows.append([system.name, str(len(probes)), _text(rates), _text(entropies), _text(coverages)])
    headers = ["system", "seeds", "alignment error rate", "entropy (nats)", "coverage"]
    return Grid("alignment", "Alignment (mean ± standard deviation over seeds)", headers, rows)


def sentences(systems: Sequence[System], wanted: Collection[int] = (), most: int = 12) -> dict[str, Any]:
    """Weights to look at, ready for JSON: of each system's first run, in thousandths, with the texts around them.

    Args:
        systems: all of them.
        wanted: sentences to take in any case, if their weights were kept.
        most: how many others, spread evenly over source lengths.
    """
    runs = {system.name: system.runs[0] for system in systems}
    first = next(iter(runs.values()))
    place = {sentence: at for at, sentence in enumerate(first.ids)}
    kept = {sentence for run in runs.values() for sentence in run.weights} & place.keys()
    by_length = sorted(kept, key=lambda each: (len(first.sources[place[each]]), each))
    shown = {*(by_length[place] for place in evenly(len(by_length), most)), *(kept & set(wanted))}
    found = []
    for sentence in (each for each in by_length if each in shown):
        at = place[sentence]
        views = {}
        for name, run in runs.items():
            view: dict[str, Any] = {"seed": run.seed, "hypothesis": run.hypotheses[at]}
            if sentence in run.weights:
                weights = run.weights[sentence]
                view |= {"source": weights.source, "target": weights.target, "looks": looks(weights)}
            views[name] = view
        found.append({"id": sentence, "source": first.sources[at], "reference": first.references[at], "views": views})
    return {"systems": list(runs), "sentences": found}


def looks(weights: Weights) -> list[dict[str, Any]]:
    """Everything that can be shown of a sentence: ``name``, ``weights`` and whether the rows are ``source`` tokens.

    The decoder's weights come first, then its heads, then the encoder's layers and their heads; a mean only where there is
    more than one head. An attention that looks at no single token has nothing but zeros, which are left out.
    """
    found = []
    if weights.weights.any():
        several = weights.heads is not None and len(weights.heads) > 1
        found.append(_look("decoder, mean of its heads" if several else "decoder", weights.weights))
        if several:
            found += [_look(f"decoder, head {at}", each) for at, each in enumerate(weights.heads, start=1)]
    for layer, heads in enumerate(weights.encoder, start=1):
        if not heads.any():
            continue
        name = f"encoder, layer {layer}"
        several = len(heads) > 1
        found.append(_look(f"{name}, mean of its heads" if several else name, heads.mean(axis=0), itself=True))
        if several:
            found += [_look(f"{name}, head {at}", each, itself=True) for at, each in enumerate(heads, start=1)]
    return found


def _look(name: str, weights: np.ndarray, itself: bool = False) -> dict[str, Any]:
    values = np.rint(weights.astype(np.float64) * PER_MILLE).astype(int).tolist()
    return {"name": name, "itself": itself, "weights": values}


def _mean(values: np.ndarray) -> float | None:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else None


def _text(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    return spread(known).text(3) if known else ""
