"""A view reads stored rows alone while nothing is pending, and it shows each change that waits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from polynya.engine import collaborators
from polynya.engine.dataset import WorkingDataset
from polynya.lake.fold.live_views import definitions, spark_views
from polynya.lake.read import catalog_views
from polynya.lake.table import dataset
from tests.lab.lab import Feed, Lab, drop, put
from tests.lake.read.test_views import view_metadata

#: Suffixes of the views that show pending changes.
LIVE = ("", "__history")


def settled(users: Feed) -> list[bool]:
    """Whether each live view reads stored rows alone."""
    texts = (view_metadata(users.lab, f"{users.view}{suffix}") for suffix in LIVE)
    return ["'changes'" not in text["representations"][0]["sql"] for text in texts]


def replacements(users: Feed) -> int:
    """How often the Current view was made or replaced."""
    folder = users.lab.project / "warehouse" / users.view.replace(".", "/")
    return len(list(folder.glob("metadata/*.metadata.json")))


def test_a_change_that_waits_shows_and_its_apply_settles_the_views_again(lab: Lab) -> None:
    users = lab.feed()

    users.apply(put(1, 1, name="Ann"))
    assert settled(users) == [True, True]
    users.copy(put(1, 2, name="Anna"), put(2, 2, name="Ben"))
    assert settled(users) == [False, False]
    assert users.current("id", "name") == [(1, "Anna"), (2, "Ben")]
    users.apply()

    assert settled(users) == [True, True]
    assert users.current("id", "name") == [(1, "Anna"), (2, "Ben")]
    assert [line[:2] for line in users.history("id", "name")] == [
        (1, "Ann"),
        (1, "Anna"),
        (2, "Ben"),
    ]


def test_a_first_load_and_small_batches_make_each_view_once(lab: Lab) -> None:
    users = lab.feed()
    users.apply(put(1, 1, name="Ann"))
    made = replacements(users)

    for sequence in (2, 3):
        users.apply(put(1, sequence, name="Anna"))

    assert settled(users) == [True, True]
    assert replacements(users) == made


def test_where_batches_wait_again_and_again_the_views_stay_as_they_are(lab: Lab) -> None:
    users = lab.feed(task={"apply": {"max_pending_files": 2}})
    users.copy(put(1, 1, name="x"))
    made = replacements(users)

    for sequence in range(2, 6):
        users.land(put(1, sequence, name="x"))
        users.run("policy")

    steps = [one["summary"]["polynya.step"] for one in users.table().table.metadata()["snapshots"]]
    assert [step for step in steps if step.startswith("copy")][1:] == ["copy+apply", "copy"] * 2
    assert settled(users) == [False, False]
    assert replacements(users) == made


def test_a_run_that_dies_before_its_first_pending_change_leaves_right_views(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    users = lab.feed()
    users.apply(put(1, 1, name="Ann"))
    real = dataset.commit_row_delta

    def dies(table: Any, step: Any) -> Any:
        if step.summary["polynya.step"] == "copy":
            raise KeyboardInterrupt
        return real(table, step)

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(dataset, "commit_row_delta", dies)
        users.copy(put(1, 2, name="Anna"))

    assert settled(users) == [False, False]
    assert users.current("id", "name") == [(1, "Ann")]
    users.run("never")
    assert users.current("id", "name") == [(1, "Anna")]


def test_a_run_that_dies_between_two_views_leaves_both_right(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    users = lab.feed()
    users.apply(put(1, 1, name="Ann"))
    real, replaced = catalog_views._replace, []

    def dies(*view: Any) -> None:
        if replaced:
            raise KeyboardInterrupt
        real(*view)
        replaced.append(view)

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(catalog_views, "_replace", dies)
        users.copy(put(1, 2, name="Anna"))

    assert settled(users) == [False, True]
    users.run("never")
    assert settled(users) == [False, False]
    assert users.current("id", "name") == [(1, "Anna")]
    assert [line[:2] for line in users.history("id", "name")] == [(1, "Ann"), (1, "Anna")]


def test_who_has_not_taken_a_table_over_settles_no_view(lab: Lab) -> None:
    users = lab.feed()
    users.apply(put(1, 1, name="Ann"))
    late = WorkingDataset.existing(replace(lab.context(), owner="late"), users.dataset)
    users.copy(put(1, 2, name="Anna"))
    late.publish(settle=True)

    assert settled(users) == [False, False]
    assert users.current("name") == [("Anna",)]


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"history": False},
        {"delete_mode": "soft"},
        {"coalesce_unchanged": True},
        {"task": {"views": {"headers": True, "from_timestamp": True}}},
    ],
    ids=["history", "current", "soft deletes", "coalesced", "headers"],
)
def test_settled_texts_show_what_the_others_show(lab: Lab, how: dict[str, Any]) -> None:
    users = lab.feed(**how)
    users.apply(put(1, 1, name="Ann"), put(2, 1, name="Ben"), put(3, 1, name="Cid"))
    users.apply(put(1, 2, name="Ann"), drop(2, 2), put(3, 3, name="Cyd"))
    shape, table = users.table().shape(), users.relation

    for made in (spark_views, definitions):
        texts = made(users.dataset, shape, table)
        quiet = made(users.dataset, shape, table, settled=True)
        assert {name: lab.rows(sql) for name, sql in quiet.items()} == {
            name: lab.rows(sql) for name, sql in texts.items()
        }
        for name, sql in quiet.items():
            assert lab.spark.sql(sql).columns == lab.spark.sql(texts[name]).columns


def test_every_dialect_of_a_view_is_settled_with_it(lab: Lab) -> None:
    others = collaborators.other_dialects()
    users = lab.feed()
    users.apply(put(1, 1, name="Ann"))
    shape = users.table().shape()

    live = others.texts(users.dataset, shape)
    quiet = others.settled_texts(users.dataset, shape)
    catalog_views.create_views(lab.spark, users.dataset, shape, others=others, settled=True)

    for suffix in LIVE:
        view = view_metadata(lab, f"{users.view}{suffix}")
        texts = {one["dialect"]: one["sql"] for one in view["representations"]}
        assert set(texts) == {"spark", "trino", "duckdb"}
        for dialect, sql in quiet[view_name(users, suffix)].items():
            assert texts[dialect] == sql
            assert sql != live[view_name(users, suffix)][dialect]


def view_name(users: Feed, suffix: str) -> str:
    """The name of a view without its schema."""
    return f"{users.dataset.relations.view}{suffix}"
