"""What a kind of database offers to a comparison: one moment of it, as hashes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Protocol

from polynya.gateway.compare.columns import ComparedColumn, Layout
from polynya.gateway.compare.ranges import Range, RowState


class Moment(Protocol):
    """One consistent view of a database: all that was committed before its position.

    Tables are named as `SourceTable.name` has them. `where` is a condition in the database's SQL,
    by which the capture chooses rows.
    """

    @property
    def position(self) -> str:
        """Its place in the stream, for people."""
        ...

    def is_reached(self, offset: Mapping[str, Any]) -> bool:
        """Whether a capture that landed as far as an offset has all that is in the view."""
        ...

    def columns(self, table: str) -> tuple[ComparedColumn, ...]:
        """Columns of a table as they are now."""
        ...

    def count(self, table: str, where: str | None) -> int:
        """Number of rows."""
        ...

    def ranges(self, table: str, layout: Layout, bits: int, where: str | None) -> dict[int, Range]:
        """Number of rows and sum of hashes of each range that has rows."""
        ...

    def rows(
        self, table: str, layout: Layout, bits: int, ranges: Collection[int], where: str | None
    ) -> dict[str, RowState]:
        """The rows of some ranges by the hash of their key."""
        ...

    def keys(
        self, table: str, layout: Layout, keys: Collection[str], where: str | None
    ) -> dict[str, RowState]:
        """The rows whose keys have one of the given hashes."""
        ...

    def close(self) -> None:
        """End it."""
        ...


class ComparedDatabase(Protocol):
    """A database whose moments can be compared. Raises what a `Database` raises."""

    def moment(self) -> Moment:
        """What is committed now."""
        ...
