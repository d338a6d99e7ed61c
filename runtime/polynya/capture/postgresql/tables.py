"""Tables in the catalog of a PostgreSQL database, and what cannot be captured of them."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from polynya.capture.inexact import of_postgresql
from polynya.capture.postgresql.session import PostgresSession, qualified
from polynya.capture.postgresql.types import PgType, UnsupportedType, ValueEncoding, written
from polynya.capture.source import Access, SourceColumn, SourceTable
from polynya.capture.wire import TableError
from polynya.model.error_catalogue.capture_databases import (
    CHANGES_NOT_IN_LOG,
    KEY_MAY_BE_NULL,
    REPLICA_IDENTITY_MISSING,
    TYPES_UNREADABLE,
)
from polynya.model.errors import OperationError

#: Kinds of relations by `pg_class.relkind`, those that changes cannot be captured of with why.
_NOT_CAPTURED: Final = {
    "v": "a view has no changes of its own",
    "m": "a materialized view has no changes of its own",
    "f": "a foreign table is stored elsewhere",
}

_TYPES: Final = """\
SELECT t.oid, n.nspname, t.typname, t.typtype,
       CASE WHEN t.typcategory = 'A' THEN t.typelem ELSE 0 END, t.typbasetype, t.typtypmod,
       (SELECT array_agg(e.enumlabel::text ORDER BY e.enumsortorder) FROM pg_enum e
        WHERE e.enumtypid = t.oid)
FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace
"""
_TABLES: Final = """\
SELECT c.oid, n.nspname, c.relname, c.relkind, c.relpersistence, c.relreplident,
       CASE WHEN c.relkind = 'p'
            THEN (SELECT sum(greatest(l.reltuples, 0)) FROM pg_partition_tree(c.oid) p
                  JOIN pg_class l ON l.oid = p.relid AND l.relkind = 'r')
            ELSE c.reltuples END::float8,
       CASE WHEN c.relkind = 'p'
            THEN (SELECT sum(pg_table_size(p.relid)) FROM pg_partition_tree(c.oid) p)
            ELSE pg_table_size(c.oid) END::float8
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT c.relispartition
  AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname !~ '^pg_(toast|temp)'
  AND NOT EXISTS (SELECT 1 FROM pg_depend d WHERE d.classid = 'pg_class'::regclass
                  AND d.objid = c.oid AND d.deptype = 'e')
ORDER BY 2, 3
"""
_COLUMNS: Final = """\
SELECT a.attrelid, a.attnum, a.attname, a.attnotnull, a.attgenerated, a.atttypid, a.atttypmod,
       format_type(a.atttypid, a.atttypmod),
       a.atthasdef OR a.atthasmissing OR a.attidentity <> '', a.attndims
FROM pg_attribute a WHERE a.attnum > 0 AND NOT a.attisdropped AND a.attrelid IN ({oids})
ORDER BY a.attrelid, a.attnum
"""
# A key is the index of the replica identity, for deletes have no other columns; else the primary
# key, else one without NULLs.
_KEYS: Final = """\
SELECT i.indrelid, i.indisprimary, i.indisreplident,
       (SELECT array_agg(i.indkey[p]::int ORDER BY p)
        FROM generate_series(0, i.indnkeyatts - 1) p),
       (SELECT array_agg(coalesce(quote_ident(n.nspname) || '.' || quote_ident(o.collname), '')
                         ORDER BY p)
        FROM generate_series(0, i.indnkeyatts - 1) p
        LEFT JOIN pg_collation o ON o.oid = i.indcollation[p]
        LEFT JOIN pg_namespace n ON n.oid = o.collnamespace)
FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
WHERE i.indisunique AND i.indisvalid AND i.indimmediate AND i.indpred IS NULL
  AND i.indexprs IS NULL AND i.indrelid IN ({oids})
