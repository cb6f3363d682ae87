"""What to print when something went wrong: a sentence for the user, or the traceback of a fault of the program."""

import errno
from collections.abc import Iterator

import yaml
from hydra.errors import HydraException, InstantiationException
from omegaconf.errors import OmegaConfBaseException

from seq2seq.errors import UserError

PLUGINS = {
    "hydra/sweeper/optuna": "optuna",
    "hydra/launcher/joblib": "joblib",
    "hydra/launcher/submitit_slurm": "slurm",
}
"""Config files that come with an extra, by the extra's name."""


def user_message(error: BaseException, composing: bool = False) -> str | None:
    """What to tell the user, or None if it is a fault of the program, which deserves its traceback.

    Args:
        error: what was raised.
        composing: while Hydra put the settings together, from nothing but what the user wrote.
    """
    if isinstance(error, KeyboardInterrupt):
        return "interrupted"
    chain = list(_causes(error))
    for cause in chain:
        if isinstance(cause, UserError):
            return str(cause)
    for cause in chain:
        if isinstance(cause, OSError) and cause.errno in (errno.ENOSPC, errno.EDQUOT):
            return f"the disk is full: {cause}; make room, or choose another run_dir and cache_dir"
    if isinstance(error, InstantiationException) and not _is_wrong_call(chain[1:]):
        return None
    if isinstance(error, HydraException | OmegaConfBaseException):
        texts = [str(cause) for cause in chain if isinstance(cause, HydraException | OmegaConfBaseException)]
        # Some come with their blanks not yet filled in, beside the same text with them filled.
        texts = [text for text in texts if "$VALUE" not in text] or texts
        message = "\n".join(
            text for place, text in enumerate(texts) if not any(text in earlier for earlier in texts[:place])
        )
        missing = [extra for file, extra in PLUGINS.items() if f"Could not find '{file}'" in message]
        cures = [f"needs an extra: pip install -c constraints.txt -e '.[{extra}]'" for extra in missing]
        return "\n".join([*cures, message])
    if composing and isinstance(error, yaml.YAMLError):
        return f"a config file is no YAML: {error}"
    if composing and isinstance(error, RuntimeError) and "srun" in str(error):
        return f"the launcher cannot start: {error}"
    if composing and isinstance(error, OSError):
        return f"the run folder cannot be made: {error}; choose another run_dir"
    if composing and isinstance(error, ValueError):
        return f"the settings do not fit together: {error}; a shelf takes one name, as in attention=NAME"
    return None


def _is_wrong_call(causes: list[BaseException]) -> bool:
    """True if Hydra could not build a part because it was named or called wrongly, not because it failed within."""
    return all(
        isinstance(cause, ImportError | HydraException | OmegaConfBaseException)
        or (isinstance(cause, TypeError) and "argument" in str(cause))
        for cause in causes
    )


def _causes(error: BaseException) -> Iterator[BaseException]:
    current: BaseException | None = error
    seen: set[int] = set()
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = current.__cause__ or current.__context__
