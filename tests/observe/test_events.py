"""Every event has a line for people, and JSON whose names are a contract with programs."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from polynya.cli.json_values import to_json
from polynya.model.errors import ConfigError, DependencyError
from polynya.observe import data, node
from polynya.observe.events import Event, Level

OUTAGE = DependencyError("POLYNYA-DEP-005", "S3\nis slow", where="s3://lake", fix="wait")
BROKEN = ConfigError("POLYNYA-CFG-007", "unknown key `keyz`", where="tasks/users.yml:9:5")

#: Every event: how it is made, what it says to people and to programs.
EVENTS: list[tuple[Event, Level, str, dict[str, Any]]] = [
    (
        data.BatchCopied(
            subject="shop.users",
            rows_in=1200,
            rows_out=1100,
            rows_filtered=90,
            rows_quarantined=10,
            files=2,
            seconds=2.0,
        ),
        Level.NOTE,
        "copied   shop.users: 1,100 of 1,200 records, 10 quarantined in 2.0 s (600/s)",
        {
            "subject": "shop.users",
            "rows_in": 1200,
            "rows_out": 1100,
            "rows_filtered": 90,
            "rows_quarantined": 10,
            "files": 2,
            "seconds": 2.0,
        },
    ),
    (
        data.LoadProgress(
            subject="shop.users",
            reason="a first full load of 4194304 bytes",
            rows=1000,
            seconds=2.0,
            read_bytes=1 << 20,
            left_bytes=3 << 20,
        ),
        Level.NOTE,
        "loading  shop.users: 3 MiB left, about 6 s at 500 records/s",
        {
            "subject": "shop.users",
            "reason": "a first full load of 4194304 bytes",
            "rows": 1000,
            "seconds": 2.0,
            "read_bytes": 1 << 20,
            "left_bytes": 3 << 20,
            "left_seconds": 6,
        },
    ),
    (
        data.LoadInBatches(subject="shop.users", reason="a key is there twice"),
        Level.DETAIL,
        "loading  shop.users: in batches: a key is there twice",
        {"subject": "shop.users", "reason": "a key is there twice"},
    ),
    (
        data.DatasetApplied(
            subject="shop.users", reason="asked to apply always", seconds=1.5, rows={"current": 7}
        ),
        Level.NOTE,
        "applied  shop.users: asked to apply always",
        {
            "subject": "shop.users",
            "reason": "asked to apply always",
            "seconds": 1.5,
            "current": 7,
        },
    ),
    (
        data.ApplySkipped(subject="shop.users", reason="nothing is pending"),
        Level.DETAIL,
        "waiting  shop.users: nothing is pending",
        {"subject": "shop.users", "reason": "nothing is pending"},
    ),
    (
        data.SchemaChanged(
            subject="shop.users", change="add_column", policy="apply", says="new column a"
        ),
        Level.NOTE,
        "changed  shop.users: new column a (apply)",
        {
            "subject": "shop.users",
            "change": "add_column",
            "policy": "apply",
            "says": "new column a",
        },
    ),
    (
        data.FileChanged(subject="shop.users", file="1.json", size_bytes=9, copied_bytes=7),
        Level.WARNING,
        "shop.users: 1.json changed after it was copied; the new content is not read",
        {"subject": "shop.users", "file": "1.json", "size_bytes": 9, "copied_bytes": 7},
    ),
    (
        data.FileWaiting(subject="shop.users", file="1.csv", waits_for="1.dfm"),
        Level.NOTE,
        "waiting  shop.users: 1.csv: 1.dfm has not landed",
        {"subject": "shop.users", "file": "1.csv", "waits_for": "1.dfm"},
    ),
    (
        data.ReloadLoaded(
            subject="shop.users", rows_in=9, rows_loaded=8, rows_quarantined=1, files_left=2
        ),
        Level.NOTE,
        "loaded   shop.users: 8 rows, 2 files left",
        {
            "subject": "shop.users",
            "rows_in": 9,
            "rows_loaded": 8,
            "rows_quarantined": 1,
            "files_left": 2,
        },
    ),
    (
        data.ExtractApplied(
            subject="shop.users",
            extract="1.csv",
            time="2026-01-01T00:00:00+00:00",
            rows_loaded=8,
            rows_quarantined=1,
            complete=False,
        ),
        Level.NOTE,
        "extract  shop.users: 1.csv, 8 rows, incomplete",
        {
            "subject": "shop.users",
            "extract": "1.csv",
            "time": "2026-01-01T00:00:00+00:00",
            "rows_loaded": 8,
            "rows_quarantined": 1,
            "complete": False,
        },
    ),
    (
        data.ExtractWaiting(subject="shop.users", extract="1", reason="no _SUCCESS"),
        Level.NOTE,
        "waiting  shop.users: 1: no _SUCCESS",
        {"subject": "shop.users", "extract": "1", "reason": "no _SUCCESS"},
    ),
    (
        data.ExtractRestarted(subject="shop.users", extract="1", reason="it left"),
        Level.NOTE,
        "restarted shop.users: 1: it left",
        {"subject": "shop.users", "extract": "1", "reason": "it left"},
    ),
    (
        data.UnitFailed(subject="shop.users", error=OUTAGE),
        Level.WARNING,
        "shop.users failed: s3://lake: S3 is slow (POLYNYA-DEP-005); wait",
        {
            "subject": "shop.users",
            "code": "POLYNYA-DEP-005",
            "message": "s3://lake: S3\nis slow; wait",
        },
    ),
    (
        data.ViewsPublished(subject="shop.users", views=("shop.users", "shop.users_history")),
        Level.DETAIL,
        "views    shop.users, shop.users_history",
        {"subject": "shop.users", "views": ["shop.users", "shop.users_history"]},
    ),
    (
        data.ViewsFailed(subject="shop.users", error=OUTAGE),
        Level.WARNING,
        (
            "shop.users: other engines may miss its views: "
            "s3://lake: S3 is slow (POLYNYA-DEP-005); wait"
        ),
        {
            "subject": "shop.users",
            "error": "s3://lake: S3\nis slow; wait",
            "code": "POLYNYA-DEP-005",
        },
    ),
    (
        node.AgentStarted(subject="n1"),
        Level.NOTE,
        "agent    n1: started",
        {"subject": "n1"},
    ),
    (
        node.AgentReady(subject="n1", tasks=("users",)),
        Level.NOTE,
        "agent    n1: ready, 1 task",
        {"subject": "n1", "tasks": ["users"]},
    ),
    (
        node.AgentDraining(subject="n1", reason="SIGTERM", within_seconds=90.0),
        Level.NOTE,
        "agent    n1: drains within 90 s: SIGTERM",
        {"subject": "n1", "reason": "SIGTERM", "within_seconds": 90.0},
    ),
    (
        node.AgentStopped(subject="n1", reason="SIGTERM", seconds=1.45, cut_off=("shop.a",)),
        Level.WARNING,
        "agent    n1: stopped after 1.4 s, cut off: shop.a",
        {"subject": "n1", "reason": "SIGTERM", "seconds": 1.45, "cut_off": ["shop.a"]},
    ),
    (
        node.ReportFailed(subject="n1", message="the disk is full"),
        Level.WARNING,
        "n1: its report was lost: the disk is full",
        {"subject": "n1", "message": "the disk is full"},
    ),
    (
        node.ConfigurationAccepted(
            subject="n1",
            identity="2c7e",
            revision=None,
            edited=("tasks/a.yml",),
            kept=("tasks/b.yml",),
            tasks=("a", "b"),
        ),
        Level.NOTE,
        "config   n1: 2c7e, 2 tasks, 1 file as last good",
        {
            "subject": "n1",
            "identity": "2c7e",
            "revision": None,
            "edited": ["tasks/a.yml"],
            "kept": ["tasks/b.yml"],
            "tasks": ["a", "b"],
        },
    ),
    (
        node.ConfigurationUnread(subject="n1", error=OUTAGE),
        Level.WARNING,
        "n1: the configuration could not be read: s3://lake: S3 is slow (POLYNYA-DEP-005); wait",
        {"subject": "n1", **OUTAGE.as_dict()},
    ),
    (
        node.ConfigurationUnused(subject="n1", error=BROKEN),
        Level.WARNING,
        "n1: not used: tasks/users.yml:9:5: unknown key `keyz` (POLYNYA-CFG-007)",
        {"subject": "n1", **BROKEN.as_dict()},
    ),
    (
        node.ConfigurationBroken(subject="n1", file="tasks/users.yml", error=BROKEN),
        Level.WARNING,
        "n1: broken: tasks/users.yml:9:5: unknown key `keyz` (POLYNYA-CFG-007)",
        {"subject": "n1", "file": "tasks/users.yml", **BROKEN.as_dict()},
    ),
    (
        node.ConfigurationMended(subject="n1", file="tasks/users.yml"),
        Level.NOTE,
        "config   n1: tasks/users.yml is right again",
        {"subject": "n1", "file": "tasks/users.yml"},
    ),
    (
        node.JobStarted(subject="shop.a", task="a", reason="new"),
        Level.NOTE,
        "start    shop.a: new",
        {"subject": "shop.a", "task": "a", "reason": "new"},
    ),
    (
        node.JobStopped(subject="shop.a", task="a", reason="its file changed"),
        Level.NOTE,
        "stop     shop.a: its file changed",
        {"subject": "shop.a", "task": "a", "reason": "its file changed"},
    ),
    (
        node.JobWaits(subject="shop.a", task="a", reason="S3 is slow", in_seconds=4.0),
        Level.NOTE,
        "wait     shop.a: 4 s: S3 is slow",
        {"subject": "shop.a", "task": "a", "reason": "S3 is slow", "in_seconds": 4.0},
    ),
    (
        node.JobSuspended(subject="shop.a", task="a", reason="failed 5 times"),
        Level.WARNING,
        "suspend  shop.a: failed 5 times",
        {"subject": "shop.a", "task": "a", "reason": "failed 5 times"},
    ),
    (
        node.JobForgotten(subject="shop.a", task="a", reason="gone"),
        Level.NOTE,
        "forget   shop.a: gone",
        {"subject": "shop.a", "task": "a", "reason": "gone"},
    ),
]

#: How the name of a figure ends or begins that has a unit, or counts things.
UNIT = re.compile(r"(^|_)(seconds|bytes)$|^(rows|files)(_|$)|^current$")


@pytest.mark.parametrize(
    ("event", "level", "text", "fields"), [pytest.param(*one, id=one[0].type) for one in EVENTS]
)
def test_an_event_tells_people_and_programs(
    event: Event, level: Level, text: str, fields: dict[str, Any]
) -> None:
    shown = json.loads(to_json(event.as_json()))

    assert (event.level, event.text()) == (level, text)
    assert list(shown.items()) == list(fields.items())
    assert "\n" not in event.text()
    for name, value in shown.items():
        if isinstance(value, int | float) and not isinstance(value, bool):
            assert UNIT.search(name), f"{name} has no unit"


def test_no_kind_of_event_is_left_out() -> None:
    kinds = {
        one
        for module in (data, node)
        for one in vars(module).values()
        if isinstance(one, type) and issubclass(one, Event) and "type" in vars(one)
    }

    assert {type(event) for event, *_ in EVENTS} == kinds
    assert len({one.type for one in kinds}) == len(kinds)


def test_on_a_node_an_event_of_the_engine_names_its_task() -> None:
    event = data.ApplySkipped(subject="shop.users", task="users", reason="few")

    assert list(event.as_json()) == ["subject", "task", "reason"]


def test_a_run_that_ends_reports_its_failures_itself() -> None:
    assert data.UnitFailed(subject="shop.users", error=OUTAGE, goes_on=False).level is Level.DETAIL
