"""Compare a table of a database with Current: ranges of keys, then rows, then proof."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import pyarrow as pa

from polynya.capture.compare.digest import (
    ComparedColumn,
    DigestLayout,
    SkippedColumn,
    digest_keys,
    digest_ranges,
    digest_rows,
    layout_of,
)
from polynya.capture.compare.ranges import (
    DifferingRow,
    Range,
    Ranges,
    Rows,
    RowState,
    affordable,
    bits_for,
    differing_rows,
    rounds_needed,
    unchanged,
    unlike,
)
from polynya.capture.source import Access
from polynya.model.error_catalogue.capture import DATABASE_TYPE_NOT_COMPARED
from polynya.model.types import DataType


class SourceMoment(Protocol):
    """One consistent view of a database: all that was committed before its position.

    Tables are named as `SourceTable.name` has them. `where` is a condition in the database's SQL,
    by which the capture chooses rows.
    """

    @property
    def position(self) -> str:
        """Its place in the stream, for messages."""
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

    def ranges(
        self, table: str, layout: DigestLayout, bits: int, where: str | None
    ) -> dict[int, Range]:
        """Number of rows and sum of hashes of each range that has rows."""
        ...

    def rows(
        self,
        table: str,
        layout: DigestLayout,
        bits: int,
        ranges: Collection[int],
        where: str | None,
    ) -> dict[str, RowState]:
        """The rows of some ranges by the hash of their key."""
        ...

    def keys(
        self, table: str, layout: DigestLayout, keys: Collection[str], where: str | None
    ) -> dict[str, RowState]:
        """The rows whose keys have one of the given hashes."""
        ...

    def close(self) -> None:
        """End it."""
        ...


class ComparedDatabase(Protocol):
    """A database whose moments can be compared. Raises what a `Database` raises."""

    def moment(self) -> SourceMoment:
        """What is committed now."""
        ...


#: Rows of differing ranges that are read at a time, as hashes.
_ROWS_AT_A_TIME: Final = 200_000
#: Differences after which no further ones are looked for.
MOST_DIFFERENCES: Final = 1_000
#: Moments at which a row that differs is looked at before it stays undecided.
_MOMENTS: Final = 4


class CurrentTable(Protocol):
    """The view Current of a dataset."""

    def columns(self) -> Mapping[str, DataType]:
        """Names and types of its columns."""
        ...

    def batches(self, columns: Sequence[str]) -> Iterable[pa.RecordBatch]:
        """Its rows as of the newest commit."""
        ...


@dataclass(frozen=True, slots=True)
class ComparedTable:
    """What is compared.

    Attributes:
        table: name at the source.
        view: `schema.view` of Current.
        key: primary key of the source.
        masked: columns that never leave the database as they are.
        where: condition in the database's SQL, by which the capture chooses rows.
    """

    table: str
    view: str
    key: tuple[str, ...]
    masked: frozenset[str] = frozenset()
    where: str | None = None


@dataclass(frozen=True, slots=True)
class ComparisonResult:
    """What a comparison found.

    Attributes:
        position: of the source; Current has at least what was committed before it.
        source_rows: at that position.
        current_rows: when Current was read.
        key: columns by which rows are told apart; () where whole rows are compared.
        differences: rows that really differ, in the order of their keys; at most about
            `MOST_DIFFERENCES`.
        undecided: keys of rows that changed whenever they were looked at.
        is_whole: no range that differs was left unread.
    """

    subject: ComparedTable
    position: str
    source_rows: int
    current_rows: int
    key: tuple[str, ...] = ()
    compared: tuple[str, ...] = ()
    left_out: tuple[SkippedColumn, ...] = ()
    differences: tuple[DifferingRow, ...] = ()
    undecided: tuple[str, ...] = ()
    is_whole: bool = True


@dataclass(slots=True)
class _Found:
    differences: dict[str, DifferingRow] = field(default_factory=dict)
    undecided: dict[str, str] = field(default_factory=dict)


class TableComparison:
    """A comparison of tables that have one first moment in common.

    `wait` returns when Current has all that was committed before a moment, or raises.
    """

    def __init__(
        self, database: ComparedDatabase, first: SourceMoment, wait: Callable[[SourceMoment], None]
    ) -> None:
        self._database, self._first, self._wait = database, first, wait

    def compare(self, subject: ComparedTable, current: CurrentTable) -> ComparisonResult:
        """Compare one table. Raises what the database and the reading of Current raise."""
        layout = layout_of(
            self._first.columns(subject.table),
            current.columns(),
            key=subject.key,
            masked=subject.masked,
        )
        table = _Table(self._first, subject, layout, current)
        bits = bits_for(self._first.count(subject.table, subject.where))
        source, ours = table.source_ranges(bits), table.current_ranges(bits)
        differing = unlike(source, ours)
        found, rest = self._look(table, bits, differing, source, ours)
        return ComparisonResult(
            subject,
            self._first.position,
            _rows(source),
            _rows(ours),
            key=layout.key,
            compared=tuple(name for name, _ in layout.columns),
            left_out=layout.left_out,
            differences=tuple(
                sorted(found.differences.values(), key=lambda difference: difference.key)
            ),
            undecided=tuple(sorted(found.undecided.values())),
            is_whole=not rest,
        )

    def _look(
        self, table: _Table, bits: int, differing: list[int], source: Ranges, ours: Ranges
    ) -> tuple[_Found, list[int]]:
        """Look into ranges that differ, some at a time; what was found, and what is left."""
        found = _Found()
        rest = differing
        while rest and len(found.differences) < MOST_DIFFERENCES:
            chosen = affordable(rest, source, ours, _ROWS_AT_A_TIME)
            rest = rest[len(chosen) :]
            self._settle(table, bits, chosen, found)
        return found, rest

    def _settle(self, table: _Table, bits: int, ranges: list[int], found: _Found) -> None:
        """Find the rows of some ranges that differ, and prove that they really do."""
        before = table.source_rows(bits, ranges)
        suspects = differing_rows(before, table.current_rows(bits, ranges))
        seen = dict.fromkeys(suspects, 0)
        moment = self._first
        try:
            for _ in range(_MOMENTS):
                if not suspects:
                    return
                moment = self._next(moment)
                after = table.at(moment).source_keys(suspects)
                for key in unchanged(suspects, before, after):
                    seen[key] += 1
                    if seen[key] >= rounds_needed(before.get(key)):
                        found.differences[key] = suspects.pop(key)
                self._wait(moment)
                ours = table.current_keys(suspects)
                left = {key: row for key, row in after.items() if key in suspects}
                before, suspects = left, differing_rows(left, ours)
            found.undecided |= {key: difference.key for key, difference in suspects.items()}
        finally:
            if moment is not self._first:
                moment.close()

    def _next(self, moment: SourceMoment) -> SourceMoment:
        if moment is not self._first:
            moment.close()
        return self._database.moment()


@dataclass(frozen=True, slots=True)
class _Table:
    """Both sides of one table, the source at one moment."""

    moment: SourceMoment
    subject: ComparedTable
    layout: DigestLayout
    current: CurrentTable

    def at(self, moment: SourceMoment) -> _Table:
        return _Table(moment, self.subject, self.layout, self.current)

    def source_ranges(self, bits: int) -> Ranges:
        return self.moment.ranges(self.subject.table, self.layout, bits, self.subject.where)

    def source_rows(self, bits: int, ranges: list[int]) -> Rows:
        return self.moment.rows(self.subject.table, self.layout, bits, ranges, self.subject.where)

    def source_keys(self, keys: Iterable[str]) -> Rows:
        return self.moment.keys(self.subject.table, self.layout, set(keys), self.subject.where)

    def current_ranges(self, bits: int) -> Ranges:
        return digest_ranges(self._batches(), self.layout, bits)

    def current_rows(self, bits: int, ranges: list[int]) -> Rows:
        return digest_rows(self._batches(), self.layout, bits, ranges)

    def current_keys(self, keys: Iterable[str]) -> Rows:
        wanted = set(keys)
        return digest_keys(self._batches(), self.layout, wanted) if wanted else {}

    def _batches(self) -> Iterable[pa.RecordBatch]:
        names = [name for name, _ in self.layout.columns]
        return self.current.batches(names or list(self.current.columns())[:1])


def _rows(ranges: Ranges) -> int:
    return sum(range_.rows for range_ in ranges.values())


def compared_database(access: Access) -> ComparedDatabase:
    """The database that an access leads to; nothing is connected yet.

    Raises:
        OperationError: POLYNYA-GTW-090, its tables cannot be compared.
    """
    if access.type == "postgresql":
        # Start-up time: its driver.
        from polynya.capture.compare.postgresql import ComparedPostgres

        return ComparedPostgres(access)
    if access.type in ("mariadb", "mysql"):
        from polynya.capture.compare.mysql import ComparedMysql

        return ComparedMysql(access)
    raise DATABASE_TYPE_NOT_COMPARED(where=access.task, type=access.type)
