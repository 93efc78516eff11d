"""Packages that only some methods need: imported when such a method is called."""

from __future__ import annotations

import importlib
from typing import Any


def optional_package(name: str, what: str, extra: str = "experiments") -> Any:
    """The module `name`; without it an error says that `what` needs it, and how to install it."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"{what} needs {error.name}: pip install 'gfucb[{extra}]'", name=error.name
        ) from error
