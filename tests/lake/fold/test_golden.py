"""The whole SQL of each shape, in `golden/`: a change of the fold shows in review.

`make golden` writes the files again; read what changed before you commit it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from polynya.lake.apply.folding import wrong_columns
from polynya.lake.copy import reload
from polynya.lake.fold import fold as versions
from polynya.lake.fold import key_changes, live_views, stored
from polynya.lake.fold.fold import TruncateEvent, as_sql, event_columns, fold, with_clause
from polynya.lake.fold.newest import current_by_places
from polynya.lake.fold.shape import Shape
from polynya.lake.fold.sql import timestamp_literal
from polynya.lake.fold.stored import apply_aggregates, rebuild_aggregates
from polynya.lake.table.state import Reloading
from polynya.model.types import parse_type
from tests.lake.fold.sql_layout import laid_out

GOLDEN = Path(__file__).parent / "golden"
NOW = datetime(2026, 1, 1, tzinfo=UTC)
TABLE = "`lake`.`shop_internal`.`users_internal`"

USERS = Shape(
    keys=("id",),
    columns={name: parse_type(text) for name, text in {"id": "bigint", "name": "string"}.items()},
)
HISTORY = replace(USERS, history=True)
#: Shapes whose Current is read in a way of its own.
CURRENT = (
    "current_only",
    "history",
    "soft_delete",
    "partial_updates",
    "types_history",
    "replaced_elements_history",
)
#: Those of which only the newest events count.
NEWEST = ("current_only", "history", "types_history")
#: A key of each kind that is written in its own way, and columns that Spark cannot compare.
TYPED = Shape(
    keys=("part", "at", "wall", "photo"),
    columns={
        name: parse_type(text)
        for name, text in {
            "part": "int", "at": "timestamp", "wall": "timestamp_ntz", "photo": "binary",
            "tags": "map<string,int>", "place": "struct<city:string,more:map<string,int>>",
            "odd ` name": "decimal(9,2)",
        }.items()
    },
    history=True,
)  # fmt: skip
#: Elements of records that replace them.
REPLACED = Shape(
    keys=("id", "line"),
    columns={name: parse_type("int") for name in ("id", "line", "amount")},
    history=True,
    replaced_within=("id",),
)
LEFT_OUT = {"partial": ("name",), "unsent_texts": {"name": ("name", "title")}}
TRUNCATES = [
    TruncateEvent("0000000000000007", None, 1_700_000_000_000_000),
    TruncateEvent("0000000000000009", "a", 0),
]

SHAPES = {
    "current_only": USERS,
    "history": HISTORY,
    "soft_delete": replace(USERS, soft_delete=True),
    "soft_delete_history": replace(HISTORY, soft_delete=True),
    "partial_updates": replace(USERS, **LEFT_OUT),
    "partial_updates_history": replace(HISTORY, **LEFT_OUT),
    "looks_history": replace(HISTORY, looks=True, **LEFT_OUT),
    "changed_keys_history": replace(HISTORY, links=True, **LEFT_OUT),
    "kept_events": replace(USERS, keeps_events=True, tells_operations=True),
    "types_history": TYPED,
    "replaced_elements_history": REPLACED,
}


def applied(shape: Shape, listed: str | None = None) -> str:
    """What an apply computes of the events and the stored versions in `events`."""
    steps = [*fold(shape, "events", truncates=listed), ("placed", versions.placed(shape))]
    rows = f"{versions.table_rows(shape, timestamp_literal(NOW))} FROM placed WHERE __write"
    return f"{with_clause(steps)} SELECT {rows}"


def statements() -> Iterator[tuple[str, str]]:
    """Name of the file and its statement."""
    for name, shape in SHAPES.items():
        yield f"apply/{name}", applied(shape)
        if name in CURRENT:
            yield f"view_current/{name}", live_views.current_view(shape, TABLE)
        if name in NEWEST:
            yield f"view_current_in_spark/{name}", current_by_places(shape, TABLE)
        if shape.history:
            yield f"view_history/{name}", live_views.history_view(shape, TABLE)
    listed = as_sql(TRUNCATES)
    for name in ("current_only", "history"):
        yield f"apply/truncates_{name}", applied(SHAPES[name], listed)
        shape = SHAPES[name]
        yield f"read/newest_versions_{name}", stored.newest(shape, TABLE, "touched")
        yield f"verify/{name}", f"SELECT {wrong_columns(shape)} FROM d FULL OUTER JOIN t"
    yield "read/pending_events", f"SELECT {event_columns(HISTORY)} FROM {TABLE}"
    yield "read/touched_keys", stored.touched_keys(TYPED, "events")
    yield "read/touched_by_looks", stored.touched_keys(SHAPES["looks_history"], "events")
    yield "read/late_keys", stored.late_keys(HISTORY, "newest")
    yield "read/older_versions", stored.older(HISTORY, TABLE, "late")
    yield "read/newest_versions_keys_only", stored.newest(USERS, TABLE, "touched", values=False)
    yield "read/every_version", stored.everything(HISTORY, TABLE)
    aggregates = [*apply_aggregates(SHAPES["kept_events"])], rebuild_aggregates()
    for name, counted in zip(("apply", "rebuild"), aggregates, strict=True):
        yield f"figures/{name}", f"SELECT {', '.join(counted)} FROM placed"
    yield "read/touched_records", stored.touched_keys(REPLACED, "events")
    yield from key_changing()
    yield from views()
    yield from reloads()


def key_changing() -> Iterator[tuple[str, str]]:
    """What changes of key add to an apply."""
    shape = SHAPES["changed_keys_history"]
    yield "changed_keys/former_keys", key_changes.with_former_keys(shape, "touched", "events")
    yield "changed_keys/stored_links", key_changes.stored_links(shape, TABLE)
    yield "changed_keys/new_heirs", key_changes.new_heirs(shape, "links", "known")
    yield "changed_keys/values_to_carry", key_changes.values_to_carry(shape, "events", None)
    yield "changed_keys/events_with_values", key_changes.with_values(shape, "events", "carried")


def views() -> Iterator[tuple[str, str]]:
    """Views that differ by more than the shape of the table."""
    headers = live_views.CURRENT_HEADERS
    yield "view_current/with_headers", live_views.current_view(HISTORY, TABLE, headers)
    append_only = replace(USERS, keys=(), append_only=True)
    yield "view_current/append_only", live_views.current_view(append_only, TABLE)
    coalesced = replace(HISTORY, coalesce=True)
    yield "view_history/coalesced", live_views.history_view(coalesced, TABLE)
    tracked = replace(TYPED, coalesce=True, tracked=("tags",))
    yield "view_history/coalesced_by_tracked_columns", live_views.history_view(tracked, TABLE)
    yield "view_changes", live_views.changes_view(USERS, TABLE)
    yield "view_current/stored", live_views.current_stored_view(HISTORY, TABLE)
    yield "view_history/stored", live_views.history_stored_view(HISTORY, TABLE)


def reloads() -> Iterator[tuple[str, str]]:
    """What a reload finds, in each mode."""
    begun = Reloading("compare_and_apply_with_deleted_rows", 1, NOW.isoformat(), place="0" * 35)
    every, newer = reload.ChangeCriteria(("name",)), reload.ChangeCriteria((), newer="name")
    for mode in (
        "compare_and_apply_with_deleted_rows",
        "compare_and_apply_without_deleted_rows",
        "drop_and_create",
        "truncate_and_insert",
    ):
        yield f"reload/{mode}", reload.events(USERS, TABLE, replace(begun, mode=mode), every)
    yield "reload/compared_by_updated_at", reload.events(USERS, TABLE, begun, newer)


@pytest.mark.parametrize(("name", "sql"), [pytest.param(*one, id=one[0]) for one in statements()])
def test_the_sql_is_the_golden_one(name: str, sql: str) -> None:
    file = GOLDEN / f"{name}.sql"
    text = laid_out(sql)
    if "POLYNYA_TEST_GOLDEN" in os.environ:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    assert file.is_file(), f"no {file.name}: `make golden` writes it"
    assert file.read_text() == text


def test_every_golden_file_is_compared() -> None:
    there = {str(file.relative_to(GOLDEN).with_suffix("")) for file in GOLDEN.rglob("*.sql")}

    assert there == {name for name, _ in statements()}


@pytest.mark.parametrize("name", SHAPES)
def test_the_layout_changes_nothing_but_white_space(name: str) -> None:
    sql = applied(SHAPES[name])

    assert "".join(laid_out(sql).split()) == "".join(sql.split())
