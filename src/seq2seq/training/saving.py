"""How Lightning's checkpoints come onto the disk: whole, or not at all."""

from pathlib import Path
from typing import Any

from lightning.pytorch.plugins.io import TorchCheckpointIO

from seq2seq.errors import TrainingError
from seq2seq.training.files import serialised, written


class WholeCheckpoints(TorchCheckpointIO):
    """Writes a checkpoint beside its place and moves it there.

    Lightning's own way leads through the folder for temporary files, which is often on another disk: from there a file is
    copied over the earlier one, and a kill or a full disk meanwhile costs both.
    """

    def save_checkpoint(self, checkpoint: dict[str, Any], path: str | Path, storage_options: Any = None) -> None:
        """Writes one.

        Raises:
            TrainingError: the disk is full, or the file cannot be written for another reason; an earlier one stays.
        """
        path = Path(path)
        content = serialised(checkpoint)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with written(path) as file:
                file.write(content)
        except OSError as error:
            stays = "the one that was there before is as it was" if path.exists() else "there was none before"
            raise TrainingError(
                f"the checkpoint {path} of {content.nbytes / 1e6:,.1f} MB cannot be written ({error}); {stays}: make room, "
                "or choose another run_dir, and go on with resume=last"
            ) from error