ORDER BY i.indrelid, NOT i.indisreplident, NOT i.indisprimary, c.relname
"""


@dataclass(frozen=True, slots=True)
class PgColumn:
    """A column that is captured, with how it leaves the database."""

    name: str
    type_name: str
    nullable: bool
    written: ValueEncoding


@dataclass(frozen=True, slots=True)
class PgTable:
    """A relation of the catalog.

    Attributes:
        kind: `r` table, `p` partitioned table, others of `pg_class.relkind`.
        identity: replica identity: `d` the primary key, `i` an index, `f` all, `n` nothing.
        is_logged: whether its changes are in the log at all.
        key: () without one.
        collations: of the key's index, each as SQL has it; '' for a column that has none. The index
            may have others than the columns, and its own tell which rows are one.
        doubtful_key: a unique index whose columns may be NULL, where there is nothing better.
        numbers: of its newest column, and of the newest that has a default.
        left_out: columns that are not captured, with why.
        rows: by the statistics; None: there are none yet.
    """

    oid: int
    schema: str
    relation: str
    kind: str
    identity: str
    is_logged: bool
    columns: tuple[PgColumn, ...]
    key: tuple[str, ...]
    key_is_primary: bool
    doubtful_key: tuple[str, ...]
    left_out: tuple[tuple[str, str], ...]
    rows: int | None
    bytes: int | None
    numbers: tuple[int, int] = (0, 0)
    collations: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """As settings name it."""
        return f"{self.schema}.{self.relation}"

    def with_key(self, columns: Sequence[str]) -> PgTable:
        """With these columns as its key where it has none, if it has them."""
        if self.key or not columns or not {one.name for one in self.columns}.issuperset(columns):
            return self
        return replace(self, key=tuple(columns), collations=("",) * len(columns))

    @property
    def sql(self) -> str:
        """What to read from, without tables that inherit from it; a partitioned one has all."""
        only = "ONLY " if self.kind == "r" else ""
        return only + qualified(self.schema, self.relation)

    @property
    def not_captured(self) -> str | None:
        """Why its changes cannot be captured; None: they can."""
        if not self.is_logged and self.kind in "rp":
            return "changes of an unlogged table are not in the log"
        return _NOT_CAPTURED.get(self.kind)

    @property
    def has_identity(self) -> bool:
        """Whether updates and deletes can be identified: else a publication makes them fail."""
        by_key = self.identity == "d" and self.key_is_primary
        return by_key or self.identity in "fi"

    def as_source(self, *, is_followed: bool) -> SourceTable:
        """The table as a capture sees it; `is_followed`: it is in the capture's publication."""
        columns = tuple(
            SourceColumn(
                column.name,
                column.type_name,
                column.nullable,
                field_schema(column),
                of_postgresql(column.type_name, column.written.schema),
            )
            for column in self.columns
        )
        return SourceTable(
            self.name,
            columns,
            self.key,
            self.rows,
            self.bytes,
            str(self.oid),
            *self.numbers,
            is_followed=is_followed,
        )


def field_schema(column: PgColumn) -> dict[str, Any]:
    """The Connect schema of a column as a field of its row."""
    schema = column.written.schema
    optional = column.nullable or schema.get("optional", False)
    return {**schema, "optional": optional, "field": column.name}


def read_tables(session: PostgresSession) -> tuple[PgTable, ...]:
    """All tables and views of a database that are not its own, by name."""
    types = {int(row[0]): _type(row) for row in session.run(_TYPES)}
    relations = session.run(_TABLES)
    if not relations:
        return ()
    oids = ", ".join(str(row[0]) for row in relations)
    columns, keys = _by_table(session, _COLUMNS, oids), _by_table(session, _KEYS, oids)
    return tuple(
        _table(row, types, columns.get(row[0], []), keys.get(row[0], [])) for row in relations
    )


def chosen(names: Iterable[str], include: Sequence[str], exclude: Sequence[str]) -> set[str]:
    """Names that some pattern includes and none excludes; `%` and `*` are any text."""
    wanted, unwanted = _pattern(include), _pattern(exclude)
    return {name for name in names if wanted.fullmatch(name) and not unwanted.fullmatch(name)}


def is_named(name: str, include: Sequence[str]) -> bool:
    """Whether a pattern without wildcards is this name: somebody wants exactly this one."""
    return name in include


def _pattern(patterns: Sequence[str]) -> re.Pattern[str]:
    texts = (fnmatch.translate(_escaped(pattern)) for pattern in patterns)
    return re.compile("|".join(texts) or r"(?!)")


def _escaped(pattern: str) -> str:
    # Only `*` and `%` are special; names may hold `?` and brackets.
    return "".join(
        {"?": "[?]", "[": "[[]", "%": "*"}.get(character, character) for character in pattern
    )


def _type(row: Sequence[Any]) -> PgType:
    _, schema, name, kind, element, base, typmod, labels = row
    return PgType(schema, name, kind, int(element), int(base), int(typmod), tuple(labels or ()))


def _by_table(
    session: PostgresSession, statement: str, oids: str
) -> dict[Any, list[Sequence[Any]]]:
    rows: dict[Any, list[Sequence[Any]]] = {}
    for row in session.run(statement.format(oids=oids)):
        rows.setdefault(row[0], []).append(row)
    return rows


