"""The stored versions that an apply has to read, and the figures that it counts, as SQL.

This rule makes apply fast: while events come in order, only the newest version of each touched
record matters. Older versions are read only for records that really have a late event.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Self

from polynya.lake.fold import sql
from polynya.lake.fold.fold import raw_columns, stored_columns
from polynya.lake.fold.shape import Shape
from polynya.lake.fold.sql import IS_OPEN_DELETE, STORED_SEQUENCE, within
from polynya.model.headers import Partition

#: A version that is not stored, one that no event made, one that is stored otherwise.
MISSING, SURPLUS, CHANGED = (
    "__write AND NOT __drop",
    "__drop AND NOT __write",
    "__write AND __drop",
)
_WRITTEN = {
    "current": f"__write AND __part = '{Partition.CURRENT}'",
    "prior": f"__write AND __part = '{Partition.PRIOR}'",
    "removed": "__drop",
}


@dataclass(frozen=True, slots=True)
class AppliedRows:
    """Rows of one apply: `events` taken in, versions written to Current and Prior, and removed."""

    events: int
    current: int
    prior: int
    removed: int

    @classmethod
    def of(cls, counted: Mapping[str, Any]) -> Self:
        """The figures out of a row of aggregates, which may hold more."""
        return cls(**{field.name: int(counted[field.name]) for field in fields(cls)})

    @property
    def written(self) -> int:
        """Versions written."""
        return self.current + self.prior

    def counts(self) -> dict[str, int]:
        """Name → figure, as events and snapshots tell it and the state adds it up."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class ApplyFigures(AppliedRows):
    """Besides, what events did, and how often they contradicted what is known.

    `inserts`, `updates` and `deletes` are events by what they did to their record in the order of
    events, whatever the source called them. `raised` came with a time that had to be raised.
    """

    inserts: int
    updates: int
    deletes: int
    raised: int
    insert_of_existing: int
    update_of_missing: int
    delete_of_missing: int


@dataclass(frozen=True, slots=True)
class RebuildFigures(AppliedRows):
    """Besides, versions that were `restored`, `surplus` ones removed, others `corrected`."""

    restored: int
    surplus: int
    corrected: int


def apply_aggregates(shape: Shape) -> list[str]:
    """Aggregates of ApplyFigures."""
    return _counts(apply_conditions(shape))


def apply_conditions(shape: Shape) -> dict[str, str]:
    """Figure of ApplyFigures → condition of the versions that it counts.

    Only a source that tells inserts from updates can contradict itself.
    """
    tells_operations = "true" if shape.tells_operations else "false"
    fresh = "NOT __own AND NOT __trunc"
    first = "coalesce(__del_before, true)"
    # A record that replaces its elements deletes whatever is there.
    first += f" AND NOT ({shape.is_record()})" if shape.replaces else ""
    upsert = f"{fresh} AND NOT __del AND NOT __gone"
    deletes = f"{fresh} AND __del"
    if shape.replaces:
        # A record deletes the elements that it lacks, and is none itself.
        deletes = f"NOT __own AND __del AND NOT __gone AND NOT ({shape.is_record()})"
    return {
        "events": fresh,
        **_WRITTEN,
        "inserts": f"{upsert} AND coalesce(__del_before, true)",
        "updates": f"{upsert} AND NOT coalesce(__del_before, true)",
        "deletes": deletes,
        "raised": "__raised AND __write AND NOT __own",
        "insert_of_existing": f"{tells_operations} AND {fresh} AND __op = 'I' AND NOT {first}",
        "update_of_missing": f"{tells_operations} AND {fresh} AND __op = 'U' AND {first}",
        "delete_of_missing": f"{fresh} AND __del AND {first}",
    }


def rebuild_aggregates() -> list[str]:
    """Aggregates of RebuildFigures but `events`: those are not among the rows."""
    conditions = {"restored": MISSING, "surplus": SURPLUS, "corrected": CHANGED}
    return _counts({**conditions, **_WRITTEN})


def _counts(conditions: Mapping[str, str]) -> list[str]:
    return [f"count_if({condition}) AS {name}" for name, condition in conditions.items()]


#: Whether an event is not newer than the stored version next to it (see `newest`).
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
        f") s JOIN {touched} k ON {shape.touching_match('s', 'k')})"
    )


def older(shape: Shape, table: str, late: str) -> str:
    """All other versions in Prior of the records in `late`."""
    raw = raw_columns(shape, located=True)
    return (
        f"SELECT {_columns(shape)} FROM (SELECT /*+ BROADCAST(k) */ s.* "
        f"FROM (SELECT {raw} FROM {table} "
        f"WHERE {within(Partition.PRIOR)} AND NOT ({IS_OPEN_DELETE})"
        f") s LEFT SEMI JOIN {late} k ON {shape.touching_match('s', 'k')})"
    )


def everything(shape: Shape, table: str) -> str:
    """Every version of every record: a truncate touches them all."""
    return (
        f"SELECT {_columns(shape)} FROM {table} WHERE {within(Partition.CURRENT, Partition.PRIOR)}"
    )


def touched_keys(shape: Shape, events: str) -> str:
    """Key columns, and for each record with an event the oldest sequence that it changes."""
    keys = shape.touching_list()
    return f"SELECT {keys}, {sql.oldest(shape)} AS __oldest FROM {events} GROUP BY {keys}"


def late_keys(shape: Shape, newest_versions: str) -> str:
    """Records with an event that is not newer than their newest stored version."""
    return (
        f"SELECT {shape.touching_list()}, min(__oldest) AS __oldest FROM {newest_versions} "
        f"WHERE __stored.late GROUP BY {shape.touching_list()}"
    )


def _columns(shape: Shape) -> str:
    return stored_columns(shape, located=True)
