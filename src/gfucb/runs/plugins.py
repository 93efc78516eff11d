"""Modules that register components when they are imported: plugins, and those of this package.

A plugin is a user's Python file that registers agents, environments, fits, selectors or figures. It
is imported in the parent process and in every worker process.
"""

from __future__ import annotations

import importlib.util
import pkgutil
import sys
from collections.abc import Iterable
from pathlib import Path

from gfucb.core.errors import InvalidInputError

_loaded: dict[str, Path] = {}


def load_plugins(paths: Iterable[Path | str]) -> None:
    """Import each file once; what it defines registers itself."""
    for path in paths:
        _load(Path(path).resolve())


def import_submodules(package: str, path: Iterable[str], *, only_packages: bool = False) -> None:
    """Import the modules of a package, in the order of their names.

    Args:
        package: the name of the package.
        path: its `__path__`.
        only_packages: leave out the modules that are no packages.
    """
    for module in pkgutil.iter_modules(path):
        if module.ispkg or not only_packages:
            importlib.import_module(f"{package}.{module.name}")


def loaded_plugins() -> tuple[Path, ...]:
    """The files imported so far, for worker processes to import too."""
    return tuple(_loaded.values())


def _load(path: Path) -> None:
    # A fixed name: worker processes find the functions and classes of the plugin under it.
    name = f"gfucb_plugin_{path.stem}"
    if _loaded.get(name, path) != path:
        raise InvalidInputError(
            f"plugins {_loaded[name]} and {path} have the same file name; rename one of them"
        )
    if name in _loaded:
        return
    if not path.is_file():
        raise InvalidInputError(f"there is no plugin file {path}")
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise InvalidInputError(f"plugin {path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise InvalidInputError(
            f"plugin {path} cannot be imported: {type(error).__name__}: {error}"
        ) from error
    _loaded[name] = path
