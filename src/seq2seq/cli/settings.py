"""The types of the settings at the top of ``conf/train.yaml``: Hydra checks what a user types against them."""

from dataclasses import dataclass
from typing import Any

from hydra.core.config_store import ConfigStore
from omegaconf import MISSING


@dataclass
class Settings:
    """One field a setting, and one a shelf. Values, comments and defaults stand in the yaml files."""

    seed: int = MISSING
    run_dir: str = MISSING
    resume: str | None = None
    cache_dir: str = MISSING
    vocabulary_size: int = MISSING
    cell: str = MISSING
    embedding_size: int = MISSING
    hidden_size: int = MISSING
    encoder_layers: int = MISSING
    decoder_layers: int = MISSING
    residual: bool = MISSING
    tying: str = MISSING
    dropout: float = MISSING
    word_dropout: float = MISSING
    subword_dropout: float = MISSING
    label_smoothing: float = MISSING
    learning_rate: float = MISSING
    max_epochs: int = MISSING
    max_sentences: int | None = None
    max_tokens: int | None = None
    max_length: int | None = None
    max_words: int | None = None
    matmul_precision: str = MISSING
    compile: bool = MISSING
    data: Any = MISSING
    datamodule: Any = MISSING
    attention: Any = MISSING
    encoder: Any = MISSING
    model: Any = MISSING
    tokenizer: Any = MISSING
    decoding: Any = MISSING
    optimizer: Any = MISSING
    scheduler: Any = MISSING
    trainer: Any = MISSING
    callbacks: Any = MISSING
    logger: Any = MISSING


def register() -> None:
    """Makes the types known under the name that ``conf/train.yaml`` begins with."""
    ConfigStore.instance().store("settings", Settings)
