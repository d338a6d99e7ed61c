"""Tables in the catalog of a MariaDB or MySQL server, and what cannot be captured of them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from polynya.capture.inexact import of_mysql
from polynya.capture.mysql.session import MysqlSession, literal
from polynya.capture.mysql.types import Coding, ColumnDefinition, coding_of
from polynya.capture.source import ROW_NUMBER, Access, SourceColumn, SourceTable
from polynya.capture.wire import TableError
from polynya.model.error_catalogue.capture_databases import MYSQL_NOT_CAPTURED
from polynya.model.errors import OperationError
from polynya.model.patterns import any_text

_SYSTEM: Final = ("mysql", "information_schema", "performance_schema", "sys")


@dataclass(frozen=True, slots=True)
class MysqlColumn:
    """A column with its coding; None: of a type that cannot be captured.

    `fills`: when it was added, rows that were there got a value, of which the stream says nothing.
    """

    facts: ColumnDefinition
    coding: Coding | None = field(compare=False)
    fills: bool = False


@dataclass(frozen=True, slots=True)
class MysqlTable:
    """A table of a database, as the catalog has it.

    Attributes:
        key: its primary key, else its first unique index without NULL, else ().
        engine: `InnoDB` or another one; only some can be read as they were at one moment.
        is_versioned: keeps the rows of the past itself (system versioning).
        is_view: has no changes of its own.
    """

    database: str
    name: str
    columns: tuple[MysqlColumn, ...]
    key: tuple[str, ...]
    engine: str
    is_versioned: bool
    rows: int | None
    size: int | None
    is_view: bool = False

    @property
    def full_name(self) -> str:
        """As it is called in landed events."""
        return f"{self.database}.{self.name}"

    @property
    def captured(self) -> tuple[tuple[ColumnDefinition, Coding], ...]:
        """The columns that are captured."""
        return tuple(
            (column.facts, column.coding) for column in self.columns if column.coding is not None
        )

    def with_key(self, columns: Sequence[str]) -> MysqlTable:
        """With these columns as its key where it has none, if it has them."""
        known = {facts.name for facts, _ in self.captured}
        if self.key or not columns or not known.issuperset(columns):
            return self
        return replace(self, key=tuple(columns))

    def source_table(self) -> SourceTable:
        """The same as all kinds of databases say it."""
        columns = tuple(
            SourceColumn(
                facts.name, facts.plain, facts.nullable, field_schema(facts, coding),
                of_mysql(facts.type, facts.charset),
            )
            for facts, coding in self.captured
        )  # fmt: skip
        # The server numbers no columns: one that fills is new when there are more of them.
        filling = sum(column.fills for column in self.columns)
        return SourceTable(
            self.full_name, columns, self.key, self.rows, self.size,
            columns_made=filling, columns_filled=filling,
        )  # fmt: skip


def field_schema(facts: ColumnDefinition, coding: Coding) -> dict[str, object]:
    """The Connect schema of a field of rows."""
    return {**coding.connect, "optional": facts.nullable, "field": facts.name}


def read_tables(session: MysqlSession, only: str | None = None) -> dict[str, MysqlTable]:
    """Tables and views that the user may read, by full name, without those of the server."""
    these = _NOT_SYSTEM if only is None else _only(only)
    columns, keys = _columns(session, these), _keys(session, these)
    tables = {}
    for database, name, kind, engine, rows, size in session.rows(
        "SELECT TABLE_SCHEMA, TABLE_NAME, TABLE_TYPE, ENGINE, TABLE_ROWS, DATA_LENGTH"
        f" FROM information_schema.TABLES WHERE {these}"
        " AND TABLE_TYPE IN ('BASE TABLE', 'SYSTEM VERSIONED', 'VIEW') ORDER BY 1, 2",
        "listing the tables",
    ):
        table = MysqlTable(
            _text(database), _text(name), tuple(columns[database, name]),
            keys.get((_text(database), _text(name)), ()), engine or "", kind == "SYSTEM VERSIONED",
            int(rows) if rows else None, int(size) if size else None, is_view=kind == "VIEW",
        )  # fmt: skip
        tables[table.full_name] = table
    return tables


def matching(names: Iterable[str], include: Sequence[str], exclude: Sequence[str]) -> list[str]:
    """The names that patterns choose, in their order; `%` and `*` are any text."""
    wanted, unwanted = (_compiled(patterns) for patterns in (include, exclude))
    return [name for name in names if wanted.fullmatch(name) and not unwanted.fullmatch(name)]


def _compiled(patterns: Sequence[str]) -> re.Pattern[str]:
    parts = (any_text(pattern, "%*").pattern for pattern in patterns)
    return re.compile("|".join(f"(?:{part})" for part in parts) or "(?!)", re.DOTALL)


def _only(name: str) -> str:
    """The condition for one table; a dot may be in either name, so all places of it count."""
    cuts = [at for at, character in enumerate(name) if character == "."]
    pairs = [(literal(name[:at]), literal(name[at + 1 :])) for at in cuts]
    parts = [f"(TABLE_SCHEMA = {one} AND TABLE_NAME = {other})" for one, other in pairs]
    return " OR ".join(parts) if len(parts) == 1 else f"({' OR '.join(parts) or 'FALSE'})"


def _columns(
    session: MysqlSession, these: str
) -> dict[tuple[str | None, str | None], list[MysqlColumn]]:
    columns = defaultdict(list)
    for row in session.rows(
        "SELECT TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME, DATA_TYPE, COLUMN_TYPE, IS_NULLABLE,"
        " CHARACTER_SET_NAME, NUMERIC_PRECISION, NUMERIC_SCALE, DATETIME_PRECISION,"
        " IS_NULLABLE = 'NO' OR COALESCE(COLUMN_DEFAULT, 'NULL') != 'NULL'"
        " OR COALESCE(GENERATION_EXPRESSION, '') != '', COLLATION_NAME"
        f" FROM information_schema.COLUMNS WHERE {these} ORDER BY 1, 2, ORDINAL_POSITION",
        "listing the columns",
    ):
        precision, scale, fraction = (None if value is None else int(value) for value in row[7:10])
        facts = ColumnDefinition(
            _text(row[2]), _text(row[3]).lower(), _text(row[4]), row[5] == "YES", row[6],
            precision, scale, fraction, row[11],
        )  # fmt: skip
        columns[row[0], row[1]].append(MysqlColumn(facts, coding_of(facts), fills=row[10] == "1"))
    return columns


def _keys(session: MysqlSession, these: str) -> dict[tuple[str, str], tuple[str, ...]]:
    """What Debezium takes for the keys: the primary one, else the first that has no NULL."""
    indexes: dict[tuple[str, str], dict[str, list[tuple[str, bool]]]] = defaultdict(dict)
    for database, table, index, column, nullable in session.rows(
        "SELECT TABLE_SCHEMA, TABLE_NAME, INDEX_NAME, COLUMN_NAME, NULLABLE"
        f" FROM information_schema.STATISTICS WHERE NON_UNIQUE = 0 AND {these}"
        " ORDER BY 1, 2, INDEX_NAME != 'PRIMARY', INDEX_NAME, SEQ_IN_INDEX",
        "listing the keys",
    ):
        parts = indexes[_text(database), _text(table)].setdefault(_text(index), [])
        parts.append((column or "", column is None or nullable == "YES"))
    keys = {}
    for table_name, its in indexes.items():
        whole = (parts for parts in its.values() if not any(optional for _, optional in parts))
        keys[table_name] = tuple(column for column, _ in next(whole, []))
    return keys


def _text(value: str | None) -> str:
    assert value is not None
    return value


_NOT_SYSTEM: Final = f"TABLE_SCHEMA NOT IN ({', '.join(literal(one) for one in _SYSTEM)})"


_LEAVE_OUT = "exclude them with `tables: {exclude: …}`"


def refuse_unfollowed(access: Access, tables: Sequence[MysqlTable]) -> None:
    """Raise POLYNYA-GTW-048 for the first thing of which the stream has not all."""
    _refuse(
        access, [table.full_name for table in tables if table.is_view],
        "are views, which have no changes of their own",
        f"{_LEAVE_OUT}, or load them in a task of their own with `update_method: reload`",
    )  # fmt: skip
    refuse_unread(access, tables)
    if access.rows:
        raise MYSQL_NOT_CAPTURED(
            "a binlog cannot be filtered by rows, as `rows` asks for",
            where=access.task,
            fix="remove the setting",
        )


def refuse_later(access: Access, tables: Sequence[MysqlTable]) -> None:
    """Raise TableError for the first table of which the stream has not all."""
    for table in tables:
        try:
            refuse_unfollowed(access, [table])
        except OperationError as error:
            raise TableError.of(table.full_name, error) from None


def refusal(access: Access, table: MysqlTable) -> OperationError | None:
    """Why a table is not captured, unless a load without changes names it; None: it is."""
    try:
        if access.follows or table.is_view:
            refuse_unfollowed(access, [table])
        refuse_unread(access, [table])
        if not access.follows:
            refuse_unnumbered(access, [table])
    except OperationError as error:
        return error
    return None


def refuse_unread(access: Access, tables: Sequence[MysqlTable]) -> None:
    """Raise POLYNYA-GTW-048 for the first thing whose rows would come wrongly."""
    versioned = [one.full_name for one in tables if one.is_versioned]
    unknown = [
        f"{table.full_name}.{column.facts.name} ({column.facts.shown})"
        for table in tables
        for column in table.columns
        if column.coding is None
    ]
    _refuse(access, versioned, "have system versioning, which cannot be captured", _LEAVE_OUT)
    _refuse(access, unknown, "are of such a type, which cannot be captured", _LEAVE_OUT)


def refuse_unnumbered(access: Access, tables: Sequence[MysqlTable]) -> None:
    """Raise POLYNYA-GTW-048 for tables without key whose rows have no room for their number."""
    taken = [
        table.full_name
        for table in tables
        if not table.key and any(column.facts.name == ROW_NUMBER for column in table.columns)
    ]
    why = f"have a column {ROW_NUMBER} and no key, of which it is the name"
    _refuse(access, taken, why, f"{_LEAVE_OUT}, or rename the column")


def _refuse(access: Access, names: Sequence[str], why: str, fix: str) -> None:
    if names:
        raise MYSQL_NOT_CAPTURED(f"{', '.join(names)} {why}", where=access.task, fix=fix)
