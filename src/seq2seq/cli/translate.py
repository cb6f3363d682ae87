"""``seq2seq-translate --checkpoint BEST.ckpt < in.txt > out.txt``: one line in, one line out, in order.

Lines are UTF-8 and end with a line feed; a carriage return before it is dropped. An empty line stays empty.
"""

import argparse
import os
import re
import signal
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from io import BufferedIOBase
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from seq2seq.cli.command import UNWRITTEN, add_trust, leave_output, leave_to_signals
from seq2seq.cli.said import draw, formatted, make_folder, print_scores
from seq2seq.errors import ConfigError, CorpusError, UserError
from seq2seq.progress import progress

if TYPE_CHECKING:
    from seq2seq.decoding.candidate import Candidate
    from seq2seq.translator import Translator

Item = TypeVar("Item")

BOM = b"\xef\xbb\xbf"
SETTING = re.compile(r"(?<!--)\b(?:decoding\.(\w+)|(batch_tokens|longest)\b)")
"""As the parts of the program call what is an option here."""
LINES = 1000
"""Read, sorted by length and translated together; no more than these are in memory."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Parses the command line and translates what comes in until it ends."""
    options = _parser().parse_args(arguments)
    try:
        _check_streams()
        _translate(options)
    except UserError as error:
        sys.stdout.flush()
        sys.exit(f"error: {SETTING.sub(_option, str(error))}")
    except KeyboardInterrupt:
        leave_to_signals()
        sys.exit(130)
    except OSError as error:
        if error.errno not in UNWRITTEN:
            raise
        leave_output(error)


def _check_streams() -> None:
    """Python gives None for a stream that whoever started it has closed, and prints to standard output in its place."""
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - as long as the program
    for name, stream in (("input", sys.stdin), ("output", sys.stdout)):
        if stream is None:
            raise ConfigError(f"standard {name} is closed: lines come from standard input and go to standard output")


def _option(setting: re.Match[str]) -> str:
    return f"--{(setting[1] or setting[2]).replace('_', '-')}"


def _translate(options: argparse.Namespace) -> None:
    from seq2seq.data.text import sentences

    if not 1 <= options.n_best <= max(options.beam, 1):
        raise ConfigError(f"--n-best {options.n_best} must be at least 1 and no more than --beam, found {options.beam}")
    references = None if options.score is None else list(sentences(options.score))
    if references == []:
        raise CorpusError(f"{options.score}: holds no line")
    if options.heatmap:
        make_folder(options.heatmap)
    translator = _translator(options)
    said: list[str] = []
    with progress("translate", "lines", shared=True) as advance:
        lines_in = _prepared(translator, _lines(sys.stdin.buffer), options.strict)
        for block in _blocks(lines_in, 1 if options.stream else LINES):
            chunk = [(number, text) for number, text, _ in block]
            with_weights = options.json or bool(options.heatmap)
            found = translator.n_best_of_parts(
                [parts for *_, parts in block], options.n_best, with_weights, options.alignments
            )
            if with_weights:
                _note_missing(chunk, found)
            lines = [
                formatted(options, number, text, candidates)
                for (number, text), candidates in zip(chunk, found, strict=True)
            ]
            with _uninterrupted():
                sys.stdout.buffer.write("".join(lines).encode("utf-8"))
                sys.stdout.buffer.flush()
            if options.heatmap:
                draw(options.heatmap, chunk, found)
            if references is not None:
                said += [candidates[0].text for candidates in found]
            advance(len(chunk))
    if references is not None:
        print_scores(said, references, options)


def _translator(options: argparse.Namespace) -> "Translator":
    import torch

    from seq2seq.decoding.beam import Beam
    from seq2seq.models.recipe import trusting
    from seq2seq.sharing import checkpoint_in
    from seq2seq.translator import Translator

    search = Beam(
        options.beam,
        options.length_penalty,
        options.alpha,
        options.coverage_penalty,
        options.no_repeat_ngram,
        options.min_length,
        options.max_length,
    )
    exported = any(checkpoint_in(path).is_dir() for path in options.checkpoint)
    device = options.device or ("cuda" if torch.cuda.is_available() and not exported else "cpu")
    return Translator.load(
        *options.checkpoint,
        device=device,
        search=search,
        batch_tokens=options.batch_tokens,
        longest=options.longest,
        replace_unknown=options.replace_unknown,
        trusted=trusting(options.trust),
    )


