"""Settings that are well-formed and still wrong, and how defaults and datasets merge."""

from __future__ import annotations

from datetime import timedelta

import pytest
from pydantic import ValidationError

from polynya.model.checks import task_problems
from polynya.model.config.settings import Dataset
from polynya.model.config.sources import dataset_of_source, datasets_of_sources, included
from polynya.model.config.task import StorageTask, resolved


def a_task(*datasets, **settings):
    document = {
        "apiVersion": "polynya/v1",
        "kind": "storage",
        "name": "users",
        "schema": "shop",
        "landing": {"path": "users", "format": settings.pop("format", "json")},
        **settings,
    }
    if datasets:
        document["datasets"] = list(datasets)
    return StorageTask.model_validate(document)


USERS = {"name": "users", "keys": ["id"], "sequence_by": ["seq"]}


def problems(task):
    return [
        (".".join(map(str, p.path)), p.error.code[-3:], p.error.message)
        for p in task_problems(task)
    ]


def test_a_plain_task_has_no_problem():
    assert problems(a_task(USERS)) == []
    assert problems(a_task(format="debezium")) == []


def test_native_formats_need_datasets_keys_and_an_order():
    assert problems(a_task()) == [
        ("", "008", "format `json` needs `datasets` with at least one entry")
    ]
    assert [code for _, code, _ in problems(a_task({"name": "users"}))] == ["014", "015"]
    assert "`users`" in problems(a_task({"name": "users"}))[0][2]


def test_append_only_needs_neither():
    assert problems(a_task({"name": "users", "mode": "append_only"})) == []


@pytest.mark.parametrize(
    ("extra", "path"),
    [
        ({"track_history_columns": ["a"], "track_history_except": ["b"]}, "track_history_except"),
        ({"except_columns": ["id"]}, "except_columns"),
        ({"except_columns": ["a"], "track_history_columns": ["a"]}, "except_columns"),
        ({"keys": ["id", "id"]}, "keys"),
        ({"mode": "append_only", "history": True}, "history"),
        ({"mode": "append_only", "changes_retention": "keep"}, "changes_retention"),
        ({"mode": "append_only", "apply_as_deletes": "a = 1"}, "apply_as_deletes"),
    ],
)
def test_contradictions_are_found_at_the_setting(extra, path):
    assert [(p, c) for p, c, _ in problems(a_task({**USERS, **extra}))] == [
        (f"datasets.0.{path}", "016")
    ]


def test_extracts_need_keys_and_no_order():
    assert problems(a_task({"name": "users", "keys": ["id"], "extracts": {}})) == []
    assert [code for _, code, _ in problems(a_task({"name": "users", "extracts": {}}))] == ["014"]
    assert problems(a_task({"name": "users", "extracts": {}}, format="debezium")) == [
        ("datasets.0.extracts", "019", "not for formats `debezium`, `dms`, `replicate`")
    ]


@pytest.mark.parametrize(
    ("extra", "extracts", "path"),
    [
        ({"initial_load": "load/*"}, {}, "initial_load"),
        ({"ignore_null_updates": True}, {}, "ignore_null_updates"),
        ({"apply_as_truncates": "x = 1"}, {}, "apply_as_truncates"),
        ({"mode": "append_only"}, {}, "mode"),
        ({}, {"check_columns": ["a"], "updated_at": "b"}, "extracts.updated_at"),
        ({}, {"check_columns": ["id"]}, "extracts"),
        ({"except_columns": ["b"]}, {"updated_at": "b"}, "extracts"),
    ],
)
def test_what_extracts_cannot_have(extra, extracts, path):
    users = {"name": "users", "keys": ["id"], "extracts": extracts, **extra}
    assert [(p, c) for p, c, _ in problems(a_task(users))] == [(f"datasets.0.{path}", "016")]


@pytest.mark.parametrize("ignored", [["id"], ["b", "a"]])
def test_a_key_or_an_excepted_column_has_no_value_to_keep(ignored):
    users = {**USERS, "except_columns": ["a"], "ignore_null_updates": ignored}
    assert [p for p, _, _ in problems(a_task(users))] == ["datasets.0.ignore_null_updates"]


