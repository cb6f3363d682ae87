"""The report's figures. Each takes numbers by system and returns a figure; nothing here computes."""

from collections.abc import Mapping, Sequence

import matplotlib
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, MaxNLocator

from seq2seq.report.gradients import Reach
from seq2seq.report.lengths import FEW, BinScore
from seq2seq.report.positions import Share
from seq2seq.report.progress import Curve
from seq2seq.report.style import SETTINGS, Look, legend, new_figure
from seq2seq.report.table import Spread

FAINT = "#888888"
THOUSANDS = 10_000
"""From here on an axis says k and M."""
MOST_MARKERS = 20
"""More on one line would hide it."""


def length_figure(scored: Mapping[str, Sequence[BinScore]], by: str, look: Mapping[str, Look]) -> Figure:
    """Corpus BLEU by source length: mean over seeds, band of resamples, a dot a seed, bins of few sentences greyed."""
    figure, (axes,) = new_figure()
    bins = next(iter(scored.values()))
    places = range(len(bins))
    few = [at for at in places if bins[at].n < FEW]
    with matplotlib.rc_context(SETTINGS):
        for at in few:
            axes.axvspan(at - 0.5, at + 0.5, color=FAINT, alpha=0.18, linewidth=0)
        for name, parts in scored.items():
            color, marker, line = look[name]
            axes.plot(places, [part.bleu for part in parts], color=color, marker=marker, linestyle=line, label=name)
            low, high = zip(*(part.interval for part in parts), strict=True)
            axes.fill_between(places, low, high, color=color, alpha=0.18, linewidth=0)
            if len(parts[0].by_seed) > 1:
                for at, part in enumerate(parts):
                    axes.scatter([at] * len(part.by_seed), part.by_seed, s=6, color=color, alpha=0.7, linewidths=0)
        axes.set_xticks(places, [f"{part.label}\nn={part.n}" for part in bins])
        for at in few:
            axes.get_xticklabels()[at].set_color(FAINT)
        axes.set_xlim(-0.4, len(bins) - 0.6)
        axes.set_ylim(0, 103)
        axes.set_xlabel(f"{by} of the source sentence")
        axes.set_ylabel("corpus BLEU")
    legend(figure, axes)
    return figure


def progress_figure(along: str, curves: Sequence[Curve], look: Mapping[str, Look]) -> Figure:
    """Validation BLEU above, loss below: one line a run, one look a system."""
    figure, (upper, lower) = new_figure(panels=2)
    named: set[str] = set()
    with matplotlib.rc_context(SETTINGS):
        for curve in curves:
            color, marker, line = look[curve.system]
            style = {"color": color, "marker": marker, "linestyle": line, "markersize": 3.5, "linewidth": 1.1}
            label = None if curve.system in named else curve.system
            named.add(curve.system)
            upper.plot(curve.along, curve.bleu, label=label, **style)
            lower.plot(curve.along, curve.loss, **style)
        upper.set_ylabel("validation BLEU")
        upper.set_ylim(bottom=0)
        lower.set_ylabel("loss (nats a token)")
        lower.set_yscale("log")
        lower.yaxis.set_major_formatter("{x:g}")
        lower.set_xlabel(along)
        if max((curve.along[-1] for curve in curves), default=0) >= THOUSANDS:
            lower.xaxis.set_major_formatter(EngFormatter(sep=""))
    legend(figure, upper)
    return figure


def share_figure(shares: Mapping[str, Sequence[Share]], along: str, what: str, look: Mapping[str, Look]) -> Figure:
    """A share in percent by position."""
    figure, (axes,) = new_figure()
    with matplotlib.rc_context(SETTINGS):
        for name, parts in shares.items():
            color, marker, line = look[name]
            style = {"color": color, "marker": marker, "linestyle": line, "markersize": 4}
            style["markevery"] = max(1, len(parts) // MOST_MARKERS)
            axes.plot([part.position for part in parts], [100 * part.share for part in parts], label=name, **style)
        axes.set_ylim(0, 103)
        axes.set_xlabel(along)
        axes.set_ylabel(what)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    legend(figure, axes)
    return figure


def reach_figure(reaches: Mapping[str, Sequence[Reach]], look: Mapping[str, Look]) -> Figure:
    """Relative gradient norm by distance: median and quartiles, on a logarithmic axis."""
    figure, (axes,) = new_figure()
    with matplotlib.rc_context(SETTINGS):
        for name, parts in reaches.items():
            color, marker, line = look[name]
            style = {"color": color, "marker": marker, "linestyle": line, "markersize": 4}
            along = [part.distance for part in parts]
            axes.plot(along, [part.median for part in parts], label=name, **style)
            lower, upper = [part.lower for part in parts], [part.upper for part in parts]
            axes.fill_between(along, lower, upper, color=color, alpha=0.18, linewidth=0)
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter("{x:g}")
        axes.set_xlabel("recurrent steps to the fixed vector")
        axes.set_ylabel("gradient norm / sentence's mean")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    legend(figure, axes)
    return figure


def sweep_figure(
    setting: str, panels: Mapping[str, Mapping[str, Sequence[tuple[float, Spread]]]], look: Mapping[str, Look]
) -> Figure:
    """Numbers by the values of one setting, evenly apart, with a standard deviation where there are several seeds.

    Args:
        setting: its name.
        panels: by what is measured, points by curve. BLEU and shares go from 0 to their largest; others are logarithmic.
        look: of each curve.
    """
    figure, all_axes = new_figure(len(panels))
    values = sorted({value for curves in panels.values() for points in curves.values() for value, _ in points})
    with matplotlib.rc_context(SETTINGS):
        for axes, (what, curves) in zip(all_axes, panels.items(), strict=True):
            for name, points in curves.items():
                color, marker, line = look[name]
                style = {"color": color, "marker": marker, "linestyle": line, "capsize": 3}
                along = [values.index(value) for value, _ in points]
                deviations = [spread.sd or 0.0 for _, spread in points]
                axes.errorbar(along, [spread.mean for _, spread in points], deviations, label=name, **style)
            axes.set_xticks(range(len(values)), [f"{value:g}" for value in values])
            if "BLEU" in what:
                axes.set_ylim(0, 103)
            elif "share" in what:
                axes.set_ylim(0, 1.03)
            elif all(spread.mean > 0 for points in curves.values() for _, spread in points):
                axes.set_yscale("log")
                axes.yaxis.set_major_formatter("{x:g}")
            axes.set_ylabel(what, wrap=True)
        all_axes[-1].set_xlabel(setting)
    legend(figure, all_axes[0])
    return figure
