"""Current where no value is inherited: the newest event of each record, and all other stored rows.

Without times and header columns nothing but the newest event counts, so that the fold with its
versions is not needed. Of what is stored only records that may have a late event are read a second
time (`hdr__copy_change_identifier` of a pending event, see `copy/routes.py`). While nothing is
pending, or nothing late, Spark finds that side of the join empty and leaves it out.
"""

from __future__ import annotations

from polynya.lake.fold.fold import TRUNCATED, over_record, precedence, with_ties
from polynya.lake.fold.shape import Shape
from polynya.lake.fold.sql import IS_OPEN_DELETE, STORED_SEQUENCE, is_delete, live_current, within
from polynya.model.contract import headers as h
from polynya.model.contract.headers import Partition
from polynya.model.contract.identifiers import quote

#: Whether a pending event may be older than something that was copied before it.
MAY_BE_LATE = f"{h.COPY_CHANGE_IDENTIFIER} IS NULL"


def current_of_newest(shape: Shape, table: str) -> str:
    """The data columns of Current with pending changes; nothing is inherited, deletes are hard."""
    data = ", ".join(map(quote, shape.data))
    # Not `row_number`: of a filter on it Spark makes a limit, which stays in the plan though there
    # is nothing to limit.
    before = f"lag(__seq) {over_record(shape, order=f'__seq DESC, {precedence(shape)}')}"
    events = with_ties(shape, f"({_events(shape, table)})")
    marked = f"SELECT *, {before} IS NULL AS __last FROM ({events})"
    return (
        f"SELECT {data} FROM {table} s LEFT ANTI JOIN ({_touched(shape, table)}) k "
        f"ON {shape.key_match('s', 'k')} WHERE {live_current(shape)} UNION ALL "
        f"SELECT {data} FROM ({marked}) WHERE __last AND NOT __del"
    )


def _events(shape: Shape, table: str) -> str:
    """Pending events, and the stored versions that one of them may be older than."""
    event = ", ".join(
        [
            *map(quote, shape.data),
            f"{STORED_SEQUENCE} AS __seq",
            f"coalesce({is_delete()}, false) AS __del",
            f"{h.SOURCE_POSITION} AS __position",
            f"coalesce({h.SOURCE_POSITION} = '{TRUNCATED}', false) AS __trunc",
            f"from_json({h.UNSENT}, 'array<string>') AS __unsent",
        ]
    )
    # An open delete is the newest version of its record, which Current does not have.
    deletes = IS_OPEN_DELETE if shape.history else is_delete()
    stored = f"{within(Partition.CURRENT)} OR ({within(Partition.PRIOR)} AND {deletes})"
    return (
        f"SELECT {event} FROM {table} WHERE {within(Partition.CHANGES)} UNION ALL "
        f"SELECT {event} FROM {table} s LEFT SEMI JOIN "
        f"({_touched(shape, table)} AND {MAY_BE_LATE}) k ON {shape.key_match('s', 'k')} "
        f"WHERE {stored}"
    )


def _touched(shape: Shape, table: str) -> str:
    """Keys of the pending changes.

    A key may be there several times: to make it one costs every query a shuffle, also where nothing
    is pending.
    """
    return f"SELECT {shape.key_list()} FROM {table} WHERE {within(Partition.CHANGES)}"
