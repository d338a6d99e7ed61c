"""Every entry of the error catalogue by its code, for `polynya explain` and the documentation."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType
from typing import Any, Final

from polynya.model import error_catalogue
from polynya.model.error_catalogue.entry import ErrorEntry


def _modules() -> Iterator[ModuleType]:
    """The modules of this package that hold entries, in the order of their names."""
    for module in iter_modules(error_catalogue.__path__):
        if module.name not in {"codes", "entry"}:
            yield import_module(f"{error_catalogue.__name__}.{module.name}")


MODULES: Final = tuple(_modules())


ALL: Final[tuple[ErrorEntry[Any], ...]] = tuple(
    value for module in MODULES for value in vars(module).values() if isinstance(value, ErrorEntry)
)
ERROR_PAGES: Final = {entry.code: entry for entry in ALL}
