"""Loggers that write into the run folder."""

import csv

from lightning.pytorch.loggers import CSVLogger
from lightning.pytorch.loggers.csv_logs import ExperimentWriter


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
