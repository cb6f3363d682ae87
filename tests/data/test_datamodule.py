"""From a corpus to the batches that a trainer sees."""

from pathlib import Path

import lightning
import numpy as np
import pytest
import torch
from torch import nn

from seq2seq.data.datamodule import TranslationData
from seq2seq.data.store import TokenizerSettings
from seq2seq.errors import ConfigError
from seq2seq.types import BOS, EOS, PAD, Batch
from tests.data.toy import toy


def make(cache: Path, **changed: object) -> TranslationData:
    given = {"max_length": None, "max_tokens": 200, "max_sentences": None, "seed": 1} | changed
    return TranslationData(toy(), TokenizerSettings("bpe", 60), cache_dir=str(cache), **given)


def make_ready(cache: Path, **changed: object) -> TranslationData:
    data = make(cache, **changed)
    data.prepare_data()
    data.setup("fit")
    return data


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def data(cache: Path) -> TranslationData:
    return make_ready(cache)


def test_all_splits_come_whole(data: TranslationData) -> None:
    for loader, pairs in ((data.train_dataloader(), 60), (data.val_dataloader(), 7), (data.test_dataloader(), 5)):
        batches = list(loader)
        assert len(batches) == len(loader)
        assert sorted(i for batch in batches for i in batch.ids.tolist()) == list(range(pairs))
        for batch in batches:
            assert isinstance(batch, Batch)
            assert float(batch.loss_denominator) == (batch.targets != PAD).sum()


def test_ceiling_of_training(data: TranslationData) -> None:
    for batch in data.train_dataloader():
        assert batch.source.numel() + batch.targets.numel() <= 200


def test_texts_belong_to_the_batch(data: TranslationData) -> None:
    tokenizers = data.tokenizers
    for batch in data.val_dataloader():
        sources, targets = zip(*data.texts("valid", batch.ids), strict=True)
        assert tokenizers.source.decode(batch.source.tolist()) == list(sources)
        assert tokenizers.target.decode(batch.targets.tolist()) == list(targets)


def test_worker_processes_give_the_same_batches(data: TranslationData, cache: Path) -> None:
    other = make(cache, workers=1)
    other.setup()
    for here, there in zip(data.train_dataloader(), other.train_dataloader(), strict=True):
        assert all(torch.equal(a, b) for a, b in zip(here, there, strict=True))


def test_counts_are_printed_once(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = make(cache)
    data.prepare_data()
    data.prepare_data()
    assert capsys.readouterr().out == "train: 60 pairs\nvalid: 7 pairs\ntest: 5 pairs\n"


def test_dropped_pairs_are_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = make(tmp_path, max_length=12)
    data.corpus.splits["train"].append(data.corpus.splits["train"][0]._replace(target=" "))
    data.prepare_data()
    line = capsys.readouterr().out.splitlines()[0]
    assert line.startswith("train: ")
    assert "pairs (dropped: 1 empty, " in line
    assert line.endswith(" longer than max_length=12 tokens)")


def test_pairs_over_the_cap_in_words_are_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make(tmp_path, max_words=4).prepare_data()
    # One to five number words and a figure: two of five phrases have more than four.
    assert capsys.readouterr().out.splitlines()[0] == "train: 36 pairs (dropped: 24 longer than max_words=4 words)"


def test_pairs_that_fit_into_no_batch_are_left_out(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = make(cache, max_tokens=20)
    data.prepare_data()
    data.setup()
    loader = data.train_dataloader()
    lengths = data.store.split("train").lengths.sum(1)
    fitting = np.flatnonzero(lengths <= 20).tolist()
    assert 0 < len(fitting) < 60
    assert sorted(i for batch in loader for i in batch.ids.tolist()) == fitting
    assert f"train: {60 - len(fitting)} pairs left out, each alone over max_tokens=20" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"max_tokens": None}, "max_tokens and max_sentences are both null"),
        ({"max_tokens": 0}, "max_tokens=0 is not possible"),
        ({"max_sentences": 0}, "max_sentences=0 is not possible"),
        ({"max_length": 0}, "max_length=0 is not possible"),
        ({"max_words": 0}, "max_words=0 is not possible"),
        ({"evaluation_max_tokens": None, "evaluation_max_sentences": None}, "evaluation_max_sentences"),
        ({"evaluation_max_sentences": 0}, "evaluation_max_sentences=0 is not possible"),
        ({"seed": -1}, "seed=-1 is not possible"),
        ({"workers": -1}, "workers=-1 is not possible"),
    ],
)
def test_settings_that_are_impossible(changed: dict[str, object], message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=message):
        make(tmp_path, **changed)


def test_no_pair_fits_into_a_batch(cache: Path) -> None:
    data = make(cache, max_tokens=3)
    data.prepare_data()
    data.setup()
    with pytest.raises(ConfigError, match=r"max_tokens=3 is less than the .* tokens of the shortest training pair"):
        data.train_dataloader()


