"""A run with nothing to do is recognised without Spark, and only such a run.

A look at the lab's tables must say what a run over them says, and give the reason for every run
that would do something.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any, cast

import pytest

from polynya.engine import idle
from polynya.engine.idle import AtWorkError, IdleFacts, IdleRun, idle_run, why_at_work
from polynya.engine.policy import ApplyMode, PendingFacts
from polynya.engine.runner import run_once, units
from polynya.model.config.settings import ApplyPolicy
from polynya.model.config.task import StorageTask
from polynya.model.config.task_kinds import Task
from polynya.model.errors import ConfigError
from polynya.model.loader import LoadedProject, load_project
from polynya.observe.engine import ApplySkipped
from polynya.observe.maintenance import TableHealth
from tests.engine.tasks.derived_tables import Derived
from tests.lab.events import land, upsert
from tests.lab.lab import Feed, Lab, put

MANY = PendingFacts(rows=200_000, size_bytes=1, files=1, current_rows=0)
FEW = PendingFacts(rows=2, size_bytes=1, files=1, current_rows=0)
OLD = replace(FEW, age=timedelta(days=30))


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ({}, None),
        ({"pending": FEW}, None),
        ({"held": "it is suspended"}, "it is suspended"),
        ({"unread": 2}, "2 of its landed files are unread"),
        ({"odd": 1}, "1 of its landed files changed or wait for others"),
        ({"pending": MANY}, "200000 pending rows reached"),
        ({"pending": OLD}, "the oldest pending change is"),
        ({"is_ahead": True}, "its columns are others than its state knows"),
        ({"old_view": "users"}, "its view users is not as it would be made today"),
        ({"awaits_layout": True}, "its table gets another layout"),
        ({"maintenance": "expire_snapshots"}, "expire_snapshots is due"),
    ],
)
def test_each_fact_that_asks_for_a_run_is_a_reason(
    facts: dict[str, Any], reason: str | None
) -> None:
    why = why_at_work(IdleFacts(**facts), ApplyPolicy(), "policy")

    assert (why or "").startswith(reason or "")
    assert (why is None) == (reason is None)


def test_a_run_that_always_applies_has_work_where_anything_is_pending() -> None:
    assert why_at_work(IdleFacts(pending=FEW), ApplyPolicy(), "always") is not None
    assert why_at_work(IdleFacts(), ApplyPolicy(), "always") is None
    assert why_at_work(IdleFacts(pending=MANY), ApplyPolicy(), "never") is None


@pytest.fixture(autouse=True)
def views_for_spark_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lab publishes no other dialects."""
    monkeypatch.setattr(idle, "dialects_version", lambda: "")


def project_of(lab: Lab, *tasks: StorageTask, **parts: Any) -> LoadedProject:
    """The project of the lab, with these tasks."""
    project = load_project(lab.project)
    target = replace(project.target, landing=lab.landing)
    return replace(project, **{"target": target, "tasks": tasks, **parts})


def look(lab: Lab, *tasks: StorageTask, mode: ApplyMode = "policy") -> IdleRun:
    """What a run of these tasks has to report without a step. Raises AtWorkError."""
    return idle_run(project_of(lab, *tasks), tasks, mode, lab.clock.now)


def ran(lab: Lab, *tasks: Task, mode: ApplyMode = "policy") -> set[Any]:
    """The events of a run by Spark."""
    lab.events.clear()
    context = lab.context(mode)
    assert not run_once(context, units(context, tasks)).failures
    return set(lab.events)


@pytest.fixture(scope="module")
def module_users(module_lab: Lab) -> Feed:
    """A table in which some changes wait for their apply, made once."""
    users = module_lab.feed()
    users.apply(put(1, 1, name="Ann"), put(2, 2, name="Ben"))
    users.copy(put(1, 3, name="Anna"))
    return users


@pytest.fixture
def users(module_users: Feed) -> Iterator[Feed]:
    """The same with settings and a landing folder as they were."""
    settings, files = dict(module_users.settings), set(module_users.folder.iterdir())
    yield module_users
    module_users.settings, module_users.more = settings, {}
    for file in set(module_users.folder.iterdir()) - files:
        file.unlink()


def test_a_look_reports_what_a_run_reports(users: Feed) -> None:
    found = look(users.lab, users.task)

    assert set(found.events) == ran(users.lab, users.task)
    assert {type(event) for event in found.events} == {ApplySkipped, TableHealth}
    assert found.units == 1
    assert found.backlog[users.view].pending_rows == 1
    name = users.view
    assert [one for one, _ in found.rounds] == [name, f"{name} (maintenance)"]


