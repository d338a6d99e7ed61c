"""What the end of an engine means, by what Debezium says: to be tried again, or not. Pure."""

from __future__ import annotations

import re
from typing import Final

from polynya.model.errors import DependencyError, OperationError, PolynyaError

_STATEMENT: Final = re.compile(
    r"couldn't be parsed.*?with the statement '(.*?)'\s*(?:\n|$|;)", re.DOTALL
)
#: What Debezium says of a value, of a type that it does not know, and of rows that have other
#: columns than the table had by all statements that it has read.
_MARKS: Final = (
    ("Error while deserializing binlog data", "a value that Debezium cannot read"),
    ("ColumnType.byCode", "a column of a type that Debezium does not know, such as COMPRESSED"),
    ("internal schema size", "rows that do not fit the table as the stream has told it"),
    ("schema isn't known to this connector", "rows of a table that the stream has not told"),
)
_SETTING: Final = "server is not configured to use a"
_QUOTED: Final = re.compile(r"'[^']*'|\"[^\"]*\"")
_LONGEST: Final = 300
_STATE: Final = "all before it has landed; the stream stands there, and the database keeps its log"


def failure_of(said: str) -> PolynyaError:
    """The error of an engine that ended, from what it said."""
    statement = _STATEMENT.search(said)
    if statement is not None:
        # Its texts may be secrets.
        shown = _QUOTED.sub("'…'", " ".join(statement[1].split()))[:_LONGEST]
        return _unreadable(f"has a statement that Debezium cannot read: {shown}")
    for mark, what in _MARKS:
        if mark in said:
            why = " ".join(said[said.index(mark) :].split())[:_LONGEST]
            return _unreadable(f"has {what}: {why}")
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


def _unreadable(what: str) -> OperationError:
    return OperationError(
        "POLYNYA-GTW-049",
        f"the stream of changes {what}",
        state=_STATE,
        fix="load all tables anew, which begins behind it: `polynya landing reload`",
    )
