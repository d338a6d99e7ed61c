"""Which tables of a capture are compared, and why others are not."""

from __future__ import annotations

import pytest

from polynya.capture.compare.compare import ComparedTable
from polynya.capture.source import SourceTable
from polynya.engine.commands.compare import NotCompared, subject_of, without_view
from polynya.model.config.capture import CaptureLanding
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.task import StorageTask, resolved

TABLE = SourceTable("public.orders", (), ("id",))


def capture(**more):
    given = {
        "apiVersion": "polynya/v1", "kind": "landing", "name": "shop_db", "connection": "shop",
        "tables": {"include": ["public.*"]},
    }  # fmt: skip
    return CaptureLanding.model_validate(given | more)


def dataset(**more) -> ResolvedDataset:
    given = {
        "apiVersion": "polynya/v1", "kind": "storage", "name": "shop", "schema": "shop",
        "landing": {"path": "shop_db", "format": "debezium"},
        "datasets": [{"name": "orders", "source": "public.orders", **more}],
    }  # fmt: skip
    task = StorageTask.model_validate(given)
    return resolved(task, task.datasets[0])


def subject(landing=None, of=None, *, state="loaded", suspended=False, table=TABLE):
    return subject_of(
        landing or capture(), table, of or dataset(), state=state, suspended=suspended
    )


def test_a_loaded_table_is_compared_by_its_key_without_what_is_masked():
    landing = capture(
        mask={"public.*": {"ssn": "drop"}, "public.people": {"mail": {"truncate": 3}}},
        rows={"public.orders": "region = 'eu'"},
    )

    assert subject(landing) == ComparedTable(
        "public.orders", "shop.orders", ("id",), frozenset({"ssn"}), "region = 'eu'"
    )


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"state": "loading"}, "its load is not complete: loading"),
        ({"state": None}, "its load is not complete: not captured"),
        ({"suspended": True}, "the dataset is suspended"),
    ],
)
def test_a_table_that_is_not_there_yet_fails(given, why):
    assert subject(**given) == NotCompared("public.orders", "shop.orders", why, fails=True)


@pytest.mark.parametrize(
    ("landing", "of", "why"),
    [
        ({"load": {"filter": {"public.orders": "id > 5"}}}, {}, "only a part of it was loaded"),
        ({}, {"mode": "append_only"}, "it is append-only"),
    ],
)
def test_a_view_that_is_not_the_table_by_design_is_left_out(landing, of, why):
    found = subject(capture(**landing), dataset(**of))

    assert isinstance(found, NotCompared)
    assert not found.fails
    assert why in found.why


def test_a_table_without_a_key_is_compared_with_a_view_of_events():
    found = subject(of=dataset(mode="append_only"), table=SourceTable("public.orders", (), ()))

    assert isinstance(found, ComparedTable)
    assert found.key == ()


def test_a_table_that_no_task_has_fails():
    assert without_view([TABLE], ["public.lines"]) == [
        NotCompared("public.orders", None, "no storage task has made a table of it", fails=True)
    ]
