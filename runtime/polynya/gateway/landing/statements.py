"""Statements of a binlog that say of whole tables what no event of a row does. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from polynya.formats.debezium.ddl import replacing, table_ddl
from polynya.gateway.landing.definitions import (
    altered_tables,
    as_read_changes,
    as_read_statement,
    fills,
    misread_tables,
)
from polynya.gateway.landing.places import Place, place_of_rows

_BINLOG: Final = "mariadb"
#: Rows come into a table, or leave it, without events.
_MOVES: Final = re.compile(
    r"\b(?:EXCHANGE\s+PARTITION|IMPORT\s+TABLESPACE|CONVERT\s+(?:PARTITION|TABLE))\b", re.IGNORECASE
)
#: Lines of a history that may have to be changed; large ones are not parsed for nothing.
_MAYBE: Final = re.compile(
    rb'\bREPLACE\b|"typeName"\s*:\s*"(?:UUID|BOOL|SERIAL|REAL|FLOAT4)|"charsetName"\s*:\s*"binary"',
    re.IGNORECASE,
)
_OTHER: Final = re.compile(
    r"\bTABLE\s+(?:(?P<space>`(?:[^`]|``)+`|[\w$]+)\s*\.\s*)?(?P<table>`(?:[^`]|``)+`|[\w$]+)",
    re.IGNORECASE,
)


def replaced_by(line: bytes) -> dict[str, Place]:
    """The tables whose rows are others after a statement, each with its place.

    One that was renamed has the rows that it brings along, and so have tables that change parts
    with each other. A table that was made anew is not among them: its rows are events.

    Args:
        line: of the event that reports the statement.
    """
    value = json.loads(line)["value"]
    statement = str(value.get("ddl") or "")
    names = [one.new for one in table_ddl(value) if one.new is not None and one.new != one.table]
    if _MOVES.search(statement):
        space = str(value.get("databaseName") or "")
        names += [_dotted(found, space) for found in _OTHER.finditer(statement)]
    if not names:
        return {}
    place = place_of_rows(_BINLOG, value["source"])
    return dict.fromkeys(names, place)


def filled_by(line: bytes) -> dict[str, Place]:
    """The tables with a key whose rows a statement gave a value for a column, and its place."""
    value = json.loads(line)["value"]
    names = altered_tables(value.get("tableChanges"))
    if not names or not fills(str(value.get("ddl") or "")):
        return {}
    return dict.fromkeys(names, place_of_rows(_BINLOG, value["source"]))


@dataclass(frozen=True, slots=True)
class Misread:
    """A statement after which Debezium reads the rows of a table by its old columns."""

    table: str
    place: Place


def misread(line: bytes) -> Misread | None:
    """What Debezium has not understood of a statement; None: it has."""
    if b'"tableChanges":[]' not in line:
        return None
    value = json.loads(line)["value"]
    found = replacing(str(value.get("ddl") or ""), value.get("databaseName"))
    return None if found is None else Misread(found.table, place_of_rows(_BINLOG, value["source"]))


def mistyped(line: bytes) -> dict[str, Place]:
    """The tables of which a statement gives Debezium a column of a wrong type, and its place."""
    value = json.loads(line)["value"]
    names = misread_tables(value.get("tableChanges"))
    return dict.fromkeys(names, place_of_rows(_BINLOG, value["source"])) if names else {}


def as_read(history: bytes) -> bytes:
    """A history of schemas that Debezium understands.

    A statement that replaces a table becomes two: the table is dropped, and made. Columns get the
    types by which their values are read.
    """
    return b"".join(one for line in history.splitlines(keepends=True) for one in _understood(line))


def _understood(line: bytes) -> Iterator[bytes]:
    if not _MAYBE.search(line):
        yield line
        return
    record: dict[str, Any] = json.loads(line)
    changes = record.get("tableChanges")
    found = None if changes else replacing(str(record.get("ddl") or ""), record.get("databaseName"))
    if found is not None:
        space, _, table = found.table.partition(".")
        dropped = ".".join("`" + one.replace("`", "``") + "`" for one in (space, table) if one)
        for statement in (f"DROP TABLE IF EXISTS {dropped}", as_read_statement(found.statement)):
            yield _line({**record, "ddl": statement})
    elif as_read_changes(changes):
        yield _line(record)
    else:
        yield line


def _line(record: Mapping[str, Any]) -> bytes:
    return json.dumps(record, ensure_ascii=False).encode() + b"\n"


def _dotted(found: re.Match[str], space: str) -> str:
    parts = (found["space"] or space, found["table"])
    return ".".join(one[1:-1].replace("``", "`") if one.startswith("`") else one for one in parts)
