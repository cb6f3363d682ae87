"""The settings of a run, read from its ``config.yaml``."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from seq2seq.errors import ConfigError

PLACES = r"(.*\.)?(run_dir|resume|cache_dir|dirpath|save_dir|folder|default_root_dir|path)"
"""A pattern of settings that say where a run reads and writes, which changes no result."""


def read_settings(path: Path) -> dict[str, str]:
    """Every value under its dotted name, as text; empty if the file is missing.

    Raises:
        ConfigError: it is half-written; the message starts with its name.
    """
    if not path.is_file():
        return {}
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path.name} is no readable YAML file ({' '.join(str(error).split())})") from error
    if not isinstance(content, dict):
        raise ConfigError(f"{path.name} holds no settings by name: half-written?")
    return flat(content)


def flat(content: Mapping[str, Any]) -> dict[str, str]:
    """Every value that holds no others under its dotted name, as text."""
    return dict(_leaves(content))


def _leaves(content: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for name, value in content.items():
        if isinstance(value, dict):
            yield from _leaves(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", _text(value)


def _text(value: Any) -> str:
    """As one would type it."""
    if isinstance(value, list):
        return f"[{','.join(map(_text, value))}]"
    if isinstance(value, bool):
        return str(value).lower()
    return "null" if value is None else str(value)
