"""Short digests of values, the same in every process.

They identify representations and settings, so that a saved agent is restored into its own. A digest
covers what determines a function: types, plain attributes, tensors and weights. A module-level
function is identified by its qualified name alone, so that a new Python version does not change it.
A lambda or a local function has no unique name; its digest also covers its bytecode, which can
differ between Python versions. Default arguments and closures always count.
"""

from __future__ import annotations

import functools
import hashlib
import types
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

DIGEST_BYTES = 8
# Attributes of a module that torch manages, or that do not change the function it computes.
_MODULE_INTERNALS = frozenset({"training", *vars(nn.Module())})


def digest_of(value: Any) -> str:
    """A hexadecimal digest of `value`, the same in every process."""
    hasher = hashlib.blake2b(digest_size=DIGEST_BYTES)
    for part in _parts(value, ()):
        # With its length, so that ("ab", "c") and ("a", "bc") differ.
        hasher.update(len(part).to_bytes(8, "big") + part)
    return hasher.hexdigest()


def _parts(value: Any, parents: tuple[int, ...]) -> Iterator[bytes]:
    """The bytes that identify `value`; `parents` are the objects it was reached through."""
    if id(value) in parents:
        yield b"cycle"
        return
    below = (*parents, id(value))
    if value is None or isinstance(value, bool | int | float | complex | str | bytes):
        yield f"{type(value).__name__} {value!r}".encode()
    elif isinstance(value, Tensor):
        # A clone, because a contiguous tensor of one row may have strides of 0.
        tensor = value.detach().cpu().clone(memory_format=torch.contiguous_format)
        yield from _array_parts(tensor)
    elif isinstance(value, np.ndarray):
        yield f"{value.dtype} {value.shape}".encode()
        yield np.ascontiguousarray(value).tobytes()
    elif isinstance(value, nn.Module):
        yield from _module_parts(value, below)
    elif isinstance(value, Mapping):
        yield b"mapping"
        for key in sorted(value, key=repr):
            yield from _parts((key, value[key]), below)
    elif isinstance(value, set | frozenset):
        yield b"set"
        yield from sorted(b"".join(_parts(item, below)) for item in value)
    elif isinstance(value, list | tuple):
        yield f"sequence {len(value)}".encode()
        for item in value:
            yield from _parts(item, below)
    elif isinstance(value, type):
        yield _qualified_name(value).encode()
    else:
        yield from _callable_parts(value, below)


def _callable_parts(value: Any, below: tuple[int, ...]) -> Iterator[bytes]:
    if isinstance(value, types.FunctionType):
        yield from _function_parts(value, below)
    elif isinstance(value, functools.partial):
        yield from _parts(("partial", value.func, value.args, value.keywords), below)
    elif isinstance(value, types.MethodType):
        yield from _parts(("method", value.__func__, value.__self__), below)
    elif isinstance(value, types.BuiltinFunctionType):
        yield _qualified_name(value).encode()
    elif isinstance(value, types.CodeType):
        yield value.co_code
        yield from _parts((value.co_consts, value.co_names), below)
    else:
        yield _qualified_name(type(value)).encode()
        yield from _parts(dict(_attributes(value)), below)


def _array_parts(tensor: Tensor) -> Iterator[bytes]:
    yield f"{tensor.dtype} {tuple(tensor.shape)}".encode()
    # Through bytes: numpy does not have every dtype of torch.
    yield tensor.flatten().view(torch.uint8).numpy().tobytes() if tensor.numel() else b""


def _module_parts(module: nn.Module, below: tuple[int, ...]) -> Iterator[bytes]:
    """The structure of a module, and its weights and persistent buffers."""
    for name, layer in module.named_modules():
        yield f"{name} {_qualified_name(type(layer))} {layer.extra_repr()}".encode()
        plain = {key: item for key, item in vars(layer).items() if key not in _MODULE_INTERNALS}
        yield from _parts(plain, below)
    yield from _parts(dict(module.state_dict()), below)


def _function_parts(function: types.FunctionType, below: tuple[int, ...]) -> Iterator[bytes]:
    yield _qualified_name(function).encode()
    if "<" in function.__qualname__:  # <lambda> or <locals>: the name is not unique
        yield from _parts(function.__code__, below)
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    yield from _parts((function.__defaults__, function.__kwdefaults__, cells), below)


def _attributes(value: Any) -> Iterator[tuple[str, Any]]:
    yield from getattr(value, "__dict__", {}).items()
    for kind in type(value).__mro__:
        for name in _slots_of(kind):
            if hasattr(value, name):
                yield name, getattr(value, name)


def _slots_of(kind: type) -> Iterable[str]:
    slots = vars(kind).get("__slots__", ())
    names = (slots,) if isinstance(slots, str) else slots
    return [name for name in names if name not in ("__dict__", "__weakref__")]


def _qualified_name(thing: Any) -> str:
    return f"{getattr(thing, '__module__', '')}.{thing.__qualname__}"
