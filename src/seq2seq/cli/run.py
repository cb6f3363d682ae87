"""One training run, assembled from its config: the place where Hydra's world meets the package's."""

import logging
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from hydra.core.hydra_config import HydraConfig
from hydra.errors import InstantiationException
from hydra.utils import instantiate
from lightning import Callback, Trainer, seed_everything
from lightning.fabric.plugins.environments import LightningEnvironment
from lightning.pytorch.loggers import Logger
from lightning.pytorch.utilities.exceptions import MisconfigurationException
from omegaconf import DictConfig, OmegaConf

from seq2seq.cli.building import build_data, build_listed, build_search, build_task
from seq2seq.cli.checks import check_settings, claim, lightning_message
from seq2seq.cli.memory import forget_peak, keep_few_preparations, keep_freed_memory
from seq2seq.cli.resuming import Resumed, check_own_folder, check_same_model, checkpoint_to_resume
from seq2seq.cli.sweep import check_same_run, in_sweep
from seq2seq.data.datamodule import TranslationData
from seq2seq.errors import ConfigError
from seq2seq.report.heatmaps import draw_heatmaps
from seq2seq.report.summary import print_summary
from seq2seq.training.callbacks.watch import out_of_memory
from seq2seq.training.checkpoint import pack, read
from seq2seq.training.compiling import not_compiled
from seq2seq.training.loggers import forget_from
from seq2seq.training.ranks import end_together, process_lost
from seq2seq.training.saving import WholeCheckpoints
from seq2seq.training.task import Translation


class Run(NamedTuple):
    """Everything that one training needs."""

    folder: Path
    data: TranslationData
    task: Translation
    trainer: Trainer
    resume: Path | None

    def fit(self) -> None:
        """Trains, from the beginning or from the checkpoint to resume.

        Raises:
            TrainingError: the loss is no number any more, or memory ran out.
            ConfigError: there is nothing left to train, or the model cannot be compiled here.
        """
        try:
            with _interruptible():
                self.trainer.fit(self.task, self.data, ckpt_path=self.resume, weights_only=True)
        except RuntimeError as error:
            known = (
                not_compiled(error)
                or out_of_memory(error, self.trainer)
                or process_lost(error, self.trainer.world_size)
                or lightning_message(error)
            )
            if known is None:
                raise
            raise known from error
        except (MisconfigurationException, ValueError, TypeError) as error:
            # Of a checkpoint that is further on than max_epochs, among others.
            known = lightning_message(error)
            if known is None:
                raise
            raise known from error
        early = self.trainer.early_stopping_callback
        if self.trainer.is_global_zero and early is not None and early.stopped_epoch:
            print(f"stopped early after epoch {early.stopped_epoch + 1}: {early.monitor} no longer rose")

    def test(self) -> None:
        """Scores the best weights on the test split, the last ones if none were kept; the results go to the run folder."""
        best = getattr(self.trainer.checkpoint_callback, "best_model_path", None)
        if best:
            # The weights and nothing else: with a whole checkpoint, callbacks would go back to where it was written, that
            # of an average to the weights that are none.
            self.task.load_state_dict(read(best)["state_dict"])
        with _interruptible():
            self.trainer.test(self.task, self.data, verbose=False)

    def show(self) -> float:
        """Draws and prints the results, after which the processes part.

        Returns:
            The best validation BLEU, not a number if none was kept.
        """
        if self.trainer.is_global_zero:
            if (self.folder / "scores.json").is_file():
                draw_heatmaps(self.folder)
                print_summary(self.folder)
            else:
                print("no results: callbacks.results is null, or no batch was tested")
        end_together()
        score = getattr(self.trainer.checkpoint_callback, "best_model_score", None)
        return float("nan") if score is None else float(score)


@contextmanager
def _interruptible() -> Iterator[None]:
    """Gives back the KeyboardInterrupt of which Lightning makes the end of the program."""
    try:
        yield
    except SystemExit as end:
        if end.code == 1:
            raise KeyboardInterrupt from None
        raise


