"""``seq2seq-bench train|decode|data``: training steps beside the limit of their shapes, translating, and loading data."""

import argparse
import itertools
import json
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from seq2seq.cli.bench_data import bench_data
from seq2seq.cli.benching import composed, print_table
from seq2seq.cli.command import run
from seq2seq.errors import ConfigError, CorpusError

if TYPE_CHECKING:
    from omegaconf import DictConfig

    from seq2seq.types import Batch


def main(arguments: Sequence[str] | None = None) -> None:
    """Parses the command line, measures, prints a table and one line of JSON."""
    run(_parser(), lambda options: options.run(options), arguments)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="seq2seq-bench", description="Measures speed beside the machine's own limit.")
    commands = parser.add_subparsers(dest="command", required=True)
    train = commands.add_parser("train", help="training steps, beside the limit of their shapes")
    train.add_argument("overrides", nargs="*", help="settings as for train.py, such as data=multi30k data.path=DIR")
    train.add_argument("--attention", default="none,additive,scaled", help="which ones, separated by commas")
    train.add_argument(
        "--model", default="parallel", help="which decoders, separated by commas: parallel,bahdanau,luong"
    )
    train.add_argument("--batches", type=int, default=10, help="batches a repetition, spread over an epoch")
    train.add_argument("--repetitions", type=int, default=7, help="counted repetitions, after one that is not")
    train.add_argument("--threads", type=int, default=2, help="CPU threads")
    train.set_defaults(run=bench_train)
    decode = commands.add_parser("decode", help="translating, greedy and with a beam")
    decode.add_argument("source", type=Path, help="a file with a sentence a line")
    decode.add_argument("--checkpoint", type=Path, required=True, help="a run's checkpoints/best.ckpt")
    decode.add_argument("--beams", default="1,5", help="which sizes, separated by commas; 1 is greedy (1,5)")
    decode.add_argument("--repetitions", type=int, default=5, help="counted repetitions, after one that is not")
    decode.add_argument("--threads", type=int, default=2, help="CPU threads")
    decode.set_defaults(run=bench_decode)
    data = commands.add_parser("data", help="tokenising, opening, planning and loading a corpus, and its memory")
    data.add_argument("overrides", nargs="*", help="settings as for train.py, such as data.train_size=5000000")
    data.add_argument("--batches", type=int, default=500, help="batches to load, those of the epoch at most")
    data.set_defaults(run=bench_data)
    for command in (train, data):
        command.add_argument("--conf", type=Path, default=Path("conf"), help="the folder of the configs")
    return parser


def bench_train(options: argparse.Namespace) -> None:
    """Times one step and its limit for each decoder and attention, in turn.

    Raises:
        ConfigError: a setting does not exist, or there is nothing to measure.
    """
    import torch

    from seq2seq.probes.cost import limit_of, measure

    if min(options.batches, options.repetitions, options.threads) < 1:
        raise ConfigError("--batches, --repetitions and --threads must be at least 1")
    torch.set_num_threads(options.threads)
    names = list(itertools.product(options.model.split(","), options.attention.split(",")))
    works, tokens, parameters = [], 0, []
    for decoder, attention in names:
        config = composed(options.conf, [*options.overrides, f"model={decoder}", f"attention={attention}"])
        steps, batches, model = _steps(config, options.batches)
        tokens = sum(int((batch.targets != 0).sum()) for batch in batches)
        parameters.append(model.parameter_counts()["total"])
        works.append((steps, [limit_of(model, batch) for batch in batches]))
    rows = []
    times = measure(works, options.repetitions)
    for (decoder, attention), count, (whole, limit) in zip(names, parameters, times, strict=True):
        shares = [100 * bare / step for step, bare in zip(whole, limit, strict=True)]
        rows.append(
            {
                "model": decoder,
                "attention": attention,
                "parameters": count,
                "tokens_per_s": round(tokens / statistics.median(whole)),
                "limit_tokens_per_s": round(tokens / statistics.median(limit)),
                "percent_of_limit": round(statistics.median(shares), 1),
                "percent_of_limit_range": [round(min(shares), 1), round(max(shares), 1)],
                "step_ms": round(1000 * statistics.median(whole) / options.batches, 1),
            }
        )
    _print(rows, options, torch.__version__)


