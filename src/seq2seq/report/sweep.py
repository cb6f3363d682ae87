"""What a sweep over a number shows: results along that number, such as the hidden size, one curve for all else."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from seq2seq.report.grid import Grid
from seq2seq.report.table import Row, Spread


class Sweep(NamedTuple):
    """Rows by the value of a setting, for each curve, values rising."""

    setting: str
    curves: dict[str, list[tuple[float, Row]]]

    def of(self, measure: Callable[[Row], Spread | None]) -> dict[str, list[tuple[float, Spread]]]:
        """A number along each curve, where it is known."""
        found = {
            name: [(value, number) for value, row in points if (number := measure(row)) is not None]
            for name, points in self.curves.items()
        }
        return {name: points for name, points in found.items() if points}


def swept(rows: Sequence[Row]) -> Sweep | None:
    """The number that the systems vary: the setting that is a number in all of them and has most values.

    What else sets systems apart names the curves. None if there is no such number, or no curve has two values.
    """
    settings = [dict(row.system.settings) for row in rows]
    numbers = [name for name in settings[0] if all(_is_number(setting.get(name, "")) for setting in settings)]
    if not numbers:
        return None
    along = max(numbers, key=lambda name: len({setting[name] for setting in settings}))
    curves: dict[str, list[tuple[float, Row]]] = {}
    for row, setting in zip(rows, settings, strict=True):
        others = [f"{name}={value}" for name, value in setting.items() if name != along]
        curves.setdefault(" ".join([row.system.attention, *others]), []).append((float(setting[along]), row))
    if all(len(points) < 2 for points in curves.values()):
        return None
    return Sweep(along, {name: sorted(points, key=lambda point: point[0]) for name, points in curves.items()})


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def sweep_grid(sweep: Sweep) -> Grid:
    """One row a value, one column a curve: BLEU."""
    curves = sweep.of(lambda row: row.bleu)
    values = sorted({value for points in curves.values() for value, _ in points})
    cells = {(name, value): spread.text() for name, points in curves.items() for value, spread in points}
    rows = [[f"{value:g}", *(cells.get((name, value), "") for name in curves)] for value in values]
    return Grid("bleu_by_setting", f"BLEU by {sweep.setting}", [sweep.setting, *curves], rows)
