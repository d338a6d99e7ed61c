"""Find tables in a catalog file as it was at one moment, for readers without a JVM.

PyIceberg has a catalog for such a file too, but its import takes a quarter of a second.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol

from typing_extensions import TypeVar, override

from polynya.lake.warehouse.catalogs import CatalogEntry

if TYPE_CHECKING:
    from pyiceberg.table import Table

#: What a catalog makes of a table that it finds: one of PyIceberg, or another reader of it.
Loaded = TypeVar("Loaded", default="Table")
_Loaded_co = TypeVar("_Loaded_co", default="Table", covariant=True)


class Tables(Protocol[_Loaded_co]):
    """The part of a PyIceberg catalog that finds tables."""

    @property
    def properties(self) -> Mapping[str, str]:
        """Properties of the catalog."""
        ...

    def load_table(self, identifier: tuple[str, str]) -> _Loaded_co:
        """The table of a namespace and a name. Raises NoSuchTableError."""
        ...


class ListedTables(Tables):
    """The tables among the entries of a catalog file."""

    def __init__(self, entries: Iterable[CatalogEntry]) -> None:
        self._places = metadata_files(entries)

    @property
    def properties(self) -> Mapping[str, str]:
        """None that a reader asks for."""
        return {}

    @override
    def load_table(self, identifier: tuple[str, str]) -> Table:
        return table_at(place_of(self._places, identifier))


def metadata_files(entries: Iterable[CatalogEntry]) -> dict[tuple[str, str], str]:
    """Where the metadata file of each table of a catalog is."""
    return {(entry.namespace, entry.name): entry.metadata for entry in entries if not entry.is_view}


def place_of(places: Mapping[tuple[str, str], str], identifier: tuple[str, str]) -> str:
    """Where the metadata file of one table is. Raises NoSuchTableError."""
    place = places.get(identifier)
    if place is None:
        # Start-up time: PyIceberg.
        from pyiceberg.exceptions import NoSuchTableError

        raise NoSuchTableError(f"no table is called {'.'.join(identifier)}")
    return place


@lru_cache(maxsize=32)
def table_at(place: str) -> Table:
    """The table of a metadata file, which never changes: a process may read it again and again."""
    # Start-up time: PyIceberg's tables.
    from pyiceberg.table import StaticTable

    return StaticTable.from_metadata(place)
