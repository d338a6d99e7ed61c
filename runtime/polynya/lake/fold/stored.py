"""Which stored versions an apply has to read, as SQL over one snapshot.

The rule that makes apply fast: with events in order, only the newest version of each touched record
matters. Older ones are read for the records that really have a late event.
"""

from __future__ import annotations

from polynya.lake.fold import looks
from polynya.lake.fold.fold import raw_columns, stored_columns
from polynya.lake.fold.shape import Shape
from polynya.lake.fold.sql import IS_OPEN_DELETE, STORED_SEQUENCE, within
from polynya.model.contract.headers import Partition

#: Whether an event is not newer than the stored version beside it (see `newest`).
LATE = f"{STORED_SEQUENCE} >= __oldest"


def newest(
    shape: Shape,
    table: str,
    touched: str,
    *,
    values: bool = True,
    condition: str = "true",
    oldest: bool = False,
) -> str:
    """Newest version of each touched record; `oldest`: with the oldest sequence that touches it.

    `touched` holds the key columns and `__oldest`. A record's newest version is its row in Current
    or its open delete in Prior; Iceberg skips the files of Prior that hold no open delete. Without
    history Prior is small and read whole. Without `values` only the keys are read. `condition`
    on the key columns lets Iceberg skip files.
    """
    raw = raw_columns(shape, located=True, values=values)
    made = stored_columns(shape, located=True, values=values, late=LATE)
    open_delete = f" AND {IS_OPEN_DELETE}" if shape.history else ""
    # One scan, not a union of two: after a union Spark copies every row before it can join.
    kept = f"({within(Partition.CURRENT)} OR ({within(Partition.PRIOR)}{open_delete}))"
    made += ", __oldest" if oldest else ""
    return (
        f"SELECT {made} FROM (SELECT /*+ BROADCAST(k) */ s.*, k.__oldest FROM ("
        f"SELECT {raw} FROM {table} WHERE {kept} AND {condition}"
        f") s JOIN {touched} k ON {shape.key_match('s', 'k')})"
    )


def older(shape: Shape, table: str, late: str) -> str:
    """All other versions in Prior of the records in `late`."""
    raw = raw_columns(shape, located=True)
    return (
        f"SELECT {_columns(shape)} FROM (SELECT /*+ BROADCAST(k) */ s.* "
        f"FROM (SELECT {raw} FROM {table} "
        f"WHERE {within(Partition.PRIOR)} AND NOT ({IS_OPEN_DELETE})"
        f") s LEFT SEMI JOIN {late} k ON {shape.key_match('s', 'k')})"
    )


def everything(shape: Shape, table: str) -> str:
    """Every version of every record: a truncate touches them all."""
    return (
        f"SELECT {_columns(shape)} FROM {table} WHERE {within(Partition.CURRENT, Partition.PRIOR)}"
    )


def touched_keys(shape: Shape, events: str) -> str:
    """Key columns, and for each record with an event the oldest sequence that it changes."""
    keys = shape.key_list()
    return f"SELECT {keys}, {looks.oldest(shape)} AS __oldest FROM {events} GROUP BY {keys}"


def late_keys(shape: Shape, newest_versions: str) -> str:
    """Records with an event that is not newer than their newest stored version."""
    return (
        f"SELECT {shape.key_list()}, min(__oldest) AS __oldest FROM {newest_versions} "
        f"WHERE __stored.late GROUP BY {shape.key_list()}"
    )


def _columns(shape: Shape) -> str:
    return stored_columns(shape, located=True)
