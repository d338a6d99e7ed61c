"""What a reload changes: the loaded rows against Current, as events. Semantics section 8.

Pure SQL text. A row that is equal in all columns makes no event, so that an apply writes nothing
for it. NULL equals NULL, NaN equals NaN, and nested values are compared whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from polynya.lake.fold.shape import Shape, comparable
from polynya.lake.fold.sql import STORED_SEQUENCE, is_delete, joined, timestamp_literal, within
from polynya.lake.table.copy_state import Reloading
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.reload import DELETING
from polynya.model.contract import headers as h
from polynya.model.contract.headers import Partition
from polynya.model.contract.identifiers import literal, quote, shown
from polynya.model.errors import OperationError

#: Modes in which the loaded rows replace all others, compared with nothing.
REPLACING = ("drop_and_create", "truncate_and_insert")


@dataclass(frozen=True, slots=True)
class Comparison:
    """What tells that a record changed: a difference in `columns`, or a greater `newer`."""

    columns: tuple[str, ...]
    newer: str | None = None

    @classmethod
    def of(cls, dataset: ResolvedDataset, shape: Shape, reloading: Reloading) -> Comparison:
        """How a load is compared with the table of a dataset."""
        # A column that is excluded is in no load.
        values = tuple(name for name in shape.values if name not in shape.hidden)
        extracts = dataset.landing.extracts
        if extracts is not None and reloading.extract is not None:
            return cls(extracts.check_columns or values, extracts.updated_at)
        # A service writes the time of the load there, and of the change into a change.
        stamp = dataset.landing.delivery.timestamp_column
        return cls(tuple(name for name in values if name != stamp))


def events(shape: Shape, table: str, reloading: Reloading, comparison: Comparison) -> str:
    """Query of the events that a finished load makes of `table`, in the columns of Changes.

    Comparing gives `i` `u` `d`. Replacing gives `L` for every loaded row, after a truncate where
    what was there before ends with it.

    Raises OperationError when the table lacks a column to compare.
    """
    if reloading.mode not in REPLACING:
        return _differences(shape, table, reloading, _differs(shape, comparison))
    loaded = _event(shape, "'L'", "l", reloading, suffix="b")
    rows = f"SELECT {loaded} FROM ({_loaded(shape, table)}) l WHERE l.__live"
    if reloading.mode == "drop_and_create":
        return rows
    nothing = {name: f"CAST(NULL AS {shape.type_of(name)})" for name in shape.data}
    truncate = _columns(nothing, "'T'", reloading, suffix="a")
    return f"SELECT {truncate} UNION ALL {rows}"


def _differs(shape: Shape, comparison: Comparison) -> str:
    """Condition that the loaded row `l` is another version than the row `c` of Current."""
    newer = comparison.newer
    for name in (*comparison.columns, *filter(None, (newer,))):
        if name not in shape.columns:
            raise _nothing_to_compare(name)
    if newer is not None:
        loaded, known = (comparable(f"{a}.{quote(newer)}", shape.columns[newer]) for a in "lc")
        return f"{loaded} IS NOT NULL AND coalesce({loaded} > {known}, true)"
    same = (
        f"{comparable(f'l.{quote(name)}', shape.columns[name])} <=> "
        f"{comparable(f'c.{quote(name)}', shape.columns[name])}"
        for name in comparison.columns
    )
    return f"NOT ({joined(same, 'AND') or 'true'})"


def _differences(shape: Shape, table: str, reloading: Reloading, changed: str) -> str:
    absent = "'d'" if reloading.mode == DELETING else "NULL"
    operation = (
        f"CASE WHEN l.__live IS NULL THEN IF(c.__live, {absent}, NULL) "
        "WHEN NOT l.__live THEN IF(c.__live, 'd', NULL) "
        f"WHEN NOT coalesce(c.__live, false) THEN 'i' WHEN {changed} THEN 'u' END"
    )
    # What changed after the load began is newer than what was loaded.
    newer = f"coalesce(c.__seq > {literal(reloading.sequence)}, false)"
    sides = {name: f"IF(l.__live, l.{quote(name)}, NULL)" for name in shape.values}
    sides |= {name: f"coalesce(l.{quote(name)}, c.{quote(name)})" for name in shape.keys}
    joined = (
        f"SELECT {', '.join(f'{sides[name]} AS {quote(name)}' for name in shape.data)}, "
        f"IF(l.__live, l.__ts, NULL) AS __ts, {operation} AS __op "
        f"FROM ({_loaded(shape, table)}) l "
        f"FULL OUTER JOIN ({_current(shape, table)}) c ON {shape.key_match('l', 'c')} "
        f"WHERE NOT {newer}"
    )
    selected = _event(shape, "__op", "f", reloading)
    return f"SELECT {selected} FROM ({joined}) f WHERE __op IS NOT NULL"


def _loaded(shape: Shape, table: str) -> str:
    """One row for each loaded record: of several with one key the newest, else the greatest.

    `__live` is false for a row that only says that its record is deleted.
    """
    content = ", ".join(f"{literal(name)}, {quote(name)}" for name in sorted(shape.data))
    order = (
        f"{h.CHANGE_IDENTIFIER} DESC, {h.SEQUENCE_TAIL} DESC NULLS LAST, __live, "
        f"to_json(named_struct({content})) DESC"
    )
    names = ", ".join(map(quote, shape.data))
    return (
        f"SELECT {names}, __ts, __live FROM (SELECT *, row_number() OVER "
        f"(PARTITION BY {shape.key_list()} ORDER BY {order}) AS __rank FROM "
        f"(SELECT *, {h.OPERATION} = 'L' AS __live, {h.TIMESTAMP} AS __ts FROM {table} "
        f"WHERE {within(Partition.RELOAD)} AND {h.OPERATION} IN ('L', 'D'))) "
        "WHERE __rank = 1"
    )


def _current(shape: Shape, table: str) -> str:
    return (
        f"SELECT {', '.join(map(quote, shape.data))}, "
        f"NOT ({is_delete()}) AS __live, {STORED_SEQUENCE} AS __seq "
        f"FROM {table} WHERE {within(Partition.CURRENT)}"
    )


def _event(
    shape: Shape, operation: str, alias: str, reloading: Reloading, *, suffix: str = ""
) -> str:
    data = {name: f"{alias}.{quote(name)}" for name in shape.data}
    return _columns(data, operation, reloading, suffix=suffix, time=f"{alias}.__ts")


def _columns(
    data: Mapping[str, str],
    operation: str,
    reloading: Reloading,
    *,
    suffix: str = "",
    time: str = "NULL",
) -> str:
    headers = {
        h.CHANGE_IDENTIFIER: literal(reloading.place),
        h.SEQUENCE_TAIL: literal(reloading.tail + suffix),
        h.SOURCE_POSITION: "CAST(NULL AS STRING)",
        h.OPERATION: operation,
        h.TIMESTAMP: f"coalesce({time}, {timestamp_literal(reloading.started_at)})",
        h.UNSENT: "CAST(NULL AS STRING)",
        h.OLD_KEY: "CAST(NULL AS STRING)",
    }
    columns = {**{quote(name): value for name, value in data.items()}, **headers}
    return ", ".join(f"{value} AS {name}" for name, value in columns.items())


def _nothing_to_compare(column: str) -> OperationError:
    return OperationError(
        "POLYNYA-LAKE-021",
        f"extracts shall be compared by {shown(column)}, and the table has no such column",
        where=f"column {shown(column)}",
        state="the extract is kept beside Current, which is as before",
        fix="correct `check_columns` or `updated_at` in `extracts`, and run again",
    )
