"""Find tables in a catalog file as it was at one moment, for readers without a JVM.

PyIceberg has a catalog for such a file too, but its import takes a quarter of a second.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Protocol

from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.table import StaticTable, Table
from typing_extensions import override

from polynya.lake.warehouse.catalogs import CatalogEntry


class Tables(Protocol):
    """The part of a PyIceberg catalog that finds tables."""

    @property
    def properties(self) -> Mapping[str, str]:
        """Properties of the catalog."""
        ...

    def load_table(self, identifier: tuple[str, str]) -> Table:
        """The table of a namespace and a name. Raises NoSuchTableError."""
        ...


class ListedTables(Tables):
    """The tables among the entries of a catalog file."""

    def __init__(self, entries: Iterable[CatalogEntry]) -> None:
        self._places = {
            (entry.namespace, entry.name): entry.metadata for entry in entries if not entry.is_view
        }

    @property
    def properties(self) -> Mapping[str, str]:
        """None that a reader asks for."""
        return {}

    @override
    def load_table(self, identifier: tuple[str, str]) -> Table:
        place = self._places.get(identifier)
        if place is None:
            raise NoSuchTableError(f"no table is called {'.'.join(identifier)}")
        return _table_at(place)


@lru_cache(maxsize=32)
def _table_at(place: str) -> Table:
    """The table of a metadata file, which never changes: a process may read it again and again."""
    return StaticTable.from_metadata(place)
