"""Help texts of settings: their docstrings, without the line breaks of the source.

tyro keeps the line breaks of a field docstring whose lines are indented. It prefers the text in
the metadata of a field, so the reflowed text is stored there.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import textwrap
from functools import cache
from itertools import pairwise
from types import MappingProxyType
from typing import Any


def reflow_help(settings: Any) -> None:
    """Reflow the help of all fields of a dataclass value, and of the dataclasses in its fields."""
    texts: dict[str, str] = {}
    for kind in reversed(type(settings).__mro__):
        texts |= _field_docstrings(kind)
    for field in dataclasses.fields(settings):
        if field.name in texts and "help" not in field.metadata:
            field.metadata = MappingProxyType({**field.metadata, "help": texts[field.name]})
        value = getattr(settings, field.name)
        if dataclasses.is_dataclass(value):
            reflow_help(value)


@cache
def _field_docstrings(kind: type[Any]) -> dict[str, str]:
    """The docstrings below the fields of a class, each in one line; none without a source file."""
    try:
        module = ast.parse(textwrap.dedent(inspect.getsource(kind)))
    except (OSError, TypeError, SyntaxError):
        return {}
    body = module.body[0].body if isinstance(module.body[0], ast.ClassDef) else []
    return {
        field.target.id: " ".join(text.value.value.split())
        for field, text in pairwise(body)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
        and isinstance(text.value.value, str)
    }
