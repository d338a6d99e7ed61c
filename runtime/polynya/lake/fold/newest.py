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

from typing import Final

from polynya.lake.fold.fold import PRECEDENCE, TRUNCATED, over_record, precedence, with_ties
from polynya.lake.fold.shape import Shape
from polynya.lake.fold.sql import IS_OPEN_DELETE, STORED_SEQUENCE, is_delete, live_current, within
from polynya.model import headers as h
from polynya.model.headers import Partition
from polynya.model.names import quote

#: Whether a pending event may be older than something that was copied before it.
MAY_BE_LATE = f"{h.COPY_CHANGE_IDENTIFIER} IS NULL"
#: What decides which event of a record is the newest, but for its content.
_ORDER: Final = (
    f"{STORED_SEQUENCE} AS __seq, coalesce({is_delete()}, false) AS __del, "
    f"{h.SOURCE_POSITION} AS __position, "
    f"coalesce({h.SOURCE_POSITION} = '{TRUNCATED}', false) AS __trunc"
)


def current_of_newest(shape: Shape, table: str) -> str:
    """The data columns of Current with pending changes; deletes are hard."""
    data = ", ".join(map(quote, shape.data))
    late = f"({_touched(shape, table)} AND {MAY_BE_LATE})"
    events = (
        f"SELECT {_event(shape)} FROM {table} WHERE {within(Partition.CHANGES)} UNION ALL "
        f"SELECT {_event(shape)} FROM {table} s LEFT SEMI JOIN {late} k "
        f"ON {shape.key_match('s', 'k')} WHERE {_stored(shape)}"
    )
    return (
        f"SELECT {data} FROM {table} s LEFT ANTI JOIN ({_touched(shape, table)}) k "
        f"ON {shape.key_match('s', 'k')} WHERE {live_current(shape)} UNION ALL "
        f"SELECT {data} FROM ({_marked(shape, events)}) WHERE __last AND NOT __del"
    )


def current_by_places(shape: Shape, table: str) -> str:
    """The same in Spark, where `table` is a table of Iceberg."""
    data = ", ".join(map(quote, shape.data))
    # Several events of a record differ in their places; stored rows have places of their own.
    shown = (
        f"s.{within(Partition.CHANGES)} AND k.__shown AND "
        "(k.__file IS NULL OR (k.__file = s._file AND k.__pos = s._pos))"
    )
    rows = f"({live_current(shape)} OR {within(Partition.CHANGES)})"
    events = (
        f"SELECT {_event(shape)} FROM {table} s LEFT SEMI JOIN "
        f"(SELECT {shape.key_list()} FROM newest WHERE __open) k ON {shape.key_match('s', 'k')} "
        f"WHERE {within(Partition.CHANGES)} OR {_stored(shape)}"
    )
    return (
        f"WITH newest AS ({_newest(shape, table)}) "
        f"SELECT {data} FROM {table} s LEFT ANTI JOIN newest k "
        f"ON {shape.key_match('s', 'k')} AND NOT ({shown}) WHERE {rows} UNION ALL "
        f"SELECT {data} FROM ({_marked(shape, events)}) WHERE __last AND NOT __del"
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
    unsent = f"from_json({h.UNSENT}, 'array<string>') AS __unsent"
    return ", ".join([*map(quote, shape.data), _ORDER, unsent])


def _marked(shape: Shape, events: str) -> str:
    """The events, with `__last`."""
    # Not `row_number`: of a filter on it Spark makes a limit, which stays in the plan though there
    # is nothing to limit.
    before = f"lag(__seq) {over_record(shape, order=f'__seq DESC, {precedence(shape)}')}"
    return f"SELECT *, {before} IS NULL AS __last FROM ({with_ties(shape, f'({events})')})"


def _newest(shape: Shape, table: str) -> str:
    """Each record with pending events: whether its newest one is shown, and the place of that one.

    The place is NULL where the event is the only one. A record is `__open` where more has to be
    known: an event may be late, or only its content tells which event of one sequence counts.
    """
    order = f"__seq DESC, {PRECEDENCE}, __file, __pos"
    over = over_record(shape, order=order)
    # The frame of the other functions would do, but then Spark sorts once more.
    every = "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"
    same = " AND ".join(
        f"lead({column}) {over} <=> {column}"
        for column in ("__seq", "__trunc", "__del", "__position")
    )
    events = (
        f"SELECT {shape.key_list()}, {_ORDER}, {MAY_BE_LATE} AS __late, "
        f"_file AS __file, _pos AS __pos FROM {table} WHERE {within(Partition.CHANGES)}"
    )
    ranked = (
        f"SELECT *, lag(__seq) {over} IS NULL AS __last, lead(__seq) {over} IS NULL AS __alone, "
        f"max(__late) {over_record(shape, order=order, frame=every)} "
        f"OR ({same} AND NOT __del) AS __open FROM ({events})"
    )
    return (
        f"SELECT {shape.key_list()}, __open, NOT (__del OR __open) AS __shown, "
        "IF(__alone, NULL, __file) AS __file, IF(__alone, NULL, __pos) AS __pos "
        f"FROM ({ranked}) WHERE __last"
    )
