"""The SQL of the live views: plain Iceberg in, fresh rows out (semantics section 7).

Records without pending changes are read as they are stored; the fold runs only over records with
pending changes. This text is right in every commit. Where nothing is pending, the settled text of a
view is right, too: it reads stored rows and nothing else, so no engine plans a fold for it.

Where no value is inherited and the view shows no times and no header columns, only the newest event
of a record counts, and nothing is folded (`newest.py`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from typing import Final

from polynya import __version__
from polynya.lake.fold.fold import (
    event_columns,
    fold,
    stored_columns,
    with_clause,
)
from polynya.lake.fold.newest import current_by_places, current_of_newest
from polynya.lake.fold.shape import Shape, comparable
from polynya.lake.fold.sql import (
    IS_OPEN_DELETE,
    STORED_SEQUENCE,
    bridged,
    is_delete,
    joined,
    key_hash,
    live_current,
    within,
)
from polynya.model import headers as h
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.headers import Partition
from polynya.model.names import quote
from polynya.model.promotion import storage_type
from polynya.model.types import BINARY, BOOLEAN, STRING, TIMESTAMP, DataType

HISTORY_COLUMNS: tuple[str, ...] = (
    h.KEY_HASH,
    h.FROM_TIMESTAMP,
    h.TO_TIMESTAMP,
    "hdr__store",
    h.OPERATION,
    "hdr__deleted",
    h.WAS_CURRENT_FROM,
    h.WAS_CURRENT_TO,
)
#: Those that are the same before and after an apply.
STABLE_HISTORY_COLUMNS: tuple[str, ...] = (
    h.KEY_HASH,
    h.FROM_TIMESTAMP,
    h.TO_TIMESTAMP,
    h.OPERATION,
    "hdr__deleted",
)
#: Header columns of Current that its header variant shows.
CURRENT_HEADERS: tuple[str, ...] = (
    h.KEY_HASH,
    h.FROM_TIMESTAMP,
    h.OPERATION,
    h.INSERTED_TIMESTAMP,
    h.MODIFIED_TIMESTAMP,
    h.CHANGE_IDENTIFIER,
)
#: Types of the header columns that a view may show next to the data.
HEADER_TYPES: Final[Mapping[str, DataType]] = {
    h.KEY_HASH: BINARY,
    h.FROM_TIMESTAMP: TIMESTAMP,
    h.TO_TIMESTAMP: TIMESTAMP,
    h.TIMESTAMP: TIMESTAMP,
    h.INSERTED_TIMESTAMP: TIMESTAMP,
    h.MODIFIED_TIMESTAMP: TIMESTAMP,
    h.WAS_CURRENT_FROM: TIMESTAMP,
    h.WAS_CURRENT_TO: TIMESTAMP,
    h.CHANGE_IDENTIFIER: STRING,
    h.OPERATION: STRING,
    "hdr__store": STRING,
    "hdr__deleted": BOOLEAN,
}
_EVENT_HEADERS = (h.CHANGE_IDENTIFIER, h.OPERATION, h.TIMESTAMP, h.KEY_HASH, h.INSERTED_TIMESTAMP)
#: Property of a published view that holds its definition.
DEFINITION = "polynya.definition"
#: Property of a published view that says by what its other dialects were written.
TRANSLATED_BY = "polynya.translated-by"
_DELETED = f"({is_delete()})"


def definitions(
    dataset: ResolvedDataset, shape: Shape, table: str, *, settled: bool = False
) -> dict[str, str]:
    """The SQL of each view of a dataset by its name; `table` is the quoted internal table.

    Any engine can run it, where it is translated; Spark has a text of its own (`spark_views`).
    `settled`: it is run only over commits without pending changes.
    """
    table = bridged(shape, table)
    headers = _current_headers(dataset)
    stored = current_stored_view(shape, table, headers)
    current = _settled_current if settled else _live_current
    views = {
        dataset.relations.view: current(shape, table, headers),
        dataset.relations.changes_view: changes_view(shape, table),
        dataset.relations.current_stored_view: _young(
            shape, stored, (*headers, *_deleted_flag(shape))
        ),
    }
    if dataset.relations.headers_view is not None:
        views[dataset.relations.headers_view] = current(shape, table, CURRENT_HEADERS)
    if shape.history:
        view = settled_history_view(shape, table) if settled else history_view(shape, table)
        views[dataset.relations.history_view] = _young(shape, view, HISTORY_COLUMNS)
        stored = history_stored_view(shape, table)
        views[dataset.relations.history_stored_view] = _young(shape, stored, HISTORY_COLUMNS)
    return views


def spark_views(
    dataset: ResolvedDataset, shape: Shape, table: str, *, settled: bool = False
) -> dict[str, str]:
    """The same for Spark, where `table` is the Iceberg table itself, whose rows have places."""
    views = definitions(dataset, shape, table, settled=settled)
    by_places = _shows_newest_events(shape, _current_headers(dataset)) and not shape.bridged
    if by_places and not settled:
        views[dataset.relations.view] = _young(shape, current_by_places(shape, table), ())
    return views


def history_input(dataset: ResolvedDataset, shape: Shape, table: str) -> str:
    """The History view as queries of transforms read it: no row of it changes with an apply."""
    view = definitions(dataset, shape, table)[dataset.relations.history_view]
    columns = ", ".join([*map(quote, shape.data), *STABLE_HISTORY_COLUMNS])
    return f"SELECT {columns} FROM ({view})"


def columns_of_history_input(shape: Shape) -> dict[str, DataType]:
    """Names and types of the columns of `history_input`, in their order."""
    types = {**shape.columns, **{name: HEADER_TYPES[name] for name in STABLE_HISTORY_COLUMNS}}
    return {name: storage_type(kind) for name, kind in types.items()}


def reads_late_records_only(dataset: ResolvedDataset, shape: Shape, view: str) -> bool:
    """Whether a view needs stored versions only of records with an event that may be late.

    Then the newest event is all that it shows of other records with pending changes.
    """
    return view == dataset.relations.view and _shows_newest_events(shape, _current_headers(dataset))


def shows_newest_rows(dataset: ResolvedDataset, shape: Shape) -> bool:
    """Whether the live view shows of each record its newest change, or its row in Current.

    No row leaves it by its age.
    """
    headers = _current_headers(dataset)
    return shape.expired is None and _shows_newest_events(shape, headers)


def _current_headers(dataset: ResolvedDataset) -> tuple[str, ...]:
    return (h.FROM_TIMESTAMP,) if dataset.relations.from_timestamp else ()


def shown_headers(dataset: ResolvedDataset, shape: Shape) -> dict[str, tuple[str, ...]]:
    """The columns behind the data columns of each view, by the name of the view."""
    relations = dataset.relations
    flags = _deleted_flag(shape)
    views = {
        relations.view: (*_current_headers(dataset), *flags),
        relations.changes_view: (*_EVENT_HEADERS, "hdr__store"),
        relations.current_stored_view: (*_current_headers(dataset), *flags),
    }
    if relations.headers_view is not None:
        views[relations.headers_view] = (*CURRENT_HEADERS, *flags)
    if shape.history:
        views[relations.history_view] = HISTORY_COLUMNS
        views[relations.history_stored_view] = HISTORY_COLUMNS
    return views


def columns_of(dataset: ResolvedDataset, shape: Shape, view: str) -> dict[str, DataType] | None:
    """Names and types of the columns of a view in their order; None for an unknown view."""
    headers = shown_headers(dataset, shape).get(view)
    if headers is None or not shape.columns:
        return None
    types = {**shape.columns, **{name: HEADER_TYPES[name] for name in headers}}
    return {name: storage_type(kind) for name, kind in types.items()}


def _deleted_flag(shape: Shape) -> tuple[str, ...]:
    return ("hdr__deleted",) if shape.soft_delete and not shape.append_only else ()


def _live_current(shape: Shape, table: str, headers: Sequence[str]) -> str:
    view = current_view(shape, table, headers)
    return _young(shape, view, (*headers, *_deleted_flag(shape)))


def _settled_current(shape: Shape, table: str, headers: Sequence[str]) -> str:
    view = current_stored_view(shape, table, headers)
    return _young(shape, view, (*headers, *_deleted_flag(shape)))


def _young(shape: Shape, view: str, headers: Sequence[str]) -> str:
    """A view without rows that are so old that others of their age have left the table."""
    expired = shape.is_expired()
    if expired is None:
        return view
    columns = ", ".join([*map(quote, shape.data), *headers])
    return f"SELECT {columns} FROM ({view}) WHERE NOT {expired}"


def dialects_version() -> str:
    """By what the other dialects of a view are written."""
    return f"{__version__}, sqlglot {version('sqlglot')}"


def definition_of(shape: Shape, sql: str, stored: object = None) -> str:
    """The definition of a view with this text.

    `stored` tells the columns that the table has by now, where the shape does not know them.
    """
    # A view keeps the types that its columns had when it was made.
    types: object = [shape.type_of(name) for name in shape.data]
    if stored is not None:
        types = (types, stored)
    return hashlib.sha256(f"{types}\n{sql}".encode()).hexdigest()[:32]


def changes_view(shape: Shape, table: str) -> str:
    """Pending and retained change events; `hdr__store` tells them apart."""
    columns = ", ".join([*map(quote, shape.data), *_EVENT_HEADERS])
    return (
        f"SELECT {columns}, upper({h.PARTITION}) AS hdr__store FROM {table} "
        f"WHERE {within(Partition.CHANGES, Partition.RETAINED)}"
    )


def current_stored_view(shape: Shape, table: str, headers: Sequence[str] = ()) -> str:
    """Current as of the last apply: a scan of one partition."""
    if shape.append_only:
        return current_view(shape, table, headers)
    columns = [*map(quote, shape.data), *headers]
    if shape.soft_delete:
        columns.append(f"{_DELETED} AS hdr__deleted")
    return f"SELECT {', '.join(columns)} FROM {table} WHERE {live_current(shape)}"


def current_view(shape: Shape, table: str, headers: Sequence[str] = ()) -> str:
    """One row a record as of now; `headers` are columns of CURRENT_HEADERS to show behind the data.

    Engine times of a version that is still pending are NULL.
    """
    data = ", ".join([*map(quote, shape.data), *headers])
    if shape.append_only:
        rows = f"SELECT {data} FROM {table} WHERE {within(Partition.CURRENT)}"
        return f"{rows} AND coalesce({h.OPERATION} NOT IN ('D', 'T'), true)"
    if _shows_newest_events(shape, headers):
        return current_of_newest(shape, table)
    # A newest version is all that Current shows, so that older ones are only read where values are
    # inherited.
    inherits = _inherits(shape)
    # Since when a version is valid depends on whether it is the look that shows it first.
    inherits = inherits or shape.looks
    prior = within(Partition.PRIOR)
    if not inherits:
        prior += f" AND {IS_OPEN_DELETE if shape.history else is_delete()}"
    narrow = shape if inherits else replace(shape, history=False)
    kept = "__last AND NOT __gone" + ("" if shape.soft_delete else " AND NOT __del")
    kept += f" AND NOT ({shape.is_record()})" if shape.replaces else ""
    stored, folded = [data], [*map(quote, shape.data), *_folded_headers(shape, headers)]
    if shape.soft_delete:
        stored.append(f"{_DELETED} AS hdr__deleted")
        folded.append("__del AS hdr__deleted")
    quiet = (
        f"SELECT {', '.join(stored)} FROM {table} s {_without_pending(shape)} "
        f"WHERE {live_current(shape)}"
    )
    steps = _touched_events(narrow, table, f"{within(Partition.CURRENT)} OR ({prior})")
    rows = f"SELECT {', '.join(folded)} FROM folded WHERE {kept}"
    return f"{with_clause([*steps, *fold(narrow, 'events')])} {quiet} UNION ALL {rows}"


def _shows_newest_events(shape: Shape, headers: Sequence[str]) -> bool:
    return not (shape.append_only or _inherits(shape) or headers)


def _inherits(shape: Shape) -> bool:
    return bool(shape.partial) or shape.links or shape.soft_delete or shape.replaces


def _folded_headers(shape: Shape, headers: Sequence[str]) -> list[str]:
    """Header columns of Current as the fold knows them."""
    made = {
        h.KEY_HASH: key_hash(shape),
        h.FROM_TIMESTAMP: "__from",
        h.OPERATION: "__new_op",
        h.INSERTED_TIMESTAMP: "coalesce(__ins, IF(__new_op = 'L', __from, NULL))",
        h.MODIFIED_TIMESTAMP: "IF(__own, __stored.mod, NULL)",
        h.CHANGE_IDENTIFIER: "__ci",
    }
    return [f"{made[name]} AS {name}" for name in headers]


def history_view(shape: Shape, table: str) -> str:
    """All versions of all records, coalesced if the dataset asks for it."""
    stored = within(Partition.CURRENT, Partition.PRIOR)
    steps = [*_touched_events(shape, table, stored), *fold(shape, "events")]
    data = ", ".join(map(quote, shape.data))
    quiet = (
        f"SELECT {_version_columns(shape)}, {STORED_SEQUENCE} AS __seq "
        f"FROM {table} s {_without_pending(shape)} WHERE {_stored_versions(shape)}"
    )
    folded = (
        f"SELECT {data}, {key_hash(shape)}, __from, __to, "
        "upper(coalesce(__stored.part, 'changes')), __new_op, __del, "
        "__stored.wcf, __stored.wct, __seq FROM folded WHERE NOT __gone"
    )
    if shape.replaces:
        folded += f" AND NOT ({shape.is_record()})"
    steps.append(("versions", f"{quiet} UNION ALL {folded}"))
    if not shape.coalesce:
        columns = ", ".join([data, *HISTORY_COLUMNS])
        return f"{with_clause(steps)} SELECT {columns} FROM versions"
    return _in_runs(shape, steps)


def settled_history_view(shape: Shape, table: str) -> str:
    """The same where nothing is pending."""
    if not shape.coalesce:
        return history_stored_view(shape, table)
    columns = f"{_version_columns(shape)}, {STORED_SEQUENCE} AS __seq"
    return _in_runs(
        shape, [("versions", f"SELECT {columns} FROM {table} WHERE {_stored_versions(shape)}")]
    )


def history_stored_view(shape: Shape, table: str) -> str:
    """All stored versions, each as it is stored: a scan of two partitions, without coalescing."""
    return f"SELECT {_version_columns(shape)} FROM {table} WHERE {_stored_versions(shape)}"


def _stored_versions(shape: Shape) -> str:
    """Condition that a row of the internal table is a version that History shows."""
    stored = within(Partition.CURRENT, Partition.PRIOR)
    # What a record replaced shows in its elements; it has no values of its own.
    return f"{stored} AND NOT ({shape.is_record()})" if shape.replaces else stored


def _in_runs(shape: Shape, steps: list[tuple[str, str]]) -> str:
    """The last of the steps, `versions`, with one row for each run that changes nothing tracked."""
    return f"{with_clause([*steps, *_runs(shape)])} {_coalesced(shape)}"


def _version_columns(shape: Shape) -> str:
    """Select list of the columns of History over stored versions."""
    data = ", ".join(map(quote, shape.data))
    return (
        f"{data}, {h.KEY_HASH}, {h.FROM_TIMESTAMP}, {h.TO_TIMESTAMP}, "
        f"upper({h.PARTITION}) AS hdr__store, {h.OPERATION}, {_DELETED} AS hdr__deleted, "
        f"coalesce({h.WAS_CURRENT_FROM}, {h.MODIFIED_TIMESTAMP}) AS {h.WAS_CURRENT_FROM}, "
        f"{h.WAS_CURRENT_TO}"
    )


def _without_pending(shape: Shape) -> str:
    return f"LEFT ANTI JOIN touched k ON {shape.touching_match('s', 'k')}"


def _touched_events(shape: Shape, table: str, stored: str) -> list[tuple[str, str]]:
    """Keys of the pending changes, and the input of the fold of their records.

    A key may be there several times: to make it one costs every query a shuffle, also where nothing
    is pending.
    """
    touched = f"SELECT {shape.touching_list()} FROM {table} WHERE {within(Partition.CHANGES)}"
    events = (
        f"SELECT {event_columns(shape)} FROM {table} WHERE {within(Partition.CHANGES)} UNION ALL "
        f"SELECT {stored_columns(shape, located=False)} FROM {table} s "
        f"LEFT SEMI JOIN touched k ON {shape.touching_match('s', 'k')} WHERE {stored}"
    )
    return [("touched", touched), ("events", events)]


def _runs(shape: Shape) -> list[tuple[str, str]]:
    """Number the runs of versions that agree in all tracked columns; a delete is its own run."""
    tracked = shape.tracked if shape.tracked is not None else shape.data
    names = [name for name in tracked if name not in shape.keys]
    over = f"OVER (PARTITION BY {shape.key_list()} ORDER BY __seq)"
    same = [f"{_comparable(shape, n)} <=> lag({_comparable(shape, n)}) {over}" for n in names] or [
        "true"
    ]
    starts = (
        f"NOT ({joined(same, 'AND')}) OR hdr__deleted OR coalesce(lag(hdr__deleted) {over}, true)"
    )
    return [
        ("marked", f"SELECT *, CAST({starts} AS INT) AS __new_run FROM versions"),
        (
            "runs",
            f"SELECT *, sum(__new_run) {over[:-1]} ROWS UNBOUNDED PRECEDING) AS __run FROM marked",
        ),
    ]


def _comparable(shape: Shape, name: str) -> str:
    return comparable(quote(name), shape.columns[name])


def _coalesced(shape: Shape) -> str:
    """Each run starts with its first version and ends with its last one, whose values it shows."""
    over = f"OVER (PARTITION BY {shape.key_list()}, __run"
    first = {h.FROM_TIMESTAMP: "min", h.WAS_CURRENT_FROM: "min"}
    columns = [quote(name) for name in shape.data]
    columns += [
        f"{first[name]}({name}) {over}) AS {name}" if name in first else name
        for name in HISTORY_COLUMNS
    ]
    newest = f"row_number() {over} ORDER BY __seq DESC) AS __rank"
    inner = f"SELECT {', '.join(columns)}, {newest} FROM runs"
    visible = ", ".join([*map(quote, shape.data), *HISTORY_COLUMNS])
    return f"SELECT {visible} FROM ({inner}) WHERE __rank = 1"
