"""The parts of a training, built from its settings: for a run, and for what measures one."""

from typing import Any, get_args

import torch
from hydra.utils import instantiate
from omegaconf import DictConfig, OmegaConf

from seq2seq.attention.base import placed, reach, too_long
from seq2seq.data.datamodule import TranslationData
from seq2seq.decoding.greedy import Search
from seq2seq.errors import ConfigError
from seq2seq.models.encoder import RecurrentEncoder
from seq2seq.models.recipe import build
from seq2seq.models.recurrent import Recurrent
from seq2seq.models.seq2seq import Seq2Seq
from seq2seq.training.compiling import compiled_forward
from seq2seq.training.task import Translation
from seq2seq.types import Split


def build_search(config: DictConfig) -> Search:
    """What translates the validation and test splits."""
    return build(OmegaConf.to_container(config.decoding, resolve=True), key="decoding")


def build_data(config: DictConfig) -> TranslationData:
    """The corpus, tokenised and opened."""
    data: TranslationData = instantiate(config.datamodule)
    data.prepare_data()
    data.setup()
    return data


def build_task(config: DictConfig, data: TranslationData, search: Search) -> Translation:
    """The model, untrained, with what it takes to train it.

    Raises:
        ConfigError: a part does not fit the others, or the data.
    """
    recipe = OmegaConf.to_container(config.model, resolve=True)
    model = build(recipe, **data.tokenizers.sizes())
    _check_reach(model, data)
    _check_residual(config.residual, model)
    return Translation(
        model=model,
        recipe=recipe,
        tokenizers=data.tokenizers,
        search=search,
        optimizer=instantiate(config.optimizer),
        scheduler=instantiate(config.scheduler),
        label_smoothing=config.label_smoothing,
        language=data.corpus.target,
        forward=compiled_forward() if config.compile else Seq2Seq.__call__,
    )


def build_listed(shelf: DictConfig) -> list[Any]:
    """The callbacks or loggers that are not switched off."""
    return [instantiate(part) for part in shelf.values() if part is not None]


def _check_reach(model: torch.nn.Module, data: TranslationData) -> None:
    """An attention that knows so many positions has to know all of the data, before anything is trained."""
    longest = max(int(data.store.split(split).lengths[:, 0].max(initial=0)) for split in get_args(Split))
    for key, part in (("encoder.attention", model.encoder), ("attention", model.decoder)):
        known = reach(part)
        if known is not None and known < longest:
            raise ConfigError(placed(key, too_long(known, longest)))


def _check_residual(wanted: bool, model: torch.nn.Module) -> None:
    """Residual connections stand between layers: without a second one they would change nothing but the run's name."""
    stacks = [part for part in model.modules() if isinstance(part, Recurrent | RecurrentEncoder)]
    if wanted and not any(part.residual and part.layers > 1 for part in stacks):
        raise ConfigError(
            "residual=true changes nothing here, as no recurrent stack has two layers: set encoder_layers=2 (of a recurrent "
            "encoder), or decoder_layers=2 (3 with model=parallel, whose first layer stands alone)"
        )
