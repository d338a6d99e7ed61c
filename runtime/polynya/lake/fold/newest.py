"""The SQL of Current where only the newest event of a record counts: nothing is inherited.

It needs no fold. Stored versions matter only to records with an event that may be late: a copy
leaves `hdr__copy_change_identifier` of such an event NULL. There are two texts of one meaning:

- `current_of_newest` is SQL that every engine knows.
- `current_by_places` is for Spark over Iceberg, where a row has a place: its file and its position
  in it. One scan reads stored and pending rows, and an anti join drops those that do not count. In
  a union, Spark would copy every row before the query could work on it. The union in this text is
  for the few records that cannot be judged by pending events alone, and Spark removes it where
  there are none.
"""

from __future__ import annotations

from polynya.lake.fold.fold import (
    PRECEDENCE,
    TRUNCATED,
    content_hash,
    over_record,
    precedence,
    with_ties,
)
from polynya.lake.fold.shape import Shape
from polynya.lake.fold.sql import IS_OPEN_DELETE, STORED_SEQUENCE, is_delete, live_current, within
from polynya.model import headers as h
from polynya.model.headers import Partition
from polynya.model.names import quote

#: Whether a pending event may be older than something that was copied before it.
MAY_BE_LATE = f"{h.COPY_CHANGE_IDENTIFIER} IS NULL"


def current_of_newest(shape: Shape, table: str) -> str:
    """The data columns of Current with pending changes; deletes are hard."""
    data = ", ".join(map(quote, shape.data))
    late = f"({_touched(shape, table)} AND {MAY_BE_LATE})"
    events = (
        f"SELECT {_event(shape)} FROM {table} WHERE {within(Partition.CHANGES)} UNION ALL "
        f"SELECT {_event(shape)} FROM {table} s LEFT SEMI JOIN {late} k "
        f"ON {shape.key_match('s', 'k')} WHERE {_stored(shape)}"
    )
    events = f"({with_ties(shape, f'({events})')})"
    newest = f"__seq DESC, {precedence(shape)}"
    return (
        f"SELECT {data} FROM {table} s LEFT ANTI JOIN ({_touched(shape, table)}) k "
        f"ON {shape.key_match('s', 'k')} WHERE {live_current(shape)} UNION ALL "
        f"SELECT {data} FROM ({_marked(shape, events, newest)}) WHERE __last AND NOT __del"
    )


def current_by_places(shape: Shape, table: str) -> str:
    """The same in Spark, where `table` is a table of Iceberg."""
    data = ", ".join(map(quote, shape.data))
    # No column has a name like this: before a place, Spark would take a column `s` for a struct.
    row = "hdr__row"
    shown = (
        f"{row}.{within(Partition.CHANGES)} AND k.__shown AND "
        f"(k.__data_file IS NULL OR (k.__data_file = {row}._file AND k.__at = {row}._pos))"
    )
    # Of records that are open everything is compared, so that it does not matter what ties.
    newest = f"__seq DESC, {PRECEDENCE}, IF(__del, '', {content_hash(shape)}) DESC"
    events = (
        f"SELECT {_event(shape)} FROM {table} s LEFT SEMI JOIN "
        f"(SELECT {shape.key_list()} FROM newest WHERE __open) k ON {shape.key_match('s', 'k')} "
        f"WHERE {within(Partition.CHANGES)} OR {_stored(shape)}"
    )
    return (
        f"WITH newest AS ({_newest(shape, table)}) "
        f"SELECT {data} FROM {table} {row} LEFT ANTI JOIN newest k "
        f"ON {shape.key_match(row, 'k')} AND NOT ({shown}) "
        f"WHERE ({live_current(shape)}) OR {within(Partition.CHANGES)} UNION ALL "
        f"SELECT {data} FROM ({_marked(shape, f'({events})', newest)}) WHERE __last AND NOT __del"
    )


def _touched(shape: Shape, table: str) -> str:
    """Keys of the pending changes.

    A key may be there several times: to make it one costs every query a shuffle, also where nothing
    is pending.
    """
    return f"SELECT {shape.key_list()} FROM {table} WHERE {within(Partition.CHANGES)}"


def _stored(shape: Shape) -> str:
    """Condition on the stored versions that a late event may be older than."""
    # An open delete is the newest version of its record, which Current does not have.
    deletes = IS_OPEN_DELETE if shape.history else is_delete()
    return f"{within(Partition.CURRENT)} OR ({within(Partition.PRIOR)} AND {deletes})"


def _event(shape: Shape) -> str:
    """Select list of an event, or of a stored version as one."""
    position = f"coalesce({h.SOURCE_POSITION} = '{TRUNCATED}', false)"
    return ", ".join(
        [
            *map(quote, shape.data),
            f"{STORED_SEQUENCE} AS __seq",
            f"coalesce({is_delete()}, false) AS __del",
            f"{h.SOURCE_POSITION} AS __position",
            f"{position} AS __trunc",
            f"from_json({h.UNSENT}, 'array<string>') AS __unsent",
        ]
    )


def _marked(shape: Shape, events: str, order: str) -> str:
    """The events, and whether each is the first of its record in an order."""
    # Not `row_number`: of a filter on it Spark makes a limit, which stays in the plan though there
    # is nothing to limit.
    return f"SELECT *, lag(__seq) {over_record(shape, order=order)} IS NULL AS __last FROM {events}"


def _newest(shape: Shape, table: str) -> str:
    """Each record with pending events: whether its newest one is shown, and the place of that one.

    The place is NULL where the event is the only one. A record is `__open` where the newest event
    may be late, or is not alone at its place in the order.
    """
    over = over_record(shape, order="__seq DESC, __data_file, __at")
    events = (
        f"SELECT {shape.key_list()}, {STORED_SEQUENCE} AS __seq, "
        f"coalesce({is_delete()}, false) AS __del, {MAY_BE_LATE} AS __late, "
        f"_file AS __data_file, _pos AS __at FROM {table} WHERE {within(Partition.CHANGES)}"
    )
    ranked = (
        f"SELECT *, lag(__seq) {over} IS NULL AS __last, lead(__seq) {over} AS __older "
        f"FROM ({events})"
    )
    is_open = "(__late OR coalesce(__older = __seq, false))"
    place = (f"IF(__older IS NULL, NULL, {name}) AS {name}" for name in ("__data_file", "__at"))
    return (
        f"SELECT {shape.key_list()}, {is_open} AS __open, NOT (__del OR {is_open}) AS __shown, "
        f"{', '.join(place)} FROM ({ranked}) WHERE __last"
    )
