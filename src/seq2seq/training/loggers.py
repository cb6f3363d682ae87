"""Loggers that write into the run folder."""

import csv
import io
from pathlib import Path

from lightning.pytorch.loggers import CSVLogger
from lightning.pytorch.loggers.csv_logs import ExperimentWriter

from seq2seq.training.files import write_text


class RunCSVLogger(CSVLogger):
    """``metrics.csv`` in the run folder itself, continued when a run is resumed.

    Lightning's own logger begins by deleting the file that an earlier start of the same run wrote.

    Args:
        folder: the run folder.
        every: rows are flushed after so many steps.
    """

    def __init__(self, folder: str, every: int = 50):
        super().__init__(folder, name="", version="", flush_logs_every_n_steps=every)

    @property
    def experiment(self) -> ExperimentWriter:
        if self._experiment is None:
            self._experiment = _ContinuedWriter(self.log_dir)
        return self._experiment


class _ContinuedWriter(ExperimentWriter):
    def _check_log_dir_exists(self) -> None:
        if self._fs.isfile(self.metrics_file_path):
            with self._fs.open(self.metrics_file_path, "r", newline="") as file:
                self.metrics_keys = next(csv.reader(file), [])


def forget_from(path: Path, step: int) -> None:
    """Drops the rows of ``metrics.csv`` that tell of ``step`` or a later one, which a resumed training tells anew."""
    if not path.is_file():
        return
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    # A kill may leave half a row at the end.
    whole = [row for row in rows if None not in row.values()]
    kept = [row for row in whole if row["step"].isdigit() and int(row["step"]) < step]
    if len(kept) < len(rows):
        text = io.StringIO(newline="")
        writer = csv.DictWriter(text, fieldnames=list(rows[0]), extrasaction="ignore")
        writer.writeheader()
        writer.writerows(kept)
        write_text(path, text.getvalue())
