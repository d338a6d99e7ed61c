"""Places in the log of a database, as far as a capture compares them itself. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from polynya.gateway.source import Offset

Place: TypeAlias = tuple[int, ...]

#: Connectors whose places are files and bytes in them.
BINLOGS: Final = frozenset({"mariadb", "mysql"})
#: Of other connectors it is only known whether Debezium's own load is over.
_AFTER_LOAD: Final = 1


def place_of_offset(connector: str, offset: Offset) -> Place:
    """How far a stream was read. Raises ValueError or LookupError."""
    if connector == "postgresql":
        return (int(offset["lsn"]),)
    if connector in BINLOGS:
        return (_file_number(offset["file"]), int(offset["pos"]))
    return (_AFTER_LOAD if offset and "snapshot" not in offset else 0,)


def place_of_rows(connector: str, source: Mapping[str, Any]) -> Place:
    """Where the rows of a view stand. Raises ValueError or LookupError."""
    if connector == "postgresql":
        return (int(source["lsn"]),)
    if connector in BINLOGS:
        return (_file_number(source["file"]), int(source["pos"]))
    return (_AFTER_LOAD,)


def truncation(connector: str, table: str, source: Mapping[str, Any]) -> bytes:
    """An event line that empties a table right before the rows of a view.

    A table that is loaded anew may have rows that went while nobody followed the stream.

    Args:
        connector: of the database.
        table: `SPACE.NAME`.
        source: what the rows of the view carry.
    """
    space, _, name = table.partition(".")
    before: dict[str, Any]
    if connector == "postgresql":
        lsn = int(source["lsn"])
        before = {"schema": space, "sequence": json.dumps([str(lsn - 1), str(lsn)])}
    else:
        before = {"db": space, "pos": int(source["pos"]) - 1}
    value = {
        "before": None,
        "after": None,
        "source": {**source, **before, "table": name, "snapshot": "false"},
        "transaction": None,
        "op": "t",
    }
    event = {"key": None, "value": value}
    return json.dumps(event, separators=(",", ":")).encode() + b"\n"


def _file_number(name: Any) -> int:
    """The number in the name of a binlog file."""
    return int(str(name).rpartition(".")[2])