def bench_decode(options: argparse.Namespace) -> None:
    """Times translating a file for each beam, in turn, and says what share of it are matrix products and recurrences.

    Raises:
        ConfigError: a number is out of range.
        CheckpointError, CorpusError: a file cannot be used.
    """
    import torch

    from seq2seq.data.text import sentences
    from seq2seq.decoding.beam import Beam
    from seq2seq.probes.cost import measure, share_of_products
    from seq2seq.translator import Translator

    beams = [int(part) if part.isdigit() else 0 for part in options.beams.split(",")]
    if min(options.repetitions, options.threads, *beams) < 1:
        raise ConfigError("--beams, --repetitions and --threads must be whole numbers of at least 1")
    torch.set_num_threads(options.threads)
    lines = [line for line in sentences(options.source) if line.strip()]
    if not lines:
        raise CorpusError(f"{options.source}: holds no line with words in it")
    translators = [Translator.load(options.checkpoint, search=Beam(beam)) for beam in beams]
    works = [[lambda translator=each: translator.translate(lines)] for each in translators]
    rows = []
    times = measure([(work, []) for work in works], options.repetitions)
    for beam, work, (seconds, _) in zip(beams, works, times, strict=True):
        speeds = sorted(len(lines) / each for each in seconds)
        rows.append(
            {
                "beam": beam,
                "sentences_per_s": round(statistics.median(speeds), 1),
                "range": [round(speeds[0], 1), round(speeds[-1], 1)],
                "percent_products": round(100 * share_of_products(work[0]), 1),
            }
        )
    title = f"{len(lines):,} lines, {options.threads} threads, median (range) of {options.repetitions} repetitions"
    cells = []
    for row in rows:
        low, high = row["range"]
        speed = f"{row['sentences_per_s']:,} ({low:,}-{high:,})"
        cells.append([str(row["beam"]), speed, f"{row['percent_products']:,}"])
    print_table(title, ["beam"], ["sentences/s", "% in products"], cells)
    print(json.dumps({"bench": "decode", "threads": options.threads, "torch": torch.__version__, "rows": rows}))


def _steps(config: "DictConfig", count: int) -> tuple[list[Callable[[], None]], "list[Batch]", object]:
    """Whole training steps on ``count`` batches spread over the first epoch, without a Trainer around them."""
    import torch
    from hydra.utils import instantiate
    from lightning import seed_everything
    from omegaconf import OmegaConf
    from torch.nn.utils import clip_grad_norm_

    from seq2seq.cli.memory import keep_few_preparations, keep_freed_memory
    from seq2seq.models.recipe import build
    from seq2seq.spread import evenly
    from seq2seq.training.task import Translation

    keep_few_preparations()
    keep_freed_memory()
    seed_everything(config.seed, verbose=False)
    data = instantiate(config.datamodule)
    data.prepare_data()
    data.setup()
    recipe = OmegaConf.to_container(config.model, resolve=True)
    model = build(recipe, **data.tokenizers.sizes()).train()
    task = Translation(
        model,
        recipe,
        data.tokenizers,
        build(OmegaConf.to_container(config.decoding, resolve=True), key="decoding"),
        instantiate(config.optimizer),
        instantiate(config.scheduler),
        config.label_smoothing,
    )
    torch.set_float32_matmul_precision(config.matmul_precision)
    optimizer = task.build_optimizer(model.parameters())
    epoch = list(data.train_dataloader())
    batches = [epoch[place] for place in evenly(len(epoch), count)]

    def step(batch: "Batch") -> None:
        task.loss(batch)[0].backward()
        clip_grad_norm_(model.parameters(), config.trainer.gradient_clip_val)
        optimizer.step()
        optimizer.zero_grad()

    return [lambda batch=batch: step(batch) for batch in batches], batches, model


def _print(rows: list[dict], options: argparse.Namespace, torch_version: str) -> None:
    title = f"training steps, {options.threads} threads, median of {options.repetitions} interleaved repetitions"
    cells = []
    for row in rows:
        low, high = row["percent_of_limit_range"]
        cells.append(
            [
                row["model"],
                row["attention"],
                f"{row['parameters']:,}",
                f"{row['step_ms']:.1f}",
                f"{row['tokens_per_s']:,}",
                f"{row['limit_tokens_per_s']:,}",
                f"{row['percent_of_limit']:.1f} ({low:.1f}-{high:.1f})",
            ]
        )
    numbers = ["parameters", "ms a step", "target tokens/s", "limit tokens/s", "% of limit"]
    print_table(title, ["model", "attention"], numbers, cells)
    print(json.dumps({"bench": "train", "threads": options.threads, "torch": torch_version, "rows": rows}))


if __name__ == "__main__":
    main()
