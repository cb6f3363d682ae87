"""Trains a translation model, tests its best weights and prints the result: `python train.py attention=scaled`.

`python train.py --help` lists what can be set.
"""

from pathlib import Path

from omegaconf import DictConfig

from seq2seq.cli.entry import entry


@entry(Path(__file__).parent / "conf", "train")
def train(config: DictConfig) -> float:
    """One run. Returns the best validation BLEU, what a sweep maximises."""
    # Imported here, so that --help and errors in the command line do not wait for torch.
    from seq2seq.cli.run import assemble

    run = assemble(config)
    run.fit()
    run.test()
    return run.show()


if __name__ == "__main__":
    train()
