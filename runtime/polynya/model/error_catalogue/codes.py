"""Every entry of the error catalogue by its code, for `polynya explain` and the documentation."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import Any, Final

from polynya.model.error_catalogue import (
    capture,
    cluster,
    configuration,
    lake,
    machine,
    operation,
    stream_sources,
    streams,
    warehouse,
)
from polynya.model.error_catalogue.entry import ErrorEntry, ErrorPage

MODULES: Final = (
    capture,
    cluster,
    configuration,
    lake,
    machine,
    operation,
    stream_sources,
    streams,
    warehouse,
)


def _entries(module: ModuleType) -> Iterator[ErrorEntry[Any] | ErrorPage]:
    for value in vars(module).values():
        if isinstance(value, ErrorEntry):
            yield value
        elif isinstance(value, tuple):
            yield from (page for page in value if isinstance(page, ErrorPage))


ALL: Final = tuple(entry for module in MODULES for entry in _entries(module))
ERROR_PAGES: Final = {entry.code: entry for entry in ALL}
