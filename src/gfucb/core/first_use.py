"""Packages whose public names are imported at first use."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any


def imported_at_first_use(
    package: str, defined_in: Mapping[str, Iterable[str]]
) -> Callable[[str], Any]:
    """The `__getattr__` of a package: its modules can be imported without all others.

    Args:
        package: the name of the package.
        defined_in: its public names, by the module that defines them.
    """
    module_of = {name: module for module, names in defined_in.items() for name in names}

    def attribute(name: str) -> Any:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(f"{package}.{module_of[name]}"), name)
        setattr(sys.modules[package], name, value)  # the next use does not come here
        return value

    return attribute
