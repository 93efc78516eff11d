"""Modules that register components when they are imported: plugins, and those of this package.

A plugin is a user's Python file that registers agents, environments, fits, selectors or figures. It
is imported in the parent process and in every worker process. Workers on other machines get its
text.
"""

from __future__ import annotations

import importlib.util
import pkgutil
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from gfucb.core.errors import InvalidInputError
from gfucb.core.text_digest import text_digest

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


def loaded_modules() -> list[str]:
    """The names of the modules that plugins became."""
    return list(_loaded)


def plugin_versions(modules: Iterable[str]) -> dict[str, str]:
    """The plugins among some modules, with a digest of the text of each."""
    files = {_loaded[name] for name in modules if name in _loaded and _loaded[name].is_file()}
    return {path.name: text_digest(path.read_text("utf-8")) for path in sorted(files)}


@dataclass(frozen=True)
class PluginSource:
    """A plugin for a process that may not see its file."""

    path: Path
    text: str

    def run(self, module: ModuleType) -> None:
        """Define what the plugin defines in `module`."""
        code = compile(self.text, str(self.path), "exec", dont_inherit=True)
        exec(code, module.__dict__)


def plugin_sources() -> tuple[PluginSource, ...]:
    """The plugins imported so far, as text."""
    return tuple(PluginSource(path, path.read_text("utf-8")) for path in _loaded.values())


def load_plugin_sources(sources: Iterable[PluginSource]) -> None:
    """Import each once, from its text. A module knows the path of its file elsewhere."""
    for source in sources:
        name = _module_name(source.path)
        if _is_new(name, source.path):
            module = ModuleType(name)
            module.__file__ = str(source.path)
            _execute(module, source.path, source.run)


def _load(path: Path) -> None:
    name = _module_name(path)
    if not _is_new(name, path):
        return
    if not path.is_file():
        raise InvalidInputError(f"there is no plugin file {path}")
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise InvalidInputError(f"plugin {path} is not a Python file")
    _execute(importlib.util.module_from_spec(spec), path, spec.loader.exec_module)


def _module_name(path: Path) -> str:
    # A fixed name: worker processes find the functions and classes of the plugin under it.
    return f"gfucb_plugin_{path.stem}"


def _is_new(name: str, path: Path) -> bool:
    if _loaded.get(name, path) != path:
        raise InvalidInputError(
            f"plugins {_loaded[name]} and {path} have the same file name; rename one of them"
        )
    return name not in _loaded


def _execute(module: ModuleType, path: Path, execute: Callable[[ModuleType], None]) -> None:
    name = module.__name__
    sys.modules[name] = module
    try:
        execute(module)
    except Exception as error:
        del sys.modules[name]
        raise InvalidInputError(
            f"plugin {path} cannot be imported: {type(error).__name__}: {error}"
        ) from error
    _loaded[name] = path
