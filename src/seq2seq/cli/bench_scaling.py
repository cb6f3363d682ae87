"""``seq2seq-bench scaling``: how the time of a training step grows with each of the sizes it depends on."""

import argparse
import math
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import torch
from hydra.utils import instantiate
from omegaconf import OmegaConf

from seq2seq.cli.benching import Figure, begin, composed, finish, print_rows
from seq2seq.cli.command import check_new
from seq2seq.models.loss import summed_loss
from seq2seq.models.recipe import build
from seq2seq.probes.cost import measure
from seq2seq.report.style import legend, looks, new_figure, save
from seq2seq.types import UNK


class Sizes(NamedTuple):
    """Of a model and of a batch of full sentences."""

    batch: int = 64
    hidden: int = 256
    source: int = 20
    target: int = 20
    vocabulary: int = 4000


class Axis(NamedTuple):
    """A size that is changed while the others stay."""

    label: str
    values: tuple[int, ...]
    exponent: int
    """Of the size in the count of operations, where it is the largest of all."""


AXES = {
    "batch": Axis("sentences a batch", (16, 32, 64, 128, 256), 1),
    "hidden": Axis("size of the states", (64, 128, 256, 512), 2),
    "source": Axis("source tokens", (10, 20, 40, 80), 1),
    "target": Axis("target tokens", (10, 20, 40, 80), 1),
    "vocabulary": Axis("vocabulary", (1000, 2000, 4000, 8000, 16000), 1),
}


def bench_scaling(options: argparse.Namespace) -> None:
    """Times steps over a range of each size, all in turn, and draws them.

    Raises:
        ConfigError: a setting does not exist, a number is out of range, or ``--out`` is in use.
    """
    begin(options, "scaling", "repetitions")
    check_new(options.out)
    places = [(name, value) for name, axis in AXES.items() for value in axis.values]
    works = [([_step(options, Sizes()._replace(**{name: value}))], []) for name, value in places]
    measured = dict(zip(places, (whole for whole, _ in measure(works, options.repetitions)), strict=True))
    rows = []
    for name, axis in AXES.items():
        *_, before, last = axis.values
        # Constant costs hide growth at small sizes.
        growth = [
            math.log(large / small) / math.log(last / before)
            for small, large in zip(measured[name, before], measured[name, last], strict=True)
        ]
        times = {f"{value} ms": Figure.of([1000 * each for each in measured[name, value]]) for value in axis.values}
        rows.append({"name": name, "exponent": Figure.of(growth, 2), "formula": axis.exponent, **times})
    drawn = _draw(measured, options.out)
    title = f"growth of a training step from the last size but one to the last, {options.threads} threads"
    table = [
        {
            "name": f"{axis.label}, {axis.values[0]:,} to {axis.values[-1]:,}",
            "ms": " ".join(f"{row[f'{value} ms'].median:,}" for value in axis.values),
            "exponent": row["exponent"],
            "formula": row["formula"],
        }
        for axis, row in zip(AXES.values(), rows, strict=True)
    ]
    print_rows(
        title, {"name": "size", "ms": "ms", "exponent": "exponent (range)", "formula": "at most, by count"}, table
    )
    print(f"figure: {drawn}")
    finish("scaling", rows, options, base=Sizes()._asdict())


def _step(options: argparse.Namespace, sizes: Sizes) -> Callable[[], None]:
    config = composed(options.conf, [*options.overrides, f"hidden_size={sizes.hidden}"])
    torch.manual_seed(config.seed)
    recipe = OmegaConf.to_container(config.model, resolve=True)
    count = sizes.vocabulary
    model = build(recipe, source_vocabulary=count, target_vocabulary=count, joint=True).train()
    torch.set_float32_matmul_precision(config.matmul_precision)
    optimizer = instantiate(config.optimizer)(model.parameters())
    source, inputs, targets = (
        torch.randint(UNK + 1, count, (sizes.batch, length)) for length in (sizes.source, sizes.target, sizes.target)
    )

    def step() -> None:
        features = model(source, inputs).features.flatten(0, 1)
        (summed_loss(model.output, features, targets.flatten()) / targets.numel()).backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def _draw(measured: dict[tuple[str, int], list[float]], folder: Path) -> Path:
    """Target tokens a second over each size in shares of its middle value."""
    figure, (axes,) = new_figure()
    base = Sizes()
    for (name, axis), look in zip(AXES.items(), looks(list(AXES)).values(), strict=True):
        speeds = []
        for value in axis.values:
            sizes = base._replace(**{name: value})
            speeds.append(sizes.batch * sizes.target / Figure.of(measured[name, value], 6).median)
        shares = [value / getattr(base, name) for value in axis.values]
        axes.plot(shares, speeds, label=f"{axis.label} ({getattr(base, name):,})", **look._asdict())
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xlabel("size, relative to the one in brackets")
    axes.set_ylabel("target tokens/s")
    legend(figure, axes)
    folder.mkdir(parents=True, exist_ok=True)
    save(figure, folder, "scaling")
    return folder / "scaling.png"