@pytest.mark.parametrize(
    "extracts", [{"each": "row"}, {"marker": "a/b"}, {"time_in_name": "%m"}, {"hard_deletes": "x"}]
)
def test_malformed_extracts_are_refused(extracts):
    with pytest.raises(ValidationError):
        a_task({"name": "users", "keys": ["id"], "extracts": extracts})


def test_sequence_columns_may_be_left_out_of_the_table():
    assert problems(a_task({**USERS, "except_columns": ["seq"]})) == []


def test_settings_of_the_other_family_of_formats_are_refused():
    native = problems(a_task({**USERS, "source": "w.users"}, include=["w.*"]))
    captured = problems(a_task({"name": "users", "path": "*"}, format="debezium"))

    assert [path for path, _, _ in native] == ["include", "datasets.0.source"]
    assert [path for path, _, _ in captured] == ["datasets.0.path"]


def test_duplicate_datasets_and_sources_are_found_whatever_their_case():
    twice = a_task(USERS, {**USERS, "name": "Users"})
    sources = a_task(
        {"name": "a", "source": "w.t"}, {"name": "b", "source": "w.t"}, format="debezium"
    )

    assert [path for path, _, _ in problems(twice)] == ["datasets.1.name"]
    assert [path for path, _, _ in problems(sources)] == ["datasets.1.source"]


def test_a_source_that_is_never_taken_is_found():
    task = a_task({"name": "a", "source": "x.t"}, include=["w.*"], format="debezium")

    assert [path for path, _, _ in problems(task)] == ["datasets.0.source"]


def test_resolving_fills_in_names_and_defaults():
    final = resolved(a_task(USERS, prefix="p_"), Dataset(name="users"))

    assert final.relations.internal == "shop_internal.p_users_internal"
    assert final.relations.view == "p_users"
    assert final.relations.history_view == "p_users__history"
    assert final.relations.changes_view == "p_users__changes"
    assert (final.kept.mode, final.kept.delete_mode, final.kept.history) == ("merge", "hard", False)
    assert final.kept.tombstone_retention == timedelta(days=30)
    assert resolved(a_task(format="debezium"), Dataset(name="users")).kept.mode is None


def test_a_dataset_wins_over_defaults_also_with_a_null_or_a_zero():
    defaults = {"timestamp": "ts", "history": True, "tombstone_retention": "1d"}
    own = {**USERS, "timestamp": None, "tombstone_retention": "0s"}
    task = a_task(own, defaults=defaults)

    final = resolved(task, task.datasets[0])

    assert (final.events.timestamp, final.kept.history) == (None, True)
    assert final.kept.tombstone_retention == timedelta(0)


def test_naming_one_tracking_list_replaces_the_default_of_both():
    own = {**USERS, "track_history_except": ["city"]}
    task = a_task(own, defaults={"track_history_columns": ["name"]})

    final = resolved(task, task.datasets[0])

    assert (final.kept.track_history_columns, final.kept.track_history_except) == ((), ("city",))


def test_sources_are_taken_by_globs_that_mind_the_case():
    task = a_task(format="debezium", include=["w.*", "x.a"], exclude=["w.tmp_*"])

    taken = [s for s in ("w.a", "W.a", "w.tmp_1", "x.a", "x.b") if included(task, s)]

    assert taken == ["w.a", "x.a"]


def test_a_source_feeds_its_declared_dataset_else_one_of_its_name():
    task = a_task({"name": "people", "source": "w.user table"}, format="debezium", prefix="p_")

    assert dataset_of_source(task, "w.user table").relations.view == "p_people"
    assert dataset_of_source(task, "w.orders").relations.view == "p_orders"
    assert dataset_of_source(task, "w.orders").landing.source == "w.orders"


def test_a_found_table_cannot_take_the_name_of_a_view():
    routes, (error,) = datasets_of_sources(
        a_task(format="debezium"), ["w.users__History", "w.users"]
    )

    assert sorted(routes) == ["w.users"]
    assert "both want the name" in error.message


def test_unusable_and_contested_source_names_do_not_stop_the_others():
    task = a_task(format="debezium")

    routes, errors = datasets_of_sources(task, ["b.t", "a.T", "a.x y", "a.ok"])

    assert sorted(routes) == ["a.T", "a.ok"]
    assert sorted(error.code for error in errors) == ["POLYNYA-CFG-013", "POLYNYA-CFG-022"]
