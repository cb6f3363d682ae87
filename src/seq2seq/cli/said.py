"""What ``seq2seq-translate`` says of each line: columns, JSON, pictures, scores."""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from seq2seq.errors import ConfigError, CorpusError

if TYPE_CHECKING:
    from seq2seq.decoding.candidate import Candidate


def formatted(options: argparse.Namespace, number: int, text: str, candidates: "Sequence[Candidate]") -> str:
    """One line of output, or one a candidate, each with its line feed."""
    from seq2seq.decoding.words import pharaoh

    if options.json:
        return (
            json.dumps({"line": number, "source": text} | _record(candidates, options.n_best), ensure_ascii=False)
            + "\n"
        )
    lines = []
    for candidate in candidates:
        fields = [candidate.text]
        if options.scores:
            fields.append(f"{candidate.score:.6f}")
        if options.alignments:
            fields.append(pharaoh(candidate.alignment))
        if options.n_best > 1:
            fields.insert(0, str(number))
        lines.append("\t".join(fields) + "\n")
    return "".join(lines)


def _record(candidates: "Sequence[Candidate]", wanted: int) -> dict[str, object]:
    """What JSON says of a line: a list of candidates where more than one is wanted."""
    records = [
        {
            "translation": candidate.text,
            "score": candidate.score,
            "log_probability": candidate.log_probability,
            "truncated": candidate.truncated,
            "alignment": candidate.alignment,
            "source_tokens": candidate.source,
            "target_tokens": candidate.target,
            "weights": None
            if candidate.weights is None
            else [[round(w, 4) for w in row] for row in candidate.weights.tolist()],
        }
        for candidate in candidates
    ]
    return records[0] if wanted == 1 else {"candidates": records}


def make_folder(folder: Path) -> None:
    """Creates what ``--heatmap`` names.

    Raises:
        ConfigError: it cannot be created.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"--heatmap {folder} cannot be written: {error}") from error


def draw(folder: Path, chunk: Sequence[tuple[int, str]], found: "Sequence[Sequence[Candidate]]") -> None:
    """Draws the weights of each line's best translation as ``NUMBER.png``.

    Raises:
        ConfigError: the folder cannot be written.
    """
    import numpy as np

    from seq2seq.report.heatmaps import heatmap

    try:
        for (number, _), candidates in zip(chunk, found, strict=True):
            best = candidates[0]
            if best.weights is None:
                continue
            heatmap(best.weights, np.array(best.source), np.array(best.target)).savefig(
                folder / f"{number}.png", dpi=120
            )
    except OSError as error:
        raise ConfigError(f"--heatmap {folder} cannot be written: {error}") from error


def print_scores(said: Sequence[str], references: Sequence[str], options: argparse.Namespace) -> None:
    """BLEU and chrF with their signatures, on standard error.

    Raises:
        CorpusError: there are more references than lines, or fewer.
    """
    from seq2seq.metrics.corpus import bleu_tokenizer, corpus_scores

    if len(said) != len(references):
        raise CorpusError(
            f"{options.score} has {len(references)} lines, standard input has {len(said)}: line n of one must be the "
            "translation of line n of the other"
        )
    scores = corpus_scores(said, references, bleu_tokenizer(options.language))
    print(f"BLEU {scores.bleu:.2f} ({scores.bleu_signature})", file=sys.stderr)
    print(f"chrF {scores.chrf:.2f} ({scores.chrf_signature})", file=sys.stderr)
