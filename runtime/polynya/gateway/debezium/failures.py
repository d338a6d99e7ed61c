"""What the end of an engine means, by what Debezium says: to be tried again, or not. Pure."""

from __future__ import annotations

import re
from typing import Final

from polynya.gateway.faults import UNREADABLE, TableError
from polynya.model.errors import DependencyError, OperationError, PolynyaError

_STATEMENT: Final = re.compile(
    # What is long is cut.
    r"couldn't be parsed.*?with the statement '(.*?)(?:'\s*(?:\n|;|\Z)|\Z)",
    re.DOTALL,
)
#: What Debezium says of a value, of a type that it does not know, and of rows that have other
#: columns than the table had by all statements that it has read.
_MARKS: Final = (
    ("Error while deserializing binlog data", "a value that Debezium cannot read"),
    ("ColumnType.byCode", "a column of a type that Debezium does not know, such as COMPRESSED"),
    ("internal schema size", "rows that do not fit the table as the stream has told it"),
    ("schema isn't known to this connector", "rows of a table that the stream has not told"),
)
#: The same of which Debezium names the table; of a row that does not fit it without its database.
_OF_TABLE: Final = re.compile(
    r"Error processing row in (?P<short>.+?), internal schema size"
    r"|change event for table (?P<name>\S+) whose schema isn't known to this connector"
)
_VALUE: Final = re.compile(
    r"Failed to properly convert (?:data|default) value for '(?P<table>[^']+)\.(?P<column>[^'.]+)' "
    r"of type (?P<type>[^;\n]+)"
)
_SETTING: Final = "server is not configured to use a"
_QUOTED: Final = re.compile(r"'[^']*(?:'|\Z)|\"[^\"]*(?:\"|\Z)")
_LONGEST: Final = 300
_STATE: Final = "all before it has landed; the stream stands there, and the database keeps its log"


def failure_of(said: str) -> PolynyaError:
    """The error of an engine that ended, from what it said."""
    value = _VALUE.search(said)
    if value is not None:
        return _unconverted(value["table"], value["column"], value["type"].strip()[:_LONGEST])
    statement = _STATEMENT.search(said)
    if statement is not None:
        # Its texts may be secrets.
        shown = _QUOTED.sub("'…'", " ".join(statement[1].split()))[:_LONGEST]
        return _unreadable(f"has a statement that Debezium cannot read: {shown}")
    for mark, what in _MARKS:
        if mark in said:
            why = " ".join(said[said.index(mark) :].split())[:_LONGEST]
            error, named = _unreadable(f"has {what}: {why}"), _OF_TABLE.search(said)
            return error if named is None else TableError.of(named["name"] or named["short"], error)
    if _SETTING in said:
        return OperationError(
            "POLYNYA-GTW-050",
            f"the binlog does not have all changes: {said[:_LONGEST]}",
            state="what has landed stays",
            fix="set it back, then load all tables anew: `polynya landing reload`",
        )
    return DependencyError(
        "POLYNYA-GTW-006",
        f"the stream of changes has ended: {said}",
        state="all that was read has landed up to a known place; the database keeps what "
        "comes after it",
        fix="look at the database and the way to it; the capture is started again by itself",
    )


def _unconverted(table: str, column: str, type_: str) -> TableError:
    error = OperationError(
        "POLYNYA-GTW-057",
        f"a value of {table}.{column}, of type {type_}, has no form in which it could be captured",
        where=table,
        state="all before it has landed",
        fix="change the value or the type of the column, give the table REPLICA IDENTITY FULL for "
        "a long list, or exclude the table; `polynya landing resume` then loads it again",
    )
    return TableError.of(table, error)


def _unreadable(what: str) -> OperationError:
    return OperationError(
        UNREADABLE,
        f"the stream of changes {what}",
        state=_STATE,
        fix="load all tables anew, which begins behind it: `polynya landing reload`",
    )
