"""``seq2seq-bench decode``: translating a file, greedily and with a beam."""

import argparse

from seq2seq.cli.benching import Figure, begin, finish, listed, print_rows
from seq2seq.data.text import sentences
from seq2seq.decoding.beam import Beam
from seq2seq.errors import ConfigError, CorpusError
from seq2seq.probes.cost import measure, share_of_products
from seq2seq.translator import Translator


def bench_decode(options: argparse.Namespace) -> None:
    """Times translating a file for each beam, in turn, and says what share of it are matrix products and recurrences.

    Raises:
        ConfigError: a number is out of range.
        CheckpointError, CorpusError: a file cannot be used.
    """
    beams = [int(part) if part.isdecimal() and part.isascii() else 0 for part in listed(options, "beams")]
    if min(beams) < 1:
        raise ConfigError(f"--beams must be whole numbers of at least 1, found {options.beams}")
    begin(options, "decode", "repetitions")
    lines = [line for line in sentences(options.source) if line.strip()]
    if not lines:
        raise CorpusError(f"{options.source}: holds no line with words in it")
    translators = [Translator.load(options.checkpoint, search=Beam(beam)) for beam in beams]
    works = [[lambda translator=each: translator.translate(lines)] for each in translators]
    rows = []
    times = measure([(work, []) for work in works], options.repetitions)
    for beam, work, (seconds, _) in zip(beams, works, times, strict=True):
        rows.append(
            {
                "name": f"beam {beam}" if beam > 1 else "greedy",
                "sentences_per_s": Figure.of([len(lines) / each for each in seconds]),
                "percent_products": round(100 * share_of_products(work[0]), 1),
            }
        )
    title = f"{len(lines):,} lines, {options.threads} threads, median (range) of {options.repetitions} repetitions"
    columns = {"name": "search", "sentences_per_s": "sentences/s", "percent_products": "% in products"}
    print_rows(title, columns, rows)
    finish("decode", rows, options, lines=len(lines))