def assemble(config: DictConfig) -> Run:
    """Builds data, model and trainer.

    Raises:
        UserError: something in the config, the corpus or the checkpoint to resume does not fit.
    """
    quieten()
    keep_few_preparations()
    keep_freed_memory()
    forget_peak()
    folder = Path(HydraConfig.get().runtime.output_dir)
    check_settings(config)
    resume = checkpoint_to_resume(config.resume, folder)
    claim(folder)
    seed_everything(config.seed, workers=True, verbose=False)
    search = build_search(config)
    data = build_data(config)
    task = build_task(config, data, search)
    if resume is not None:
        check_same_model(resume, task.model, pack(task.recipe, data.tokenizers))
        check_same_run(resume.path, config)
        check_own_folder(resume.path, folder)
        forget_from(folder / "metrics.csv", resume.content["global_step"])
    callbacks = build_listed(config.callbacks)
    loggers = [_logger(logger, resume) for logger in config.logger.values() if logger is not None]
    trainer = build_trainer(config, callbacks, loggers)
    _check_processes(trainer)
    if in_sweep() and trainer.world_size > 1:
        raise ConfigError(
            f"a sweep trains in one process, found {trainer.world_size}: start each run by itself, as in `python train.py "
            "attention=none trainer=ddp run_dir=DIR/none`, then compare them with `seq2seq-compare DIR --out DIR/report`"
        )
    if trainer.is_global_zero:
        OmegaConf.save(config, folder / "config.yaml", resolve=True)
        counts = task.model.parameter_counts()
        print("parameters: " + ", ".join(f"{part} {count:,}" for part, count in counts.items()))
    return Run(folder, data, task, trainer, resume and resume.path)


def _check_processes(trainer: Trainer) -> None:
    """As many processes as were started from outside; Lightning looks later, or not at all where it has one device."""
    cure = (
        "set trainer=ddp or ddp_cpu, trainer.devices to the processes of one node, as in torchrun --nproc-per-node, and "
        "trainer.num_nodes to the number of nodes"
    )
    started = int(os.environ.get("WORLD_SIZE", 1)) if "TORCHELASTIC_RUN_ID" in os.environ else 1
    environment = getattr(trainer.strategy, "cluster_environment", None)
    if environment is None and started > 1:
        raise ConfigError(f"torchrun started {started} processes, and this trainer is for one alone: {cure}")
    if trainer.num_nodes > 1 and isinstance(environment, LightningEnvironment) and "NODE_RANK" not in os.environ:
        raise ConfigError(
            f"trainer.num_nodes={trainer.num_nodes} would wait for nodes that nobody starts: start this on each of them "
            "with torchrun, or as a SLURM job"
        )
    if environment is not None:
        try:
            environment.validate_settings(num_devices=trainer.num_devices, num_nodes=trainer.num_nodes)
        except ValueError as error:
            raise ConfigError(f"the processes are not as configured: {error}; {cure}") from error


def quieten() -> None:
    """Leaves out what the libraries say of themselves and a user can do nothing about."""
    # The loader takes a fraction of a step as long as it runs in the main process; batches are planned, not collated.
    warnings.filterwarnings("ignore", message=".*does not have many workers.*")
    # That a resumed run finds its own checkpoints is no news.
    warnings.filterwarnings("ignore", message="Checkpoint directory .* exists and is not empty")
    # Each of them is a metric that brings the ranks together by itself.
    warnings.filterwarnings("ignore", message="It is recommended to use `self.log.*sync_dist=True")
    # Between versions of Lightning and torch.
    warnings.filterwarnings("ignore", message=".*LeafSpec.* is deprecated")
    # Devices found, tips, what is loaded next; warnings still come through.
    for name in ("lightning.pytorch.utilities.rank_zero", "lightning.fabric.utilities.distributed"):
        logging.getLogger(name).setLevel(logging.WARNING)
    logging.getLogger("lightning.pytorch").propagate = False


def _logger(settings: DictConfig, resume: Resumed | None) -> Logger:
    # TensorBoard shows no point twice if it is told from where on a training is told anew.
    anew = resume is not None and settings["_target_"].endswith("TensorBoardLogger")
    return instantiate(settings, purge_step=resume.content["global_step"]) if anew else instantiate(settings)


def build_trainer(config: DictConfig, callbacks: list[Callback], loggers: list[Logger], **settings: Any) -> Trainer:
    """Lightning's, with what Lightning says of its settings as a message for the user.

    Args:
        config: of the run.
        callbacks, loggers: built from it.
        settings: in place of the trainer's own.

    Raises:
        ConfigError: the trainer cannot be built as configured.
    """
    try:
        return instantiate(
            config.trainer, callbacks=callbacks, logger=loggers, plugins=[WholeCheckpoints()], **settings
        )
    except InstantiationException as error:
        # What Lightning says of devices, precision and the like is meant for the user.
        if isinstance(error.__cause__, MisconfigurationException | ValueError | TypeError):
            raise ConfigError(
                f"the trainer cannot be built as configured: {error.__cause__}. Use trainer=cpu, or change trainer.*"
            ) from error
        raise
