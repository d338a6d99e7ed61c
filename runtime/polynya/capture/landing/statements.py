"""Statements in a binlog: the tables whose rows they change, and what Debezium misreads. Pure.

Debezium derives some column types from a statement differently than the server does. Each such
column gets the definition from the server's catalog, so that it is the same whether the statement
ran before or during the capture.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from sqlglot import Token, TokenType, tokenize
from sqlglot.errors import SqlglotError

from polynya.capture.landing.position import LogPosition, position_of_rows
from polynya.formats.debezium.ddl import replacing, table_ddl

_BINLOG: Final = "mariadb"
#: Rows come into a table, or leave it, without events.
_MOVING_ROWS: Final = re.compile(
    r"\b(?:EXCHANGE\s+PARTITION|IMPORT\s+TABLESPACE|CONVERT\s+(?:PARTITION|TABLE))\b", re.IGNORECASE
)
_OTHER_TABLE: Final = re.compile(
    r"\bTABLE\s+(?:(?P<space>`(?:[^`]|``)+`|[\w$]+)\s*\.\s*)?(?P<table>`(?:[^`]|``)+`|[\w$]+)",
    re.IGNORECASE,
)


def replaced_by(line: bytes) -> dict[str, LogPosition]:
    """The tables whose rows are others after a statement, each with its place.

    One that was renamed has the rows that it brings along, and so have tables that change parts
    with each other. A table that was created again is not among them: its rows are events.

    Args:
        line: of the event that reports the statement.
    """
    value = json.loads(line)["value"]
    statement = str(value.get("ddl") or "")
    names = [ddl.new for ddl in table_ddl(value) if ddl.new is not None and ddl.new != ddl.table]
    if _MOVING_ROWS.search(statement):
        space = str(value.get("databaseName") or "")
        names += [_dotted(match, space) for match in _OTHER_TABLE.finditer(statement)]
    if not names:
        return {}
    position = position_of_rows(_BINLOG, value["source"])
    return dict.fromkeys(names, position)


def _dotted(match: re.Match[str], space: str) -> str:
    parts = (match["space"] or space, match["table"])
    return ".".join(
        part[1:-1].replace("``", "`") if part.startswith("`") else part for part in parts
    )


#: Of a statement that adds a column or changes one, and what fills it in rows that are there.
_CHANGING_COLUMNS: Final = frozenset({"ADD", "MODIFY", "CHANGE"})
_FILLING_ROWS: Final = frozenset({"AS", "GENERATED", "SERIAL", "AUTO_INCREMENT", "TIMESTAMP"})
_NO_VALUES: Final = frozenset({"NULL", "CHARSET", "CHARACTER", "COLLATE"})


def filled_by(line: bytes) -> dict[str, LogPosition]:
    """The tables with a key whose rows a statement gave a value for a column, and its place."""
    value = json.loads(line)["value"]
    names = _altered_tables(value.get("tableChanges"))
    if not names or not _fills(str(value.get("ddl") or "")):
        return {}
    return dict.fromkeys(names, position_of_rows(_BINLOG, value["source"]))


def _altered_tables(changes: Any) -> list[str]:
    """The tables with a key among `tableChanges` of an event that were there and were changed."""
    return [
        _name(change)
        for change in _tables(changes)
        if change.get("type") == "ALTER" and change["table"].get("primaryKeyColumnNames")
    ]


def _fills(statement: str) -> bool:
    """Whether a statement may give rows that are there a value for a column.

    One that only looks so costs a load of its table.
    """
    try:
        tokens = tokenize(statement, read="mysql")
    except SqlglotError:
        return True
    words = [
        "" if token.token_type in {TokenType.STRING, TokenType.IDENTIFIER} else token.text.upper()
        for token in tokens
    ]
    if not _CHANGING_COLUMNS.intersection(words):
        return False
    pairs = set(pairwise([*words, ""]))
    defaults = {after for before, after in pairs if before == "DEFAULT"} - _NO_VALUES
    return bool(defaults or ("NOT", "NULL") in pairs or _FILLING_ROWS.intersection(words))


@dataclass(frozen=True, slots=True)
class Misread:
    """A statement after which Debezium reads the rows of a table by its old columns."""

    table: str
    place: LogPosition


def misread(line: bytes) -> Misread | None:
    """What Debezium has not understood of a statement; None: it has."""
    if b'"tableChanges":[]' not in line:
        return None
    value = json.loads(line)["value"]
    replaced = replacing(str(value.get("ddl") or ""), value.get("databaseName"))
    return (
        None
        if replaced is None
        else Misread(replaced.table, position_of_rows(_BINLOG, value["source"]))
    )


def mistyped(line: bytes) -> dict[str, LogPosition]:
    """The tables that a statement gives a column that Debezium types wrongly, and its position."""
    value = json.loads(line)["value"]
    names = _misread_tables(value.get("tableChanges"))
    return dict.fromkeys(names, position_of_rows(_BINLOG, value["source"])) if names else {}


def _misread_tables(changes: Any) -> list[str]:
    """The tables among `tableChanges` of an event that have a column whose type is misread."""
    return [
        _name(change)
        for change in _tables(changes)
        if any(map(_type_as_read, change["table"]["columns"]))
    ]


#: Lines of a history that may have to be changed; large ones are not parsed for nothing.
_MAY_NEED_CHANGE: Final = re.compile(
    rb'\bREPLACE\b|"typeName"\s*:\s*"(?:UUID|BOOL|SERIAL|REAL|FLOAT4)|"charsetName"\s*:\s*"binary"',
    re.IGNORECASE,
)


def as_read(history: bytes) -> bytes:
    """A history of schemas that Debezium understands.

    A statement that replaces a table becomes two: the table is dropped, and made. Columns get the
    types by which their values are read.
    """
    return b"".join(
        entry for line in history.splitlines(keepends=True) for entry in _understood(line)
    )


def _understood(line: bytes) -> Iterator[bytes]:
    if not _MAY_NEED_CHANGE.search(line):
        yield line
        return
    record: dict[str, Any] = json.loads(line)
    changes = record.get("tableChanges")
    replaced = (
        None if changes else replacing(str(record.get("ddl") or ""), record.get("databaseName"))
    )
    if replaced is not None:
        space, _, table = replaced.table.partition(".")
        dropped = ".".join("`" + part.replace("`", "``") + "`" for part in (space, table) if part)
        for statement in (f"DROP TABLE IF EXISTS {dropped}", as_read_statement(replaced.statement)):
            yield _line({**record, "ddl": statement})
    elif _as_read_changes(changes):
        yield _line(record)
    else:
        yield line


def _as_read_changes(changes: Any) -> bool:
    """Change `tableChanges` of a history to the types that are read; whether one has changed."""
    columns = [
        (column, other)
        for change in _tables(changes)
        for column in change["table"]["columns"]
        if (other := _type_as_read(column))
    ]
    for column, other in columns:
        column.update(other)
        # It is written in the words of the former type, and says nothing that is needed.
        column["hasDefaultValue"] = False
        column.pop("defaultValueExpression", None)
    return bool(columns)


def _line(record: Mapping[str, Any]) -> bytes:
    return json.dumps(record, ensure_ascii=False).encode() + b"\n"


def as_read_statement(statement: str) -> str:
    """A statement that makes a table, with the types that are read."""
    try:
        tokens = tokenize(statement, read="mysql")
    except SqlglotError:
        return statement
    for number in reversed(range(1, len(tokens))):
        token = tokens[number]
        other = _TYPES_AS_READ.get(token.text.upper())
        if other is not None and _is_type(tokens, number):
            name, _, length = other
            written = f"{name}({length})" if length else name
            statement = f"{statement[: token.start]}{written}{statement[token.end + 1 :]}"
    return statement


#: A type is not what stands behind one of these.
_BEFORE_A_NAME: Final = frozenset({TokenType.L_PAREN, TokenType.COMMA, TokenType.ALIAS})


def _is_type(tokens: list[Token], number: int) -> bool:
    """Whether a word stands behind a name, and is none, and no function."""
    token, before = tokens[number], tokens[number - 1]
    is_called = number + 1 < len(tokens) and tokens[number + 1].token_type is TokenType.L_PAREN
    if token.token_type is TokenType.IDENTIFIER or before.token_type in _BEFORE_A_NAME or is_called:
        return False
    # `KEY uuid`, `DEFAULT uuid`, `TABLE uuid`: a column is named right behind `(` or a comma.
    return number >= 2 and tokens[number - 2].token_type in {TokenType.L_PAREN, TokenType.COMMA}


#: Name, number of JDBC and length of the type that is read, by the first word of the one written.
#: UUID comes as text and loses zeros at its end, BOOLEAN as true for 2, REAL with 7 digits; SERIAL
#: is unsigned.
_TYPES_AS_READ: Final[Mapping[str, tuple[str, int, int | None]]] = {
    "UUID": ("BINARY", -2, 16),
    "BOOL": ("TINYINT", 5, 1),
    "BOOLEAN": ("TINYINT", 5, 1),
    "SERIAL": ("BIGINT UNSIGNED", -5, None),
    "REAL": ("DOUBLE", 8, None),
    "FLOAT4": ("FLOAT", 6, None),
}
#: Texts in the character set `binary` are bytes, by the number of JDBC.
_OF_BYTES: Final[Mapping[int, tuple[str, int]]] = {1: ("BINARY", -2), 12: ("VARBINARY", -3)}
_LONG: Final = ("BLOB", 2004)
_LABELS: Final = frozenset({"ENUM", "SET"})


def _type_as_read(column: Mapping[str, Any]) -> dict[str, Any]:
    """What another type changes of a column's definition; empty for most."""
    word, *rest = str(column.get("typeName") or "").upper().split() or [""]
    length = column.get("length")
    if word in _TYPES_AS_READ:
        name, number, length = _TYPES_AS_READ[word]
        name = " ".join([name, *rest])
    elif _is_of_bytes(column) and word not in _LABELS:
        is_long = "TEXT" in word or word == "LONG"
        name, number = _LONG if is_long else _OF_BYTES[int(column["jdbcType"])]
    else:
        return {}
    changed = {"typeName": name, "typeExpression": name, "jdbcType": number, "charsetName": None}
    return changed if length is None else {**changed, "length": length}


def _is_of_bytes(column: Mapping[str, Any]) -> bool:
    charset = str(column.get("charsetName") or "").lower()
    return charset == "binary" and column.get("jdbcType") in _OF_BYTES


def _tables(changes: Any) -> Iterator[Mapping[str, Any]]:
    for change in changes if isinstance(changes, list) else ():
        table = change.get("table") if isinstance(change, dict) else None
        if isinstance(table, dict) and isinstance(table.get("columns"), list):
            yield change


def _name(change: Mapping[str, Any]) -> str:
    """`"space"."table"` as `space.table`; of one that was renamed, the new name."""
    last = str(change.get("id") or "").split(",")[-1]
    return ".".join(part.replace('""', '"') for part in _parts(last))


def _parts(quoted: str) -> list[str]:
    return [token.text for token in tokenize(quoted) if token.token_type is TokenType.IDENTIFIER]
