"""The live views in DuckDB's SQL over stored rows, for what one statement asks of them.

Made from their one text by way of Trino's, as `mirror/duckdb.py`. Where the rows that are there
would make the two engines decide by different texts, or compare differently, it is refused.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from polynya.lake.fold.live_views import definitions
from polynya.lake.fold.shape import Shape
from polynya.lake.fold.sql import STORED_SEQUENCE
from polynya.mirror.duckdb import duckdb_sql
from polynya.mirror.embedded.refusal import NotEmbeddedError
from polynya.mirror.embedded.typed import is_key, quoted
from polynya.mirror.trino import shown_columns, translated
from polynya.mirror.trino_types import has_same_text
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.contract import headers as h
from polynya.model.contract.headers import Partition
from polynya.model.contract.identifiers import quote_path
from polynya.model.datatypes import BINARY, DataType, Decimal, storage_type

_SCHEMA = "polynya"


@dataclass(frozen=True, slots=True)
class LiveView:
    """A view over the stored rows of a relation: SQL, and what it reads of them.

    `quiet` are the columns whose values count where nothing is pending.
    """

    sql: str
    columns: frozenset[str]
    quiet: frozenset[str]
    partitions: frozenset[Partition]
    folds: bool


def columns_of(dataset: ResolvedDataset, shape: Shape, view: str) -> dict[str, DataType] | None:
    """Names and types of the columns of a view in their order; None if there is no such view."""
    sql = definitions(dataset, shape, "t").get(view)
    if sql is None or not shape.columns:
        return None
    return {name: storage_type(kind) for name, kind in shown_columns(sql, shape).items()}


def live_view(
    dataset: ResolvedDataset, shape: Shape, view: str, *, used: Collection[str], stored: str
) -> LiveView:
    """A view with at least the columns `used`, over the relation `stored`.

    Raises:
        NotEmbeddedError: it has no translation, or needs more than is translated.
    """
    _check_plain(shape)
    narrow = _narrowed(shape, used)
    text = definitions(dataset, narrow, quote_path(_SCHEMA, stored))[view]
    try:
        sql = duckdb_sql(translated(view, text, narrow).sql, stored, stored)
        names = {one.name for one in sqlglot.parse_one(sql, read="duckdb").find_all(exp.Column)}
    except SqlglotError as error:
        raise NotEmbeddedError(f"no translation of the view {view}") from error
    # The columns of the table that the text names, and those that tell its ties.
    columns = {*narrow.columns, *names.intersection(h.HEADER_NAMES), h.PARTITION}
    if view == dataset.relations.changes_view:
        return LiveView(sql, frozenset(columns), frozenset(columns), _CHANGES, folds=False)
    if shape.append_only:
        current = frozenset({Partition.CURRENT})
        return LiveView(sql, frozenset(columns), frozenset(columns), current, folds=False)
    if view == dataset.relations.history_view and shape.coalesce:
        _check_runs(shape)
    columns |= {h.CHANGE_IDENTIFIER, h.SEQUENCE_TAIL}
    quiet = columns
    if view != dataset.relations.history_view:
        # Rows of Current as they are; of what is folded there is none.
        quiet = columns & {*used, h.PARTITION, h.OPERATION}
    return LiveView(sql, frozenset(columns), frozenset(quiet), _ALL, folds=True)


def check_fold(dataset: ResolvedDataset, shape: Shape, view: str) -> None:
    """Raise NotEmbeddedError where a fold of pending changes is Spark's alone."""
    keys = [shape.columns[key] for key in shape.keys]
    if not all(is_key(key) for key in keys):
        raise NotEmbeddedError("pending changes of keys that are no plain values")
    hashed = view in {dataset.relations.history_view, dataset.relations.headers_view}
    if hashed and not all(_has_same_hash(key) for key in keys):
        raise NotEmbeddedError("the key hash of pending changes, whose text is Spark's")


def ties(shape: Shape, stored: str) -> str:
    """SQL of the pending events that share their place with another event of the record.

    Which of them counts may be decided by a hash of Spark's text of them.
    """
    keys = ", ".join(map(quoted, shape.keys))
    events = f"SELECT {keys}, {STORED_SEQUENCE} AS __seq FROM {stored} WHERE {h.PARTITION}"
    pending = f"{events} = '{Partition.CHANGES}'"
    applied = f"{events} IN ('{Partition.CURRENT}', '{Partition.PRIOR}')"
    return (
        f"(SELECT 1 FROM ({pending}) GROUP BY {keys}, __seq HAVING count(*) > 1) UNION ALL "
        f"(SELECT 1 FROM ({pending}) SEMI JOIN ({applied}) USING ({keys}, __seq))"
    )


_CHANGES = frozenset({Partition.CHANGES, Partition.RETAINED})
_ALL = frozenset({Partition.CURRENT, Partition.PRIOR, Partition.CHANGES})


def _narrowed(shape: Shape, used: Collection[str]) -> Shape:
    """The shape without columns that nobody asked for and on which no other one depends."""
    needed = {*shape.keys, *shape.partial, *used}
    if shape.coalesce:
        return shape
    kept = {name: kind for name, kind in shape.columns.items() if name in needed}
    return replace(shape, columns=kept or dict(list(shape.columns.items())[:1]))


def _check_plain(shape: Shape) -> None:
    """Other columns than a statement asks for may decide which rows are there, or their values."""
    if shape.expired is not None:
        raise NotEmbeddedError("rows that have left by their age")
    if shape.bridged:
        raise NotEmbeddedError("columns that were given another type")


def _check_runs(shape: Shape) -> None:
    tracked = shape.tracked if shape.tracked is not None else shape.data
    if not all(is_key(shape.columns[name]) for name in tracked):
        raise NotEmbeddedError("history that coalesces values which are not plain")


def _has_same_hash(key: DataType) -> bool:
    return key == BINARY or (has_same_text(key) and not isinstance(key, Decimal))
