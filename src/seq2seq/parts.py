"""Parts that wait for what another part knows."""

import inspect
from collections.abc import Mapping
from typing import Any

from seq2seq.errors import ConfigError
from seq2seq.types import Builder


def complete(builder: Builder, key: str, **told: object) -> Any:
    """Gives a part the sizes and the like that it waits for.

    Args:
        builder: the part, waiting.
        key: what a user calls it, such as ``attention``.
        told: sizes, and whatever else another part knows, by name.

    Raises:
        ConfigError: it does not take them, has some of them already, or cannot be built with them; names the key.
    """
    set_before = sorted(getattr(builder, "keywords", {}).keys() & told.keys())
    if set_before:
        raise ConfigError(f"{key}.{set_before[0]} is told by another part and cannot be set: leave it out")
    try:
        inspect.signature(builder).bind(**told)
    except TypeError as error:
        raise ConfigError(
            f"{key}._target_ must take {' and '.join(told)} and no more than its yaml gives: {error}"
        ) from error
    return built(builder, key, told)


def built(builder: Builder, key: str, arguments: Mapping[str, object]) -> Any:
    """Calls the builder.

    Raises:
        ConfigError: what it builds refuses the arguments; names the key.
    """
    try:
        return builder(**arguments)
    except (ValueError, TypeError) as error:
        # So torch says of a size of 0, and a class that is called wrongly, though it seems to take anything.
        if isinstance(error, TypeError) and "argument" not in str(error):
            raise
        raise ConfigError(f"{key} cannot be built: {error}") from error
