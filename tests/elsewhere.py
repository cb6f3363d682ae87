"""A pretended accelerator: tensors that are on a device of their own, and an error for whoever mixes them with others.

It computes on the CPU. What it shows is where tensors are and how often a program waits for the device, not how fast it is.
It registers itself with torch for good: use it in a process of its own.
"""

from collections import Counter
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.utils import backend_registration
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

from seq2seq.decoding.greedy import Search
from seq2seq.types import Hypothesis
from tests.tiny import padded, tiny_model

REGISTER = "_setup_privateuseone_for_python_backend"
IS_POSSIBLE = hasattr(backend_registration, REGISTER)
DEVICE = torch.device("privateuseone", 0)
WAITS = ("aten::_local_scalar_dense", "aten::nonzero", "aten::equal", "aten::masked_select")
"""What asks the device for numbers although its result stays there."""


def searched(search: Search, rows: list[list[int]], with_weights: bool) -> tuple[list[Hypothesis], Counter[str]]:
    """What a search finds with a tiny model on the device, and how often which operator waited for it."""
    device = _Elsewhere()
    with device:
        model = device.put(tiny_model(seed=5))
        source = padded(rows).to(DEVICE)
        device.waits.clear()
        return search(model, source, with_weights), device.waits


class _There(Tensor):
    """A tensor on the device."""

    values: Tensor

    @staticmethod
    def __new__(cls, values: Tensor) -> "_There":
        there = Tensor._make_wrapper_subclass(
            cls, values.shape, values.stride(), values.storage_offset(), dtype=values.dtype, device=DEVICE
        )
        there.values = values
        return there

    def tolist(self) -> list:
        return self.cpu().tolist()

    @classmethod
    def __torch_dispatch__(cls, operator: Any, types: Any, arguments: Any = (), settings: Any = None) -> Any:
        raise AssertionError(f"{operator} outside of the device's mode")


class _Elsewhere(TorchDispatchMode):
    """The device while it is in use."""

    def __init__(self) -> None:
        super().__init__()
        self.waits: Counter[str] = Counter()
        _register()

    def put(self, module: torch.nn.Module) -> torch.nn.Module:
        """Moves a module to the device."""
        torch.__future__.set_overwrite_module_params_on_conversion(True)
        return module.to(DEVICE)

    def __torch_dispatch__(self, operator: Any, types: Any, arguments: Any = (), settings: Any = None) -> Any:
        name, settings = operator.name().split(".")[0], dict(settings or {})
        given, _ = tree_flatten((arguments, settings))
        tensors = [each for each in given if isinstance(each, Tensor)]
        there = [each for each in tensors if isinstance(each, _There)]
        devices = [each for each in given if isinstance(each, torch.device)]
        goes = devices[0].type == DEVICE.type if devices else bool(there)
        if name == "aten::copy_":
            goes = isinstance(arguments[0], _There)
        elif there and not all(isinstance(each, _There) or not each.ndim for each in tensors):
            raise AssertionError(f"{name}: of {len(tensors)} tensors {len(there)} are on the device")
        masked = name in ("aten::index", "aten::index_put_") and any(each.dtype == torch.bool for each in tensors[1:])
        if there and (not goes or masked or name in WAITS):
            self.waits[name] += 1

        def bare(each: Any) -> Any:
            if isinstance(each, torch.device):
                return torch.device("cpu")
            return each.values if isinstance(each, _There) else each

        moved, named = tree_map(bare, (arguments, settings))
        found = operator(*moved, **named)
        # What is changed in place stays the same object.
        known = {id(each.values): each for each in there}

        def back(each: Any) -> Any:
            if not isinstance(each, Tensor):
                return each
            return known[id(each)] if id(each) in known else _There(each)

        return tree_map(back, found) if goes else found


@cache
def _register() -> torch.library.Library:
    getattr(backend_registration, REGISTER)()
    library = torch.library.Library("aten", "IMPL")
    # Where torch assigns a number to a part of a tensor, it passes by all that intercepts operators.
    for name, kernel in (("empty_strided", _empty), ("fill_.Scalar", _fill), ("_copy_from", _copy)):
        library.impl(name, kernel, "PrivateUse1")
    return library


def _empty(size: list[int], stride: list[int], dtype: torch.dtype | None = None, **_: Any) -> _There:
    return _There(torch.empty_strided(size, stride, dtype=dtype))


def _fill(there: _There, value: float) -> _There:
    there.values.fill_(value)
    return there


def _copy(source: Tensor, target: Tensor, non_blocking: bool = False) -> Tensor:
    one, other = (each.values if isinstance(each, _There) else each for each in (source, target))
    other.copy_(one)
    return target
