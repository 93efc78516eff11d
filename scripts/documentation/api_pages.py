"""Pages of the API: one for each public name, one for each package, from docstrings."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from types import ModuleType

import gfucb

# Modules whose names are imported from them, besides the packages.
MODULES = (
    "gfucb.core.protocols",
    "gfucb.core.records",
    "gfucb.core.action_sets",
    "gfucb.core.environment_facts",
    "gfucb.core.errors",
    "gfucb.core.random",
)
# Commands and figures: the command line is their reference.
WITHOUT_PAGE = {"gfucb.cli", "gfucb.paper"}


def api_pages() -> dict[str, str]:
    """The text of each page by its file name; a public name of `gfucb` has a page of its own."""
    pages = {f"gfucb.{name}.md": _name_page(name) for name in gfucb.__all__}
    # From an object to its page: each is described once, though several packages export it.
    described = {id(getattr(gfucb, name)): f"gfucb.{name}.md" for name in gfucb.__all__}
    packages = [
        f"gfucb.{module.name}"
        for module in pkgutil.iter_modules(gfucb.__path__)
        if module.ispkg and f"gfucb.{module.name}" not in WITHOUT_PAGE
    ]
    for name in [*MODULES, *packages]:
        module = importlib.import_module(name)
        if names := _names_of(module):
            pages[f"{name}.md"] = _module_page(module, names, described)
            for exported in names:
                described.setdefault(id(getattr(module, exported)), f"{name}.md")
    return pages


def link_names(text: str, pages: dict[str, str]) -> str:
    """Let the names in the first cells of the API page lead to their pages.

    Arguments are left out: they are on the pages, and would make the table wide.
    """

    def link(match: re.Match[str]) -> str:
        name = match.group(1)
        page = f"gfucb.{name}.md" if f"gfucb.{name}.md" in pages else f"{name}.md"
        return f"| [`{name}`](api/{page})" if page in pages else match.group()

    return re.sub(r"^\| `([A-Za-z_.]+)[^`]*`(?= \|)", link, text, flags=re.MULTILINE)


def _names_of(module: ModuleType) -> list[str]:
    """What a package exports, or what a module defines."""
    if hasattr(module, "__all__"):
        return [n for n in module.__all__ if _has_docstring(getattr(module, n))]
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and getattr(value, "__module__", None) == module.__name__
        and _has_docstring(value)
    ]


def _has_docstring(value: object) -> bool:
    return (inspect.isclass(value) or inspect.isroutine(value)) and bool(value.__doc__)


def _name_page(name: str) -> str:
    return f"# {name}\n\n" + _directive("gfucb", name, getattr(gfucb, name))


def _module_page(module: ModuleType, names: list[str], described: dict[int, str]) -> str:
    """All names of a module, with links to those that another page describes."""
    summary = " ".join((module.__doc__ or "").split("\n\n")[0].split())
    parts = [f"# {module.__name__}\n\n{summary}\n"]
    elsewhere = {n: described[id(v)] for n in names if id(v := getattr(module, n)) in described}
    if elsewhere:
        links = ", ".join(f"[`{name}`]({page})" for name, page in elsewhere.items())
        parts.append(f"Described on other pages: {links}.\n")
    for name in names:
        if name not in elsewhere:
            value = getattr(module, name)
            parts.append(f"## {name}\n\n" + _directive(module.__name__, name, value))
    return "\n".join(parts)


def _directive(module: str, name: str, value: object) -> str:
    if not inspect.isclass(value):
        body = [f".. autofunction:: {module}.{name}"]
    elif issubclass(value, BaseException):
        body = [f".. autoexception:: {module}.{name}", "   :show-inheritance:"]
    else:
        foreign = {c.__name__ for c in value.__mro__ if not c.__module__.startswith("gfucb")}
        body = [f".. autoclass:: {module}.{name}", "   :members:"]
        body.append(f"   :inherited-members: {', '.join(sorted(foreign))}")
    return "\n".join(["```{eval-rst}", *body, "```", ""])
