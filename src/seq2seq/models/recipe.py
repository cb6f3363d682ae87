"""Models from plain data: a recipe is a nest of dictionaries, strings and numbers, as a config or a checkpoint holds it.

``_target_`` names a class by its import path; ``_partial_: true`` leaves it waiting for the sizes that another part knows.
The form is Hydra's; building it here keeps models and checkpoints free of Hydra, lets errors name the key that is wrong,
and makes sure that a checkpoint from a stranger can name nothing but this package's parts.
"""

import functools
import importlib
import inspect
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from seq2seq.errors import ConfigError
from seq2seq.parts import built

TRUSTED = ("seq2seq.", "torch.nn.")
"""What a recipe from a checkpoint may name: import paths that begin so."""
PLACES = {("model", "encoder"): "encoder", ("model.decoder", "attention"): "attention"}
"""Parts that have a shelf of their own: where they stand in the nest, and the name that a user types."""
PLAIN = {int: "a whole number", float: "a number", bool: "true or false", str: "a word", type(None): "null"}


def trusting(packages: Sequence[str]) -> tuple[str, ...]:
    """``TRUSTED``, and whole packages that a user trusts as well."""
    return (*TRUSTED, *(f"{name}." for name in packages))


def build(recipe: object, trusted: Sequence[str] | None = None, key: str = "model", **sizes: object) -> Any:
    """Builds what a recipe describes.

    Args:
        recipe: a mapping with ``_target_``.
        trusted: beginnings of the import paths that may be named; all may if not given.
        key: what to call the recipe in errors.
        sizes: arguments of the outermost class that come from the data.

    Raises:
        ConfigError: a target is missing, cannot be imported or may not be named, or an argument does not fit; names the key.
    """
    if not isinstance(recipe, Mapping) or not isinstance(recipe.get("_target_"), str):
        raise ConfigError(f"{key} needs a _target_, the import path of the class to build; found {recipe!r}")
    target = _locate(recipe["_target_"], trusted, key)
    arguments: dict[str, object] = dict(sizes)
    for name, value in recipe.items():
        if name not in ("_target_", "_partial_"):
            nested = isinstance(value, Mapping) and "_target_" in value
            arguments[name] = build(value, trusted, _place(key, name)) if nested else value
    _check_names(target, arguments, sizes, key)
    _check_types(target, arguments, key)
    if recipe.get("_partial_") and not sizes:
        return functools.partial(target, **arguments)
    try:
        inspect.signature(target).bind(**arguments)
    except TypeError as error:
        raise ConfigError(
            f"{key} cannot be built: {error}. A part that waits for sizes of another part needs `_partial_: true`"
        ) from error
    return built(target, key, arguments)


def _place(key: str, name: str) -> str:
    return PLACES.get((key, name), f"{key}.{name}")


def _locate(path: str, trusted: Sequence[str] | None, key: str) -> Any:
    if trusted is not None and not path.startswith(tuple(trusted)):
        raise ConfigError(
            f"{key}._target_ may only name {' or '.join(f'{start}*' for start in trusted)}, found {path!r}. If that is a "
            f"package of your own, say that you trust it: --trust {path.split('.')[0]}, in Python load(path, trusted=[...])"
        )
    module_path, _, name = path.rpartition(".")
    try:
        target = getattr(importlib.import_module(module_path), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(f"{key}._target_ {path!r} cannot be imported: {error}") from error
    if not callable(target):
        raise ConfigError(f"{key}._target_ {path!r} is no class")
    # A module re-exports what it imports: "seq2seq.models.recipe.importlib" would be no part of this package.
    origin = f"{getattr(target, '__module__', '')}."
    if trusted is not None and not (inspect.isclass(target) and origin.startswith(tuple(trusted))):
        raise ConfigError(f"{key}._target_ {path!r} is no class of {' or '.join(trusted)}")
    return target


def _check_names(target: Any, arguments: Mapping[str, object], sizes: Mapping[str, object], key: str) -> None:
    parameters = inspect.signature(target).parameters
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        return
    for name in arguments:
        if name not in parameters:
            # What other parts tell it, now or later, is nothing that a user could set.
            settings = [
                parameter.name
                for parameter in parameters.values()
                if parameter.name not in sizes
                and (parameter.name in arguments or parameter.default is not parameter.empty)
            ]
            raise ConfigError(
                f"{key}.{name} is not known to {target.__qualname__}; it takes {', '.join(settings) or 'no setting'}"
            )


def _check_types(target: Any, arguments: Mapping[str, object], key: str) -> None:
    """Refuses a word for a number and the like, where the argument is annotated with nothing but plain types."""
    function = target.__init__ if inspect.isclass(target) else target
    try:
        hints = typing.get_type_hints(function)
    except (NameError, TypeError):
        # Annotations of others may not be importable; they then check for themselves.
        return
    for name, value in arguments.items():
        hint = hints.get(name)
        allowed = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
        if typing.get_origin(hint) is Callable and not callable(value):
            if isinstance(value, Mapping):
                raise ConfigError(
                    f"{_place(key, name)} needs a _target_, the import path of its class; found {value!r}"
                )
            raise ConfigError(
                f"{key}.{name} must be a part with a _target_, found {value!r}; to choose one by its name, write "
                f"{name}=NAME, or {name}@PLACE=NAME as in attention@encoder.attention=additive"
            )
        if set(allowed) <= PLAIN.keys() and not any(_is_a(value, kind) for kind in allowed):
            raise ConfigError(f"{key}.{name} must be {' or '.join(PLAIN[kind] for kind in allowed)}, found {value!r}")


def _is_a(value: object, kind: type) -> bool:
    if kind is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    return type(value) is kind
