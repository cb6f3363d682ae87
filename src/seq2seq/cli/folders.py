"""Folders that commands read models from and write to."""

from pathlib import Path

from seq2seq.errors import ConfigError


def best_of(model: Path) -> Path:
    """The best checkpoint of a run folder; of any other path, itself."""
    return model / "checkpoints" / "best.ckpt" if model.is_dir() else model


def check_new(folder: Path) -> None:
    """Makes sure that nothing would be written over.

    Raises:
        ConfigError: it exists and is not empty.
    """
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise ConfigError(f"--out {folder} exists already: name another folder")
