"""The live views as sources of dbt: the document of a `sources.yml`.

dbt renders the values of that file as Jinja templates, and dbt-duckdb writes names into SQL as they
are. So a name that would be a template, or needs quotes there, is left out and reported.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from sqlglot import exp
from sqlglot.errors import SqlglotError

from polynya.lake.fold.live_views import columns_of
from polynya.lake.fold.shape import Shape
from polynya.model import headers as h
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.names import Dialect, shown
from polynya.model.types import DataType
from polynya.query.dialects import type_in

_TEMPLATE: Final = re.compile(r"\{[{%#]")
_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
#: Header columns, as docs/other-engines.md explains them.
_HEADERS: Final[Mapping[str, str]] = {
    h.KEY_HASH: "SHA-1 of the key.",
    h.FROM_TIMESTAMP: "Start of the version's validity, by the source's clock.",
    h.TO_TIMESTAMP: "End of its validity, exclusive; NULL while the version is open.",
    h.TIMESTAMP: "Time of the event, by the source's clock.",
    h.INSERTED_TIMESTAMP: "When the record was first added, or the event copied.",
    h.MODIFIED_TIMESTAMP: "When the row was last written.",
    h.CHANGE_IDENTIFIER: "Digits that sort in the order of the dataset's events.",
    h.OPERATION: "L load, I insert, U update, D delete; small letters: found by comparing.",
    "hdr__store": "The part of the table that the row is from.",
    "hdr__deleted": "Whether the record is deleted.",
}


@dataclass(frozen=True, slots=True)
class Staleness:
    """How old the newest row of a view may be before `dbt source freshness` warns, or fails."""

    warn_after: timedelta | None = None
    error_after: timedelta | None = None


@dataclass(frozen=True, slots=True)
class DbtView:
    """A view as dbt reads it, and what was left out of it, each with the reason."""

    document: dict[str, Any]
    left_out: tuple[str, ...]


def source_tables(
    dataset: ResolvedDataset, shape: Shape, engine: Dialect, staleness: Staleness
) -> Iterator[DbtView]:
    """The views of a dataset, Current first; a view with an unusable name is left out whole."""
    relations, is_loaded = dataset.relations, engine is Dialect.DUCKDB
    views = {
        relations.view: ("current", "Live: the newest version of each record."),
        relations.headers_view: ("headers", "Live: the newest versions, with header columns."),
        relations.history_view: ("history", "Live: every version of each record."),
        relations.changes_view: ("changes", "Events that are pending, or kept."),
    }
    for view, (kind, text) in views.items():
        columns = columns_of(dataset, shape, view) if view is not None else None
        # `polynya.open`, which reads for dbt-duckdb, has no such view.
        if view is None or columns is None or (is_loaded and kind == "headers"):
            continue
        if reason := _unusable(view, engine):
            yield DbtView({}, (f"the view {shown(view)}: {reason}",))
            continue
        has_one_row = kind in {"current", "headers"} and not shape.append_only
        document: dict[str, Any] = {"name": view, "description": text}
        if is_loaded:
            read = {"plugin": "polynya", "dataset": relations.current, "view": kind}
            document["config"] = {"meta": read}
        document |= _freshness(columns, staleness)
        tested = shape.keys if has_one_row else ()
        described, left_out = _described(view, columns, engine, shape.keys, tested)
        yield DbtView(document | {"columns": described}, left_out)


def query_table(name: str, columns: Mapping[str, DataType], engine: Dialect) -> DbtView:
    """The view `schema.view` of a query, with its columns; nothing tells its rows apart."""
    _, _, view = name.partition(".")
    if reason := _unusable(view, engine):
        return DbtView({}, (f"the view {shown(view)}: {reason}",))
    document: dict[str, Any] = {"name": view, "description": "Live: the rows of a query."}
    if engine is Dialect.DUCKDB:
        read = {"plugin": "polynya", "dataset": name, "view": "current"}
        document["config"] = {"meta": read}
    described, left_out = _described(view, columns, engine, (), ())
    return DbtView(document | {"columns": described}, left_out)


def _described(
    view: str,
    columns: Mapping[str, DataType],
    engine: Dialect,
    keys: tuple[str, ...],
    tested: tuple[str, ...],
) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    """The columns of a view, and what is left out of them."""
    described, left_out = [], []
    for name, datatype in columns.items():
        text_of_type = type_of(datatype, engine)
        if _TEMPLATE.search(f"{name} {text_of_type}"):
            left_out.append(f"the column {shown(name)} of {view}: dbt takes it for a template")
        else:
            described.append(_column(name, text_of_type, keys, tested))
    return described, tuple(left_out)


def source_of(schema: str, project: str, tables: list[dict[str, Any]]) -> dict[str, Any]:
    """The source of a schema."""
    return {
        "name": schema,
        "description": f"Live views of the Polynya project {project}.",
        "schema": schema,
        "quoting": {"schema": True, "identifier": True},
        "tables": tables,
    }


def _unusable(name: str, engine: Dialect) -> str | None:
    if _TEMPLATE.search(name):
        return "dbt takes it for a template"
    if engine is Dialect.DUCKDB and not _PLAIN.fullmatch(name):
        return "dbt-duckdb does not quote the names of what it loads"
    return None


def _freshness(columns: Mapping[str, DataType], staleness: Staleness) -> dict[str, Any]:
    loaded = next((name for name in (h.FROM_TIMESTAMP, h.TIMESTAMP) if name in columns), None)
    limits = {
        name: _period(age)
        for name, age in (
            ("warn_after", staleness.warn_after),
            ("error_after", staleness.error_after),
        )
        if age is not None
    }
    if loaded is None or not limits:
        return {}
    return {"loaded_at_field": loaded, "freshness": limits}


def _period(age: timedelta) -> dict[str, Any]:
    minutes = max(1, -(-int(age.total_seconds()) // 60))
    for unit, length in (("day", 1440), ("hour", 60)):
        if minutes % length == 0:
            return {"count": minutes // length, "period": unit}
    return {"count": minutes, "period": "minute"}


def _column(
    name: str, text_of_type: str | None, keys: tuple[str, ...], tested: tuple[str, ...]
) -> dict[str, Any]:
    column: dict[str, Any] = {"name": name}
    if name in _HEADERS:
        column["description"] = _HEADERS[name]
    elif name in keys:
        column["description"] = "Key." if len(keys) == 1 else "Part of the key."
    if not _PLAIN.fullmatch(name) or name != name.lower():
        column["quote"] = True
    if text_of_type is not None:
        column["data_type"] = text_of_type
    if name in tested:
        column["data_tests"] = ["unique", "not_null"] if len(tested) == 1 else ["not_null"]
    return column


def type_of(datatype: DataType, engine: Dialect) -> str | None:
    """The type in which dbt reads a column in an engine, None where it cannot be written."""
    if engine is not Dialect.DUCKDB:
        return type_in(engine, datatype)
    # There `polynya.open` reads, with instants as they are.
    try:
        return exp.DataType.build(str(datatype), dialect="spark").sql("duckdb")
    except SqlglotError:
        # A field of a struct with a name that only quotes could hold.
        return None
