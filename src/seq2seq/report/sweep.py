"""BLEU along a number that a sweep varies, such as the hidden size: one curve an attention."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from seq2seq.report.grid import Grid
from seq2seq.report.table import Row, Spread

ONE_NUMBER = re.compile(r"(\S+)=(\d+(?:\.\d+)?)")


class Sweep(NamedTuple):
    """BLEU by the value of a setting, for each attention, values rising."""

    setting: str
    curves: dict[str, list[tuple[float, Spread]]]


def swept(rows: Sequence[Row]) -> Sweep | None:
    """What the systems vary, if it is one number and nothing else besides the attention."""
    found = [ONE_NUMBER.fullmatch(row.system.variant) for row in rows]
    settings = {match[1] for match in found if match}
    if len(settings) != 1 or not all(found):
        return None
    curves: dict[str, list[tuple[float, Spread]]] = {}
    for row, match in zip(rows, found, strict=True):
        curves.setdefault(row.system.attention, []).append((float(match[2]), row.bleu))
    return Sweep(settings.pop(), {name: sorted(points) for name, points in curves.items()})


def sweep_grid(sweep: Sweep) -> Grid:
    """One row a value, one column an attention."""
    values = sorted({value for points in sweep.curves.values() for value, _ in points})
    cells = {(name, value): spread.text() for name, points in sweep.curves.items() for value, spread in points}
    rows = [[f"{value:g}", *(cells.get((name, value), "") for name in sweep.curves)] for value in values]
    return Grid("bleu_by_setting", f"BLEU by {sweep.setting}", [sweep.setting, *sweep.curves], rows)