def test_a_file_that_landed_needs_spark(users: Feed) -> None:
    users.land(put(3, 4))

    with pytest.raises(AtWorkError, match="1 of its landed files are unread"):
        look(users.lab, users.task)


def test_a_file_that_changed_needs_spark(users: Feed) -> None:
    first = min(users.folder.iterdir())
    content, at = first.read_bytes(), first.stat().st_mtime_ns
    first.write_bytes(content + b"{}\n")

    try:
        with pytest.raises(AtWorkError, match="changed"):
            look(users.lab, users.task)
    finally:
        first.write_bytes(content)
        os.utime(first, ns=(at, at))


def test_pending_changes_need_spark_where_the_run_always_applies(users: Feed) -> None:
    look(users.lab, users.task, mode="never")

    with pytest.raises(AtWorkError, match="this run always applies"):
        look(users.lab, users.task, mode="always")


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"except_columns": ["op", "seq", "at", "name"]}, "its view"),
        ({"history": False}, "its view"),
        ({"partition_by": ["bucket(4, id)"]}, "gets another layout"),
        ({"sort_by": ["name"]}, "gets another layout"),
    ],
)
def test_settings_that_changed_need_spark(
    users: Feed, settings: dict[str, Any], reason: str
) -> None:
    users.configure(**settings)

    with pytest.raises(AtWorkError, match=reason):
        look(users.lab, users.task)


def test_a_first_run_needs_spark(users: Feed) -> None:
    other = users.lab.feed("other")
    other.land(put(1, 1))

    with pytest.raises(AtWorkError, match="nothing was copied to it yet"):
        look(users.lab, users.task, other.task)


def test_a_scheduled_reload_needs_spark_once_it_is_due(users: Feed) -> None:
    reload = {"schedule": "@hourly", "files": "*.json"}
    task = {"path": f"{users.lab.schema}/{users.name}", "format": "json"}
    users.more = {"landing": task}
    users.configure(reload=reload)

    with pytest.raises(AtWorkError, match="its reload is due"):
        look(users.lab, users.task)


def test_broken_files_and_catalogs_of_others_need_spark(users: Feed) -> None:
    lab, task = users.lab, users.task
    target = load_project(lab.project).target

    for parts, reason in (
        ({"errors": (ConfigError("X", "x"),)}, "broken"),
        ({"target": replace(target, catalog_type="glue", catalog_uri="")}, "catalog"),
        ({"target": replace(target, catalog_properties={"a": "b"})}, "catalog"),
        ({"target": replace(target, cluster=cast("Any", "spark://x"))}, "cluster"),
    ):
        with pytest.raises(AtWorkError, match=reason):
            idle_run(project_of(lab, task, **parts), [task], "policy", lab.clock.now)


def test_a_suspended_dataset_needs_spark(lab: Lab) -> None:
    users = lab.feed(on_bad_record="suspend")
    users.copy(put(1, 1))
    look(lab, users.task)
    users.land(b"no record")
    context = lab.context()
    assert run_once(context, units(context, [users.task])).failures

    with pytest.raises(AtWorkError, match="it is suspended"):
        look(lab, users.task)


def test_tables_that_share_files_are_looked_at_by_their_ledger(lab: Lab) -> None:
    capture = lab.capture()
    land(capture, upsert(1, 1, name="Ann"))
    land(capture, upsert(1, 2, name="Ulm"), table="towns")
    capture.run()

    found = look(lab, capture.task)
    assert set(found.events) == ran(lab, capture.task)
    assert found.units == 1
    assert len(found.backlog) == 2

    land(capture, upsert(1, 3, name="Anna"))
    with pytest.raises(AtWorkError, match="unread"):
        look(lab, capture.task)


def test_a_transform_is_looked_at_through_its_inputs(lab: Lab) -> None:
    users = lab.feed()
    users.copy(put(1, 1, city="Ulm"))
    cities = Derived(
        lab, [users], f"SELECT city AS id, count(*) AS n FROM {users.name} GROUP BY city"
    )
    cities.follow()
    task = cities.task

    assert set(look(lab, users.task, task).events) == ran(lab, users.task, task)
    # An apply shows the same rows.
    users.apply()
    look(lab, users.task, task)

    users.copy(put(2, 2, city="Bonn"))
    with pytest.raises(AtWorkError, match="have changed"):
        look(lab, users.task, task)

    cities.follow()
    look(lab, users.task, cities.task)
    cities.sql = f"SELECT city AS id, count(*) + 1 AS n FROM {users.name} GROUP BY city"
    with pytest.raises(AtWorkError, match="have changed"):
        look(lab, users.task, cities.task)
