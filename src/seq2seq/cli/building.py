"""The parts of a training, built from its settings: for a run, and for what measures one."""

from typing import Any

from hydra.utils import instantiate
from omegaconf import DictConfig, OmegaConf

from seq2seq.data.datamodule import TranslationData
from seq2seq.decoding.greedy import Search
from seq2seq.models.recipe import build
from seq2seq.models.seq2seq import Seq2Seq
from seq2seq.training.compiling import compiled_forward
from seq2seq.training.task import Translation


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
    """The model, untrained, with what it takes to train it."""
    recipe = OmegaConf.to_container(config.model, resolve=True)
    return Translation(
        model=build(recipe, **data.tokenizers.sizes()),
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
