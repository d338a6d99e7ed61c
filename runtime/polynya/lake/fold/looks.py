"""Rows that a source read at a place in the order of its events: looks at a record, no changes.

A load runs beside the stream, and one that comes later, or goes on after a kill, lands behind
changes that are older than it. Such a look tells more than the row that it shows:

- What the events before it did not send, back to the newest one that did, was as it shows.
- A look that shows what is known without it makes no version.

Both hold for any order of arrival, since a look shows what the events before its place have made.
"""

from __future__ import annotations

from typing import Final

from polynya.lake.fold.shape import Shape, comparable
from polynya.lake.fold.sql import SEQUENCE, joined
from polynya.lake.fold.unsent import is_unsent
from polynya.model.contract.headers import LOADED, READ
from polynya.model.contract.identifiers import quote


def is_look(prefix: str = "") -> str:
    """Whether an event, or the one that made a stored version, is a look."""
    marked = f"coalesce(array_contains({prefix}__unsent, '{READ}'), false)"
    return f"({prefix}__op = 'L' OR {marked})"


IS_LOOK: Final = is_look()
#: Whether that look is a row of a load, which is what begins a record that was not there.
IS_LOADED: Final = f"(__op = 'L' OR coalesce(array_contains(__unsent, '{LOADED}'), false))"


def oldest(shape: Shape) -> str:
    """SQL of the oldest sequence of a record that its events change; a look may fill all of it."""
    if shape.looks and shape.partial:
        return f"min(IF({IS_LOOK}, '', {SEQUENCE}))"
    return f"min({SEQUENCE})"


def is_base(shape: Shape, name: str) -> str:
    """Whether a stored version holds a value that it has from an older one, which is not here."""
    return f"(__own AND __nth = 1 AND __op NOT IN ('I', 'i', 'L') AND {is_unsent(shape, name)})"


def carries_nothing(shape: Shape, name: str) -> str:
    """Whether a record that changed its key has a column of which its former key knew no value."""
    return f"(__former IS NOT NULL AND {is_unsent(shape, name)} AND {quote(name)} IS NULL)"


def shown_later(shape: Shape, name: str, over_after: str) -> str:
    """SQL of a column that no event up to a version sent: what a look shows before others do.

    `over_after` is a window over the life of a record that begins behind the version. Where nothing
    comes after it, what is stored stays.
    """
    column = quote(name)
    sends = f"NOT __del AND (NOT {is_unsent(shape, name)} OR __former IS NOT NULL)"
    value, by_look = (
        f"first_value(IF({sends}, {one}, NULL), true) {over_after}"
        for one in (f"named_struct('v', {column})", IS_LOOK)
    )
    return f"CASE WHEN {by_look} THEN {value}.v WHEN {by_look} IS NULL AND __own THEN {column} END"


def shows_nothing_new(shape: Shape, over: str) -> str:
    """Whether a version comes from a look that shows what the version before it shows.

    `over` is the window over a record whose values are all filled in. A value that events never
    sent is new, although the versions before have it from this look.
    """
    conditions = [IS_LOOK, "NOT __del", f"coalesce(NOT lag(__del) {over}, false)"]
    if shape.partial:
        conditions.append(f"lag(__told) {over}")
    for name in shape.values:
        value = comparable(quote(name), shape.columns[name])
        conditions.append(f"{value} <=> lag({value}) {over}")
    return f"({joined(conditions, 'AND')})"


def as_stored(shape: Shape) -> str:
    """SQL of the columns that the event of a version did not send, as they are stored.

    The operation of a version that follows another one does not tell that it is a look.
    """
    if not shape.looks:
        return "__unsent"
    marks = f"array('{READ}', '{LOADED}')"
    marked = f"array_union(coalesce(__unsent, CAST(array() AS ARRAY<STRING>)), {marks})"
    return f"IF(__op = 'L' AND __new_op <> 'L', {marked}, __unsent)"
