"""A corpus of sixteen sentences in memory, and a task trained on it for a moment."""

import functools

import pytest
import torch
from lightning import Trainer, seed_everything

from seq2seq.data.corpus import Pair
from seq2seq.data.datamodule import TranslationData
from seq2seq.data.store import TokenizerSettings
from seq2seq.decoding.greedy import Greedy
from seq2seq.models.recipe import build
from seq2seq.training.schedule import constant
from seq2seq.training.task import Translation
from tests.tiny import tiny_recipe

NUMBERS = {"one": "eins", "two": "zwei", "three": "drei", "four": "vier", "five": "fünf", "six": "sechs"}


class Numbers:
    """Lists of numbers, English to German."""

    source, target = "en", "de"

    def __init__(self, train=24, held_out=16):
        self.sizes = {"train": train, "valid": held_out, "test": held_out}

    def identity(self):
        return {"numbers": 1, **self.sizes}

    def pairs(self, split):
        words = list(NUMBERS)
        for place in range(self.sizes[split]):
            chosen = [words[(place * 5 + step * (place + 1)) % 6] for step in range(1 + place % 5)]
            yield Pair(" ".join(chosen), " ".join(NUMBERS[word] for word in chosen))


@pytest.fixture
def make_data(tmp_path):
    def make(**settings):
        data = TranslationData(
            corpus=Numbers(),
            tokenizer=TokenizerSettings(kind="word", vocabulary_size=16, joint=True, normalization="identity"),
            max_length=None,
            max_tokens=settings.pop("max_tokens", 200),
            max_sentences=settings.pop("max_sentences", 8),
            cache_dir=str(tmp_path / "cache"),
            seed=0,
            **settings,
        )
        data.prepare_data()
        data.setup()
        return data

    return make


def make_task(data, attention="scaled", seed=0, rate=0.02, **settings):
    seed_everything(seed, verbose=False)
    recipe = tiny_recipe(attention)
    return Translation(
        model=build(recipe, **data.tokenizers.sizes()),
        recipe=recipe,
        tokenizers=data.tokenizers,
        search=Greedy(),
        optimizer=functools.partial(torch.optim.AdamW, lr=rate),
        scheduler=functools.partial(constant, warmup_steps=0),
        **settings,
    )


def make_trainer(folder, epochs=1, callbacks=(), **settings):
    return Trainer(
        accelerator="cpu",
        devices=1,
        max_epochs=epochs,
        callbacks=list(callbacks),
        default_root_dir=folder,
        logger=settings.pop("logger", False),
        enable_checkpointing=settings.pop("enable_checkpointing", False),
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
        use_distributed_sampler=False,
        **settings,
    )
