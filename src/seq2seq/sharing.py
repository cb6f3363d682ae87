"""Models that go to the Hugging Face hub, or to a folder laid out the same way, and come back.

``config.json`` holds the recipe, ``model.ckpt`` weights, tokenizers and recipe, ``scores.json`` what was measured, and
``README.md`` is the model card.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

from huggingface_hub import ModelCard, ModelHubMixin, hf_hub_download

from seq2seq.errors import CheckpointError, ConfigError, UserError
from seq2seq.report.card import NEEDED, model_card
from seq2seq.training.checkpoint import KEY, read
from seq2seq.training.files import serialised, write_text, written

CHECKPOINT, SCORES = "model.ckpt", "scores.json"
CHECKPOINTS, BEST = "checkpoints", "best.ckpt"
HUB_SETTINGS = ("revision", "token", "cache_dir", "force_download", "local_files_only")
Kind = TypeVar("Kind", bound="Shareable")


class Shareable(
    ModelHubMixin,
    library_name="seq2seq-attention",
    pipeline_tag="translation",
    license="other",
    license_name="that-of-the-training-data",
    tags=["attention", "encoder-decoder", "seq2seq"],
):
    """What can be shared: made of one checkpoint. ``save_pretrained``, ``push_to_hub`` and ``from_pretrained`` are the
    hub's own.

    Attributes:
        checkpoints: the files it was loaded from.
    """

    checkpoints: Sequence[Path] = ()

    @classmethod
    def load(cls: type[Kind], *checkpoints: str | Path, **settings: Any) -> Kind:
        """Of the files of checkpoints."""
        raise NotImplementedError

    @classmethod
    def from_pretrained(cls: type[Kind], pretrained_model_name_or_path: str | Path, **settings: Any) -> Kind:
        """A shared model.

        Args:
            pretrained_model_name_or_path: such as ``NAME/MODEL`` on the hub, or a folder.
            settings: ``revision``, ``token``, ``cache_dir``, ``force_download`` and ``local_files_only`` of the hub; all
                else as ``load`` takes it.

        Raises:
            CheckpointError: it is not there, cannot be reached, or is no model of this project.
        """
        if Path(pretrained_model_name_or_path).is_file():
            raise CheckpointError(
                f"{pretrained_model_name_or_path} is a file: Translator.load reads it; this takes folders and names"
            )
        if Path(pretrained_model_name_or_path).is_dir():
            # Nothing of it comes from the hub, and its config.json is for people to read.
            others = {name: value for name, value in settings.items() if name not in HUB_SETTINGS}
            return cls.load(Path(pretrained_model_name_or_path) / CHECKPOINT, **others)
        try:
            return super().from_pretrained(pretrained_model_name_or_path, **settings)
        except UserError:
            raise
        except (OSError, ValueError) as error:
            reason = " ".join(str(error).split())[:300]
            raise CheckpointError(
                f"{pretrained_model_name_or_path} is no folder here, and the hub gives no such model ({reason}): check the "
                "name and the connection, or name a folder that save_pretrained wrote"
            ) from error

    @classmethod
    def _from_pretrained(
        cls: type[Kind],
        *,
        model_id: str,
        revision: str | None,
        cache_dir: str | Path | None,
        force_download: bool,
        local_files_only: bool,
        token: str | bool | None,
        **settings: Any,
    ) -> Kind:
        options = {
            "revision": revision,
            "cache_dir": cache_dir,
            "force_download": force_download,
            "local_files_only": local_files_only,
            "token": token,
        }
        return cls.load(hf_hub_download(model_id, CHECKPOINT, **options), **settings)

    def _save_pretrained(self, save_directory: Path) -> None:
        source = self._source()
        scores = measured(source)
        checkpoint = read(source)
        # Without the optimizer's state, which is twice as large as the weights.
        shared = {"state_dict": checkpoint["state_dict"], KEY: checkpoint[KEY]}
        with written(save_directory / CHECKPOINT) as file:
            file.write(serialised(shared))
        config = {"recipe": json.loads(checkpoint[KEY]["recipe"])}
        write_text(save_directory / "config.json", json.dumps(config, indent=2) + "\n")
        if scores is not None:
            write_text(save_directory / SCORES, json.dumps(scores, indent=2, ensure_ascii=False) + "\n")

    def generate_model_card(self, name: str = "FOLDER", **settings: Any) -> ModelCard:
        """The card that is saved with the model.

        Args:
            name: of the model, as ``from_pretrained`` takes it.
        """
        return model_card(self._hub_mixin_info.model_card_data, name, measured(self._source()))

    def _source(self) -> Path:
        if len(self.checkpoints) != 1:
            raise ConfigError(
                f"a shared model is made of one checkpoint, found {len(self.checkpoints)}: load one file, or make one of "
                "several with seq2seq-average"
            )
        return Path(self.checkpoints[0])


def checkpoint_in(path: Path) -> Path:
    """The checkpoint that a run's folder or a shared one stands for; of any other path, itself."""
    for name in (f"{CHECKPOINTS}/{BEST}", CHECKPOINT):
        if (path / name).is_file():
            return path / name
    return path


def measured(checkpoint: Path) -> dict[str, Any] | None:
    """The scores of these very weights, from beside them; None if there are none.

    A run's scores are those of its ``checkpoints/best.ckpt``; other files of the same run, such as a mean, were not tested.

    Raises:
        CheckpointError: the file with the scores is broken, or an older version wrote it.
    """
    folder = checkpoint.absolute().parent
    if checkpoint.name == BEST and folder.name == CHECKPOINTS:
        scores_file = folder.parent / SCORES
    elif checkpoint.name == CHECKPOINT and not (folder / CHECKPOINTS).is_dir():
        scores_file = folder / SCORES
    else:
        return None
    if not scores_file.is_file():
        return None
    try:
        scores = json.loads(scores_file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise CheckpointError(f"{scores_file} is no readable JSON file ({error})") from error
    missing = [name for name in NEEDED if name not in scores] if isinstance(scores, dict) else NEEDED
    if missing:
        raise CheckpointError(
            f"{scores_file} lacks {', '.join(missing)}: another version wrote it; move it away to share the model without "
            "scores"
        )
    return scores
