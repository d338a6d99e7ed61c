"""What the statements of a captured database do to its tables: make, drop, rename, replace."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from sqlglot import Token, TokenType, exp, parse_one, tokenize
from sqlglot.errors import SqlglotError

# It would print each statement that it cannot read.
logging.getLogger("sqlglot").setLevel(logging.ERROR)

_DIALECTS: Final = {"mysql": "mysql", "mariadb": "mysql", "oracle": "oracle"}
_RENAME_TABLE: Final = re.compile(r"\s*RENAME\s+TABLES?\s+(IF\s+EXISTS\s+)?", re.IGNORECASE)
_ALTER_TABLE: Final = re.compile(r"\s*ALTER\s+TABLE\s", re.IGNORECASE)
_BETWEEN: Final = frozenset({TokenType.COMMA, TokenType.SEMICOLON})
_STREAMED: Final = (None, False, "false")
_NOTHING: Final = r"(?:\s|(?>/\*.*?\*/)|--[^\n]*\n|#[^\n]*\n)*+"
_NAME: Final = r"(?:`(?:[^`]|``)+`|[\w$]+)"
_CREATE: Final = re.compile(rf"{_NOTHING}CREATE\s", re.IGNORECASE | re.DOTALL)
_REPLACE: Final = re.compile(
    rf"{_NOTHING}CREATE\s+OR\s+REPLACE\s+TABLE\s+"
    rf"(?:(?P<space>{_NAME})\s*\.\s*)?(?P<table>{_NAME})(?P<rest>.*)",
    re.IGNORECASE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class TableDdl:
    """A table was dropped, or is called `new` now; names are `schema.table` (or `db.table`).

    `is_made`: it was made, and had no rows then.
    """

    table: str
    new: str | None = None
    is_made: bool = False


@dataclass(frozen=True, slots=True)
class Replacing:
    """A statement of MariaDB that replaces a table; `statement` makes the table without that.

    Debezium (3.5) does not take it for a new table where the old one is there: it reads the rows of
    the new one as those of the old one.
    """

    table: str
    statement: str


def replacing(statement: str, database: str | None) -> Replacing | None:
    """What a `CREATE OR REPLACE TABLE` says; None for any other statement."""
    found = _REPLACE.match(statement)
    if found is None:
        return None
    space, table = found["space"] or "", found["table"]
    written = f"{space}.{table}" if space else table
    name = f"{_plain(space) or database or ''}.{_plain(table)}"
    return Replacing(name, f"CREATE TABLE {written}{found['rest']}")


def _plain(name: str) -> str:
    return name[1:-1].replace("``", "`") if name.startswith("`") else name


def table_ddl(event: Mapping[str, Any]) -> list[TableDdl]:
    """Tables that a statement dropped, made or renamed, in order; none for those of a snapshot.

    A statement that cannot be read says nothing: a table of a new name is a new table then.
    """
    source = event.get("source")
    if not isinstance(source, dict) or source.get("snapshot") not in _STREAMED:
        return []
    statement, database = str(event.get("ddl") or ""), event.get("databaseName")
    replaced = replacing(statement, database if isinstance(database, str) else None)
    if replaced is not None:
        return [TableDdl(replaced.table, is_made=True)]
    try:
        # Other sources tell of tables that somebody begins to follow as of new ones.
        is_made = _CREATE.match(statement) is not None
        found = [ddl for change in _changes(event) for ddl in _told(change, is_made=is_made)]
        if not any(ddl.new for ddl in found):
            dialect = _DIALECTS.get(str(source.get("connector")))
            found += _renames(statement, dialect, database)
    except (SqlglotError, RecursionError):
        return []
    return found


def _changes(event: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    changes = event.get("tableChanges")
    return (
        [change for change in changes if isinstance(change, dict)]
        if isinstance(changes, list)
        else []
    )


def _told(change: Mapping[str, Any], *, is_made: bool) -> list[TableDdl]:
    names = _names(tokenize(str(change.get("id") or "")), None)
    if change.get("type") == "DROP":
        return [TableDdl(name) for name in names]
    if change.get("type") == "CREATE" and is_made:
        return [TableDdl(name, is_made=True) for name in names]
    return [TableDdl(names[0], names[1])] if len(names) == 2 else []


def _renames(statement: str, dialect: str | None, database: Any) -> list[TableDdl]:
    if dialect is None or "rename" not in statement.lower():
        return []
    space = database if isinstance(database, str) and database else None
    head = _RENAME_TABLE.match(statement)
    if head is not None:
        names = _names(tokenize(statement[head.end() :], read=dialect), space)
        return [TableDdl(*pair) for pair in zip(names[::2], names[1::2], strict=False)]
    altered = parse_one(statement, dialect=dialect) if _ALTER_TABLE.match(statement) else None
    if not isinstance(altered, exp.Alter):
        return []
    table = altered.this
    actions = altered.args.get("actions") or []
    news = [action.this for action in actions if isinstance(action, exp.AlterRename)]
    if not all(isinstance(name, exp.Table) for name in (table, *news)):
        return []
    space = table.db or space
    return [TableDdl(_dotted(table, space), _dotted(new, space)) for new in news]


def _dotted(table: exp.Table, space: str | None) -> str:
    return f"{table.db or space or ''}.{table.name}"


def _names(tokens: Iterable[Token], space: str | None) -> list[str]:
    """Names that commas or `TO` separate, each by its last two parts; `space` completes others."""
    parts: list[list[str]] = [[]]
    for token in tokens:
        quoted = token.token_type is TokenType.IDENTIFIER
        if token.token_type in _BETWEEN or (token.text.upper() == "TO" and not quoted):
            parts.append([])
        elif token.token_type is not TokenType.DOT:
            parts[-1].append(token.text)
    return [".".join([space or "", *part][-2:]) for part in parts if part]
