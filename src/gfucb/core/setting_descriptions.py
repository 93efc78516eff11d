"""Descriptions of settings: complete, stable texts that two processes can compare.

A saved agent stores the description of everything it was built with. Restoring compares the
descriptions, so an agent that was built differently is refused by the name of the setting.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import types
from collections.abc import Iterable, Mapping
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor, nn

from gfucb.core.digests import digest_of

SCALARS = (bool, int, float, complex, str, bytes, type(None), torch.dtype, torch.device)
# The setting that counts only for a state without data: any other state holds the weights.
INITIAL_WEIGHTS = "initial_weights"
# The description of self_supervision="auto". Earlier versions wrote what it stood for then.
SELF_SUPERVISION_AUTO, EARLIER_AUTO = "auto", " for images"
# Differences of long descriptions are shown with this many characters on either side.
EXCERPT = 60


@runtime_checkable
class HasInitialWeights(Protocol):
    """A class whose initial representation does not follow from its fingerprint and the seed."""

    def initial_weights(self) -> str:
        """Return a short string that differs between initial representations."""


def describe_setting(value: object) -> str:
    """All of `value` that matters, as a text without memory addresses.

    An object with a method `fingerprint` describes itself. Dataclasses are described by their
    fields, modules by their structure (not by their weights), arrays by a digest of their numbers,
    named functions by their name, lambdas and local functions by a digest of their code. Any other
    object is described by its own `repr`, or by the attributes that have the names of its
    constructor's arguments.

    >>> from gfucb import ConstantRadius
    >>> describe_setting((1, ConstantRadius(0.5)))
    '(1, ConstantRadius(value=0.5))'
    """
    return _describe(value, frozenset())


def describe_initial_weights(representation_class: object) -> str:
    """The initial weights of a class of representations, if it does not derive them from a seed."""
    if isinstance(representation_class, HasInitialWeights):
        return representation_class.initial_weights()
    return "from the seed"


def describe_module(module: nn.Module) -> str:
    """The structure of a module: layers with their options, and the shapes of its weights."""
    layers = [
        f"{name}: {type(layer).__qualname__}({_layer_options(layer)})"
        for name, layer in module.named_modules()
    ]
    weights = [
        f"{name}: {str(tensor.dtype).removeprefix('torch.')}{list(tensor.shape)}"
        for name, tensor in module.state_dict().items()
        if isinstance(tensor, Tensor)
    ]
    return " | ".join([*layers, *weights])


def find_difference(
    one: Mapping[str, str], other: Mapping[str, str]
) -> tuple[str, str, str] | None:
    """The first setting in which two descriptions differ: its name and both values.

    Long values are cut to the part that differs. A setting that is missing on one side
    differs. None if all settings are equal.
    """
    for name in [*one, *(name for name in other if name not in one)]:
        texts = (settings.get(name, "not stated") for settings in (one, other))
        first, second = (SELF_SUPERVISION_AUTO if _was_auto(name, t) else t for t in texts)
        if first != second:
            return name, *_excerpts(first, second)
    return None


def _was_auto(name: str, text: str) -> bool:
    return name == "self_supervision" and text.endswith(EARLIER_AUTO)


def _excerpts(one: str, other: str) -> tuple[str, str]:
    """Both texts, cut around the first character in which they differ."""
    pairs = enumerate(zip(one, other, strict=False))
    position = next((i for i, (a, b) in pairs if a != b), min(len(one), len(other)))
    return _excerpt(one, position), _excerpt(other, position)


def _excerpt(text: str, position: int) -> str:
    if len(text) <= 2 * EXCERPT:
        return text
    low, high = max(0, position - EXCERPT), position + EXCERPT
    return f"{'...' if low else ''}{text[low:high]}{'...' if high < len(text) else ''}"


def _describe(value: object, outer: frozenset[int]) -> str:
    """`describe_setting`; `outer` holds the objects that contain this one, against cycles."""
    if isinstance(value, SCALARS):
        return repr(value)
    if id(value) in outer:
        return f"<{type(value).__qualname__}>"
    outer = outer | {id(value)}
    if isinstance(value, type):
        return value.__qualname__
    if callable(fingerprint := getattr(value, "fingerprint", None)):
        return str(fingerprint())
    if isinstance(value, Tensor | np.ndarray):
        return _describe_array(value)
    if isinstance(value, nn.Module):
        return describe_module(value)
    if isinstance(value, dict | list | tuple | set | frozenset):
        return _describe_collection(value, outer)
    if dataclasses.is_dataclass(value):
        fields = (f.name for f in dataclasses.fields(value) if not f.name.startswith("_"))
        return f"{type(value).__qualname__}({_attributes(value, fields, outer)})"
    if isinstance(value, functools.partial):
        arguments = _describe((value.args, value.keywords), outer)
        return f"partial({_describe(value.func, outer)}, {arguments})"
    if callable(value) and hasattr(value, "__qualname__"):
        return _describe_function(value, outer)
    own = "" if type(value).__repr__ is object.__repr__ else repr(value)
    if own and " at 0x" not in own:
        return own
    return f"{type(value).__qualname__}({_constructor_arguments(value, outer)})"


def _describe_collection(
    value: dict[object, object] | Iterable[object], outer: frozenset[int]
) -> str:
    if isinstance(value, dict):
        pairs = (f"{_describe(k, outer)}: {_describe(v, outer)}" for k, v in value.items())
        return f"{{{', '.join(pairs)}}}"
    parts = [_describe(part, outer) for part in value]
    if isinstance(value, set | frozenset):
        return f"{{{', '.join(sorted(parts))}}}"
    return f"[{', '.join(parts)}]" if isinstance(value, list) else f"({', '.join(parts)})"


def _describe_array(value: Tensor | np.ndarray) -> str:
    tensor = torch.as_tensor(value)
    kind = f"{str(tensor.dtype).removeprefix('torch.')}{list(tensor.shape)}"
    return f"tensor({kind}, {digest_of(tensor)})"


def _describe_function(value: object, outer: frozenset[int]) -> str:
    """The name; for a function that cannot be imported also its code and the values it binds."""
    name: str = getattr(value, "__qualname__", type(value).__qualname__)
    code = getattr(value, "__code__", None)
    if isinstance(value, types.MethodType):
        return f"{_describe(value.__self__, outer)}.{value.__name__}"
    if code is None or "<" not in name:
        return name
    cells = (cell.cell_contents for cell in getattr(value, "__closure__", None) or ())
    # Mutable values, such as a list that counts calls, are no settings.
    bound = [
        _describe(v, outer)
        if isinstance(v, SCALARS) or callable(v) or dataclasses.is_dataclass(v)
        else type(v).__qualname__
        for v in cells
    ]
    defaults = _describe(getattr(value, "__defaults__", None), outer)
    return f"{name}({digest_of(code)}, {defaults}, [{', '.join(bound)}])"


def _layer_options(layer: nn.Module) -> str:
    """The `extra_repr` of a layer, and its public attributes that are numbers, texts or functions.

    Weights and layers are described by the module; `training` is no option.
    """
    own = layer.extra_repr()
    options = [
        f"{name}={_describe(value, frozenset())}"
        for name, value in vars(layer).items()
        if not name.startswith("_") and name != "training" and f"{name}=" not in own
        if isinstance(value, (*SCALARS, tuple)) or inspect.isroutine(value)
    ]
    return ", ".join([*([own] if own else []), *options])


def _constructor_arguments(value: object, outer: frozenset[int]) -> str:
    """Attributes that have the name of an argument of the constructor."""
    try:
        names = inspect.signature(type(value)).parameters
    except (TypeError, ValueError):
        return ""
    held = vars(value) if hasattr(value, "__dict__") else {}
    return _attributes(value, (name for name in names if name in held), outer)


def _attributes(value: object, names: Iterable[str], outer: frozenset[int]) -> str:
    return ", ".join(f"{name}={_describe(getattr(value, name), outer)}" for name in names)
