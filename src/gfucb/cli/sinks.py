"""Row sinks by name: `--sinks tensorboard=DIRECTORY mlflow=EXPERIMENT`."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from gfucb.core.errors import InvalidInputError

if TYPE_CHECKING:
    from gfucb.runs.row_sinks import RowSinks

# The class of each kind; its first argument is the text after "=". Imported when it is used.
KINDS = {
    "tensorboard": ("gfucb.adapters.tensorboard", "TensorBoardRows"),
    "mlflow": ("gfucb.adapters.mlflow", "MLflowRows"),
}


def row_sinks(words: Sequence[str]) -> list[RowSinks]:
    """The sinks that the command line names."""
    return [_sinks(word) for word in words]


def _sinks(word: str) -> RowSinks:
    kind, _, argument = word.partition("=")
    if kind not in KINDS or not argument:
        known = " or ".join(f"{name}=..." for name in KINDS)
        raise InvalidInputError(f"a sink is written as {known}, got {word!r}")
    module, name = KINDS[kind]
    try:
        found: RowSinks = getattr(importlib.import_module(module), name)(argument)
    except ModuleNotFoundError as error:
        raise InvalidInputError(str(error)) from error
    return found