def test_setup_comes_first(cache: Path) -> None:
    with pytest.raises(RuntimeError, match="prepare_data"):
        make(cache).train_dataloader()


class Recorder(lightning.LightningModule):
    """Notes which batches it sees."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(()))
        self.seen: list[list[list[int]]] = []
        self.denominators: list[float] = []
        self.scored: list[int] = []

    def on_train_epoch_start(self) -> None:
        self.seen.append([])

    def training_step(self, batch: Batch, _: int) -> torch.Tensor:
        self.seen[-1].append(batch.ids.tolist())
        self.denominators.append(float(batch.loss_denominator))
        return self.weight * (batch.targets != PAD).sum() / batch.loss_denominator

    def validation_step(self, batch: Batch, _: int) -> None:
        self.scored += batch.ids.tolist()

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=1.0)


def fit(cache: Path, folder: Path, **trainer: object) -> Recorder:
    module = Recorder()
    quiet = {
        "logger": False,
        "enable_checkpointing": False,
        "enable_progress_bar": False,
        "enable_model_summary": False,
    }
    lightning.Trainer(
        accelerator="cpu",
        use_distributed_sampler=False,
        num_sanity_val_steps=0,
        default_root_dir=folder,
        **quiet,
        **trainer,
    ).fit(module, datamodule=make(cache))
    return module


def test_trainer_sees_another_plan_in_every_epoch(cache: Path, tmp_path: Path) -> None:
    module = fit(cache, tmp_path, max_epochs=2)
    assert module.seen[0] != module.seen[1]
    for epoch in module.seen:
        assert sorted(i for ids in epoch for i in ids) == list(range(60))
    assert sorted(module.scored) == sorted([*range(7)] * 2)


def test_accumulated_tokens_weigh_the_same(cache: Path, tmp_path: Path) -> None:
    module = fit(cache, tmp_path, max_epochs=1, accumulate_grad_batches=3)
    updates = -(-len(module.seen[0]) // 3)
    assert len(module.seen[0]) % 3, "the last update is to be a short one"
    assert module.weight.item() == pytest.approx(-updates)  # the gradient of every update is 1


def test_overfitting_repeats_the_same_batches(cache: Path, tmp_path: Path) -> None:
    module = fit(cache, tmp_path, max_epochs=3, overfit_batches=2)
    assert module.seen[0] == module.seen[1] == module.seen[2]
    assert len(module.seen[0]) == 2
    assert max(map(len, module.seen[0])) > 1, "batches, not single pairs"


def test_subwords_change_with_every_epoch_and_the_texts_never(cache: Path) -> None:
    made = make_ready(cache, subword_dropout=0.3)
    plain = {batch.ids[0].item(): batch for batch in make_ready(cache).train_dataloader()}
    loader = made.train_dataloader()
    first, again = list(loader), list(loader)
    loader.sampler.set_epoch(1)
    second = list(loader)
    for one, other in zip(first, again, strict=True):
        assert all(torch.equal(left, right) for left, right in zip(one, other, strict=True))
    by_pair = [
        {
            pair: tuple(token for token in row.tolist() if token != PAD)
            for batch in epoch
            for pair, row in zip(batch.ids.tolist(), batch.source, strict=True)
        }
        for epoch in (first, second)
    ]
    assert sum(by_pair[0][pair] != by_pair[1][pair] for pair in range(60)) > 40
    longer = 0
    for batch in first:
        sources, targets = zip(*made.texts("train", batch.ids), strict=True)
        assert made.tokenizers.source.decode(batch.source.tolist()) == list(sources)
        assert made.tokenizers.target.decode(batch.targets.tolist()) == list(targets)
        assert float(batch.loss_denominator) == pytest.approx((batch.targets != PAD).sum().item())
        for inputs, target in zip(batch.inputs.tolist(), batch.targets.tolist(), strict=True):
            tokens = [token for token in target if token not in (PAD, EOS)]
            assert inputs == [BOS, *tokens] + [PAD] * (len(target) - 1 - len(tokens))
        longer += (batch.targets != PAD).sum().item()
    assert longer > sum((batch.targets != PAD).sum().item() for batch in plain.values())
    validation = [next(iter(data.val_dataloader())).source for data in (made, make_ready(cache))]
    assert torch.equal(*validation)


def test_subword_dropout_needs_merges(cache: Path) -> None:
    for share in (-0.1, 1.0):
        with pytest.raises(ConfigError, match=f"subword_dropout={share} is not possible"):
            make(cache, subword_dropout=share)
    with pytest.raises(ConfigError, match="leaves out merges, and tokenizer=char has none"):
        TranslationData(toy(), TokenizerSettings("char", 60), None, 200, None, str(cache), 1, subword_dropout=0.1)