def _lines(stream: BufferedIOBase) -> Iterator[str]:
    """The lines of standard input, as they come.

    Raises:
        CorpusError: one is not UTF-8; names it.
    """
    for number, line in enumerate(iter(stream.readline, b""), start=1):
        content = line.removesuffix(b"\n").removesuffix(b"\r")
        if number == 1:
            content = content.removeprefix(BOM)
        try:
            yield content.decode("utf-8")
        except UnicodeDecodeError as error:
            raise CorpusError(
                f"standard input, line {number}: byte 0x{content[error.start]:02x} at {error.start} is not valid UTF-8 "
                f"({error.reason}); convert it, as in `iconv -f LATIN1 -t UTF-8`"
            ) from None


def _prepared(translator: "Translator", lines: Iterable[str], strict: bool) -> Iterator[tuple[int, str, list[str]]]:
    """Number, text and parts of every line; says which lines are split, or refuses those."""
    for number, text in enumerate(lines, start=1):
        long = f"line {number} has more than {translator.longest} tokens"
        if strict and not translator.fits(text):
            raise CorpusError(f"standard input, {long}: allow more with --longest, or split it")
        try:
            parts = translator.parts(text)
        except CorpusError as error:
            raise CorpusError(f"standard input, line {number}: {error}") from error
        if len(parts) > 1:
            print(f"note: {long} and is translated in {len(parts)} parts", file=sys.stderr)
        yield number, text, parts


def _blocks(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Up to ``size`` items at a time; what came before an error comes out before it."""
    items = iter(items)
    while True:
        block: list[Item] = []
        failure = None
        try:
            for item in islice(items, size):
                block.append(item)  # noqa: PERF402 - those before an error are kept
        except CorpusError as error:
            failure = error
        if block:
            yield block
        if failure is not None:
            raise failure
        if len(block) < size:
            return


def _note_missing(chunk: "Sequence[tuple[int, str]]", found: "Sequence[Sequence[Candidate]]") -> None:
    for (number, _), candidates in zip(chunk, found, strict=True):
        if candidates[0].weights is None:
            print(f"note: line {number} has too many weights: they are neither written nor drawn", file=sys.stderr)


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Ctrl-C waits until whole lines are written."""
    waiting: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: waiting.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if waiting:
        raise KeyboardInterrupt


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="seq2seq-translate", description=__doc__)
    add = parser.add_argument
    add(
        "--checkpoint",
        type=Path,
        action="append",
        required=True,
        help="a run's checkpoints/best.ckpt, or a folder of seq2seq-export; several vote",
    )
    add("--beam", type=int, default=5, help="hypotheses side by side; 1 is greedy (5)")
    add("--length-penalty", default="gnmt", help="none, average or gnmt (gnmt)")
    add("--alpha", type=float, default=0.6, help="of gnmt: the larger, the longer (0.6)")
    add("--coverage-penalty", type=float, default=0.0, help="beta of GNMT (0)")
    add("--no-repeat-ngram", type=int, default=0, help="so many tokens in a row do not come twice (0: they may)")
    add("--min-length", type=int, default=0, help="tokens at least (0)")
    add("--max-length", type=int, default=None, help="tokens at most, beside twice the source's and ten more")
    add(
        "--n-best",
        type=int,
        default=1,
        help="so many lines for each, best first and those cut at the length cap last, the line's number before them; one "
        "for an empty line",
    )
    add("--scores", action="store_true", help="the score of each, after a tab")
    add("--alignments", action="store_true", help="the words that belong together, source-target from 0, after a tab")
    add("--json", action="store_true", help="one JSON object a line, with tokens, weights, scores and alignment")
    add("--heatmap", type=Path, metavar="DIR", help="a picture of the weights of every line, DIR/1.png and so on")
    add("--score", type=Path, metavar="REFERENCE", help="BLEU and chrF against this file, on standard error")
    add("--language", default="en", help="of the reference, such as ja; decides how BLEU splits words (en)")
    add("--stream", action="store_true", help="translate each line as soon as it is there")
    add("--strict", action="store_true", help="refuse a line that is too long instead of splitting it")
    add("--longest", type=int, default=200, help="tokens of a line that is not split (200)")
    add("--replace-unknown", action="store_true", help="write what was looked at most for an unknown token")
    add("--batch-tokens", type=int, default=4000, help="source tokens a batch (4000)")
    add("--device", help="cpu, cuda, cuda:1 (a GPU where there is one)")
    add_trust(parser)
    return parser


if __name__ == "__main__":
    main()
