"""One callback of a trainer, for another that needs what it knows."""

from typing import TypeVar

from lightning import Callback, Trainer

Kind = TypeVar("Kind", bound=Callback)


def callback_of(trainer: Trainer, kind: type[Kind]) -> Kind | None:
    """The trainer's first callback of this kind; None if it has none."""
    return next((callback for callback in trainer.callbacks if isinstance(callback, kind)), None)