def _table(
    row: Sequence[Any],
    types: Mapping[int, PgType],
    columns: Sequence[Sequence[Any]],
    keys: Sequence[Sequence[Any]],
) -> PgTable:
    oid, schema, relation, kind, persistence, identity, rows, size = row
    captured: list[PgColumn] = []
    left_out: list[tuple[str, str]] = []
    for _, _, name, is_required, generated, type_oid, typmod, type_name, _, ndims in columns:
        if generated:
            left_out.append((name, "a generated column is not in the stream"))
            continue
        how = written(types, int(type_oid), int(typmod), dimensions=int(ndims))
        if isinstance(how, UnsupportedType):
            left_out.append((name, how.why))
        else:
            captured.append(PgColumn(name, type_name, not is_required, how))
    table = PgTable(
        oid=int(oid), schema=schema, relation=relation, kind=kind, identity=identity,
        is_logged=persistence == "p", columns=tuple(captured), key=(), key_is_primary=False,
        doubtful_key=(),
        left_out=tuple(left_out), rows=int(rows) if rows is not None and rows >= 0 else None,
        bytes=int(size) if size is not None else None, numbers=_newest(columns),
    )  # fmt: skip
    numbers = {int(column[1]): column[2] for column in columns}
    return _with_key(table, numbers, {one.name for one in captured if not one.nullable}, keys)


def _newest(columns: Sequence[Sequence[Any]]) -> tuple[int, int]:
    """The highest number of a column, and of one with a default. Numbers are never used again."""
    made = max((int(column[1]) for column in columns), default=0)
    # A generated column has its expression there.
    filled = (int(column[1]) for column in columns if column[8] and not column[4])
    return made, max(filled, default=0)


def _with_key(
    table: PgTable, numbers: Mapping[int, str], required: set[str], keys: Sequence[Sequence[Any]]
) -> PgTable:
    for _, is_primary, _, columns, collations in keys:
        names = tuple(numbers[int(number)] for number in columns if int(number) in numbers)
        if len(names) == len(columns) and required.issuperset(names):
            return replace(
                table, key=names, key_is_primary=is_primary, collations=tuple(collations)
            )
    doubtful = (
        [numbers[int(number)] for number in keys[0][3] if int(number) in numbers] if keys else []
    )
    return replace(table, doubtful_key=tuple(doubtful))


# Debezium reads all types of a database when it starts, and stops at these.
_DEADLY_TYPES = """\
SELECT n.nspname || '.' || t.typname FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace
WHERE t.typcategory = 'E' AND NOT EXISTS (SELECT 1 FROM pg_enum e WHERE e.enumtypid = t.oid)
ORDER BY 1
"""


def deadly_types(session: PostgresSession) -> list[str]:
    """Types that no capture of the database gets over: domains over enums, enums without labels."""
    return [row[0] for row in session.run(_DEADLY_TYPES)]


def without_identity(tables: Sequence[PgTable]) -> list[PgTable]:
    """Tables that would no longer take updates and deletes once they are published."""
    return [table for table in tables if not table.not_captured and not table.has_identity]


def refuse(session: PostgresSession, access: Access, tables: Sequence[PgTable]) -> None:
    """Raise OperationError for the first thing that cannot be captured.

    POLYNYA-GTW-026 (views and the like), -025 (no replica identity), -035 (a key that may be NULL),
    -029 (types of the database).
    """
    _refuse_tables(access, tables)
    _refuse_types(session, access)


def refuse_later(session: PostgresSession, access: Access, tables: Sequence[PgTable]) -> None:
    """Raise TableError for the first table that cannot be captured next to those that are.

    Raises OperationError, POLYNYA-GTW-029, as `refuse`.
    """
    for table in tables:
        try:
            _refuse_tables(access, [table])
        except OperationError as error:
            raise TableError.of(table.name, error) from None
    _refuse_types(session, access)


def refusal(access: Access, table: PgTable) -> OperationError | None:
    """Why a table is not captured, unless a load without changes names it; None: it is."""
    try:
        if table.not_captured or access.follows:
            _refuse_tables(access, [table])
    except OperationError as error:
        return error
    return None


def _refuse_tables(access: Access, tables: Sequence[PgTable]) -> None:
    for table in tables:
        if table.not_captured:
            raise CHANGES_NOT_IN_LOG(where=access.task, table=table.name, reason=table.not_captured)
    bare = without_identity(tables)
    if bare:
        names = ", ".join(table.name for table in bare[:10]) + (", …" if len(bare) > 10 else "")
        first = qualified(bare[0].schema, bare[0].relation)
        raise REPLICA_IDENTITY_MISSING(where=access.task, tables=names, first=first)
    for table in tables:
        if table.doubtful_key and not table.not_captured:
            raise KEY_MAY_BE_NULL(
                where=access.task, table=table.name, columns=", ".join(table.doubtful_key)
            )


def _refuse_types(session: PostgresSession, access: Access) -> None:
    types = deadly_types(session)
    if types:
        raise TYPES_UNREADABLE(where=access.task, types=", ".join(types[:10]))
