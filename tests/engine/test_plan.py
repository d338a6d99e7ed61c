"""What a changed configuration means, from facts alone."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from polynya.engine.commands.plan import DatasetFacts, StoredSize, plan_dataset
from polynya.lake.table.state import Books, CopyState, Membership, SourceColumns
from polynya.model.config.dataset import Events, Kept, Landed, Relations, ResolvedDataset, recorded
from polynya.model.config.evolution import SchemaEvolution
from polynya.model.config.layout import RowRetention, parse_partition, parse_sort
from polynya.model.config.mapping import MappedColumn, mapping_of
from polynya.model.types import parse_type
from tests.settings import with_settings

USERS = ResolvedDataset(
    task="users",
    name="users",
    relations=Relations(
        schema="shop",
        view="users",
        history_view="users__history",
        changes_view="users__changes",
        internal_schema="shop_internal",
        internal_table="users_internal",
    ),
    landing=Landed(format="json", folder="users", glob="*.json"),
    events=Events(keys=("id",), sequence_by=("seq",), except_columns=("seq",)),
    kept=Kept(mode="merge"),
)


def written(dataset: ResolvedDataset = USERS, **more) -> CopyState:
    """The state of a table that was written with these settings."""
    return CopyState(
        columns=SourceColumns(
            schema={"id": "bigint", "name": "string", "city": "string", "seq": "bigint"},
            keys=["id"],
        ),
        membership=Membership(task=dataset.task),
        books=Books(totals={"rows_in": 3, "rows_out": 3}),
        settings=recorded(dataset, {}, has_rows=False),
        **more,
    )


def changes(dataset: ResolvedDataset, copy: CopyState | None, **facts):
    return plan_dataset(DatasetFacts(dataset, copy, **facts)).changes


def kinds(dataset: ResolvedDataset, copy: CopyState | None, **facts):
    return [(one.kind, one.action, one.destructive) for one in changes(dataset, copy, **facts)]


def test_the_same_settings_change_nothing():
    assert changes(USERS, written()) == ()


def test_what_a_table_remembers_survives_json():
    settings = with_settings(
        USERS,
        columns={"a": parse_type("decimal(9,2)")},
        schema_evolution=SchemaEvolution(drop_column="apply"),
    )
    state = CopyState.from_json(written(settings).to_json())

    assert changes(settings, state) == ()


def test_a_dataset_without_a_table_is_new():
    assert kinds(USERS, None) == [("new_dataset", "apply", False)]


def test_a_table_of_an_older_version_remembers_no_settings():
    older = replace(written(), settings={})

    assert changes(with_settings(USERS, history=True, glob="*"), older) == ()
    assert kinds(with_settings(USERS, keys=("name",)), older) == [("keys", "decide", False)]


def test_history_begins_when_it_is_switched_on():
    assert [one.what for one in changes(with_settings(USERS, history=True), written())] == [
        "history: false → true",
        "new views: shop.users__history, shop.users__history_stored",
        "views recreated: shop.users",
    ]


def test_history_that_is_switched_off_takes_its_view_and_its_versions():
    plan = plan_dataset(DatasetFacts(USERS, written(with_settings(USERS, history=True))))

    assert [(one.kind, one.destructive) for one in plan.changes] == [
        ("history_off", True),
        ("views", False),
        ("views", True),
    ]
    assert plan.stale_views == ("shop.users__history", "shop.users__history_stored")


def test_columns_come_and_go_with_the_views():
    now = with_settings(USERS, except_columns=("seq", "city", "not_met_yet"))

    assert [one.what for one in changes(now, written())] == [
        "excluded: city",
        "views recreated: shop.users, shop.users__changes, shop.users__current_stored",
    ]
    assert [one.what for one in changes(USERS, written(now))] == [
        "no longer excluded: city",
        "views recreated: shop.users, shop.users__changes, shop.users__current_stored",
    ]


@pytest.mark.parametrize(
    ("before", "now", "views"),
    [
        ({"history": True}, {"coalesce_unchanged": True}, "shop.users__history"),
        (
            {"history": True, "coalesce_unchanged": True},
            {"track_history_columns": ("name",)},
            "shop.users__history",
        ),
    ],
)
def test_only_views_whose_sql_differs_are_recreated(before, now, views):
    old = with_settings(USERS, **before)
    found = changes(with_settings(old, **now), written(old))

    assert [one.what for one in found] == [f"views recreated: {views}"]


@pytest.mark.parametrize(("before", "now"), [("hard", "soft"), ("soft", "hard")])
def test_a_changed_mode_of_deletes_says_what_becomes_of_deleted_records(before, now):
    old = with_settings(USERS, delete_mode=before)
    change, views = changes(with_settings(USERS, delete_mode=now), written(old))

    assert change.what == f"delete_mode: {before} → {now}"
    assert "from now on" in change.means
    assert ("do not come back" if now == "soft" else "no longer shows") in change.means
    assert change.destructive == (now == "hard")
    assert views.what == "views recreated: shop.users, shop.users__current_stored"


def test_views_of_another_name_take_the_place_of_the_old_ones():
    plan = plan_dataset(DatasetFacts(with_settings(USERS, changes_view="users_log"), written()))

    assert [one.what for one in plan.changes] == [
        "new views: shop.users_log",
        "views dropped: shop.users__changes",
    ]
    assert plan.stale_views == ("shop.users__changes",)


def test_keys_cannot_change_under_rows():
    now = with_settings(USERS, keys=("id", "name"))
    (change,) = changes(now, written())

    assert (change.kind, change.action) == ("keys", "decide")
    assert change.what == "keys: [id] → [id, name]"
    assert "POLYNYA-LAKE-010" in change.means
    assert changes(now, replace(written(), books=Books())) == ()


@pytest.mark.parametrize("lasting", [{"sequence_by": ("at",)}, {"format": "debezium"}])
def test_another_order_needs_a_full_reload_and_is_not_forgotten(lasting):
    now = with_settings(USERS, **lasting)
    before = written()
    after = replace(before, settings=recorded(now, before.settings, has_rows=True))

    for state in (before, after):
        assert kinds(now, state) == [("full_reload", "decide", False)]
    assert changes(USERS, after) == ()


def test_native_formats_may_follow_each_other():
    assert kinds(with_settings(USERS, format="parquet"), written()) == []


def test_a_table_that_becomes_append_only_needs_a_full_reload():
    assert ("full_reload", "decide", False) in kinds(
        with_settings(USERS, mode="append_only"), written()
    )


@pytest.mark.parametrize(
    "later",
    [
        {"glob": "*.jsonl"},
        {"timestamp": "at"},
        {"apply_as_deletes": "op = 'D'"},
        {"columns": {"name": parse_type("string")}},
        {"tombstone_retention": timedelta(days=1)},
        {"changes_retention": "keep"},
        {"on_bad_record": "stop"},
        {"schema_evolution": SchemaEvolution(add_column="ignore")},
    ],
)
def test_settings_of_later_records_are_left_to_the_next_run(later):
    assert kinds(with_settings(USERS, **later), written()) == [("setting", "run", False)]


def test_events_that_are_no_longer_kept_are_lost():
    keeping = with_settings(USERS, changes_retention=timedelta(days=30))

    assert kinds(USERS, written(keeping)) == [("setting", "run", True)]


def test_a_renamed_task_takes_its_tables_along_unless_the_old_one_is_still_there():
    now = with_settings(USERS, task="people")

    assert kinds(now, written(), tasks=frozenset({"people"})) == [("task", "apply", False)]
    assert kinds(now, written(), tasks=frozenset({"people", "users"})) == [
        ("task", "decide", False)
    ]


def test_a_table_that_is_left_out_stays():
    assert kinds(USERS, written(), included=False) == [("excluded", "nobody", False)]


def test_a_declared_type_that_a_table_cannot_reach_promises_nothing() -> None:
    before = written()
    columns = {
        "seq": parse_type("double"),
        "id": parse_type("bigint"),
        "name": parse_type("binary"),
    }
    now = with_settings(USERS, columns=columns)

    found = [one for one in changes(now, before) if one.kind == "type_out_of_reach"]

    assert [one.what for one in found] == [
        "columns: seq is bigint, double is declared",
        "columns: name is string, binary is declared",
    ]
    assert {one.action for one in found} == {"decide"}
    assert "new `name`" in found[0].means


def test_a_declared_type_that_takes_a_rewrite_says_how_much_is_written() -> None:
    before = written()
    now = with_settings(USERS, columns={"city": parse_type("bigint"), "seq": parse_type("int")})
    stored = StoredSize(rows=1200, size_bytes=7 * 2**19, files=7)

    (change,) = (one for one in changes(now, before, stored=stored) if one.kind != "setting")

    assert (change.kind, change.action, change.destructive) == ("type_rewritten", "apply", False)
    assert change.what == "columns: city is string, bigint is declared"
    assert "rewrites 1,200 rows in 7 files (3.5 MiB) with bigint" in change.means
    # A run in between has read with the declared type; the table still lacks it.
    ran = replace(before, settings=recorded(now, {}, has_rows=False))
    assert kinds(now, ran, stored=stored) == [("type_rewritten", "apply", False)]
    left_out = with_settings(now, except_columns=("seq", "city"))
    assert not any(one.kind == "type_rewritten" for one in changes(left_out, ran))


def test_a_name_that_the_table_does_not_have_is_to_be_corrected() -> None:
    before = written()
    before = replace(before, columns=replace(before.columns, named=["id", "seq"]))

    (told, *_) = (
        one
        for one in changes(with_settings(USERS, timestamp="citty"), before)
        if one.kind == "unknown_column"
    )

    assert (
        told.what
        == "`timestamp` names `citty`, which the table does not have; did you mean `city`?"
    )
    assert told.action == "decide"
    assert not any(one.kind == "unknown_column" for one in changes(USERS, before))
    # Tables of older versions hold nothing of it.
    assert not any(
        one.kind == "unknown_column"
        for one in changes(with_settings(USERS, timestamp="citty"), written())
    )


def test_a_changed_layout_rewrites_nothing_at_once():
    laid_out = with_settings(
        USERS,
        partition_by=(parse_partition("truncate(2, city)"),),
        sort_by=(parse_sort("name desc"),),
        file_bytes=2**28,
    )

    found = changes(laid_out, written())

    assert [(one.kind, one.what, one.action) for one in found] == [
        ("layout", "partition_by: not set → [truncate(2, city)]", "apply"),
        ("layout", "sort_by: not set → [name desc]", "apply"),
        ("layout", "target_file_size: not set → 268,435,456 bytes", "apply"),
    ]
    assert all("until maintenance rewrites them" in one.means for one in found)
    assert changes(laid_out, written(laid_out)) == ()
    (back, *_) = changes(USERS, written(laid_out))
    assert back.what == "partition_by: [truncate(2, city)] → not set"


def test_a_transform_that_a_column_is_not_for_is_for_people_to_decide():
    (found,) = changes(
        with_settings(USERS, partition_by=(parse_partition("day(name)"),)), written()
    )

    assert (found.kind, found.action) == ("layout", "decide")
    assert "POLYNYA-CFG-042" in found.means
    assert "`name`: `day` is for date" in found.means


def test_retention_of_rows_takes_something_away():
    kept = with_settings(USERS, retention=RowRetention(column="city", keep=timedelta(days=90)))

    (found,) = changes(kept, written())

    assert found.what == "retention: not set → city 90d"
    assert found.destructive
    assert not changes(USERS, written(kept))[0].destructive


def test_a_changed_mapping_holds_for_later_records():
    mapped = replace(
        USERS, mapping=mapping_of((MappedColumn(name="n", expression="a.b"),), None, "x")
    )
    before = written()
    older = replace(before, settings={k: v for k, v in before.settings.items() if k != "mapping"})

    for copy in (before, older):
        found = [one for one in changes(mapped, copy) if one.kind == "setting"]
        assert [(one.what, one.action) for one in found] == [
            ("where: not set → x", "run"),
            ("mapping: [] → [n = a.b]", "run"),
        ]
