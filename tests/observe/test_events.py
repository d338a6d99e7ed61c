"""Every event has a line for people, and JSON whose names are a contract with programs."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest

from polynya.cli.format import to_json
from polynya.model.errors import (
    ConfigError,
    ConflictError,
    FencedError,
    PolynyaError,
    SuspendedError,
)
from polynya.observe import (
    automations,
    capture,
    cluster,
    engine,
    events,
    maintenance,
    notifications,
    otlp,
    streams,
)
from polynya.observe.events import Event, Level
from tests.observe.kinds_of_automations import OF_AUTOMATIONS
from tests.observe.kinds_of_captures import OF_CAPTURES
from tests.observe.kinds_of_events import OF_THE_ENGINE, OUTAGE
from tests.observe.kinds_of_maintenance import OF_MAINTENANCE
from tests.observe.kinds_of_notifications import OF_NOTIFICATIONS

BROKEN = ConfigError("POLYNYA-CFG-007", "unknown key `keyz`", where="tasks/users.yml:9:5")

#: Those of a node, made and told likewise.
OF_A_NODE: list[tuple[Event, Level, str, dict[str, Any]]] = [
    (
        cluster.AgentStarted(subject="n1"),
        Level.NOTE,
        "agent    n1: started",
        {"subject": "n1"},
    ),
    (
        cluster.AgentReady(subject="n1", tasks=("users",)),
        Level.NOTE,
        "agent    n1: ready, 1 task",
        {"subject": "n1", "tasks": ["users"]},
    ),
    (
        cluster.AgentDraining(subject="n1", reason="SIGTERM", within_seconds=90.0),
        Level.NOTE,
        "agent    n1: drains within 90 s: SIGTERM",
        {"subject": "n1", "reason": "SIGTERM", "within_seconds": 90.0},
    ),
    (
        cluster.AgentStopped(subject="n1", reason="SIGTERM", seconds=1.45, cut_off=("shop.a",)),
        Level.WARNING,
        "agent    n1: stopped after 1.4 s, interrupted: shop.a",
        {"subject": "n1", "reason": "SIGTERM", "seconds": 1.45, "cut_off": ["shop.a"]},
    ),
    (
        cluster.UnitFenced(
            subject="shop.users",
            epoch=3,
            error=FencedError("POLYNYA-LAKE-060", "n2 owns it", epoch=4, owner="n2.9a"),
        ),
        Level.CAUTION,
        "fenced   shop.users: n2 owns it (POLYNYA-LAKE-060)",
        {
            "subject": "shop.users",
            "epoch": 3,
            "newer_epoch": 4,
            "newer_owner": "n2.9a",
            "code": "POLYNYA-LAKE-060",
            "message": "n2 owns it",
        },
    ),
    (
        cluster.JarsMissing(subject="n1", error=PolynyaError("POLYNYA-DEP-002", "no network")),
        Level.WARNING,
        "n1: a landing waits for its jars: no network (POLYNYA-DEP-002)",
        {
            "subject": "n1",
            "code": "POLYNYA-DEP-002",
            "message": "no network",
            "retryable": False,
        },
    ),
    (
        cluster.ReportFailed(subject="n1", message="the disk is full"),
        Level.WARNING,
        "n1: its report was lost: the disk is full",
        {"subject": "n1", "message": "the disk is full"},
    ),
    (
        cluster.ConfigurationAccepted(
            subject="n1",
            identity="2c7e",
            revision=None,
            edited=("tasks/a.yml",),
            kept=("tasks/b.yml",),
            tasks=("a", "b"),
            elsewhere=("c",),
        ),
        Level.NOTE,
        "config   n1: 2c7e, 2 tasks, 1 of other clusters, 1 file in the last valid version",
        {
            "subject": "n1",
            "identity": "2c7e",
            "revision": None,
            "edited": ["tasks/a.yml"],
            "kept": ["tasks/b.yml"],
            "tasks": ["a", "b"],
            "elsewhere": ["c"],
        },
    ),
    (
        cluster.ConfigurationUnreadable(subject="n1", error=OUTAGE),
        Level.WARNING,
        "n1: the configuration could not be read: s3://lake: S3 is slow (POLYNYA-DEP-005); wait",
        {"subject": "n1", **OUTAGE.as_dict()},
    ),
    (
        cluster.ConfigurationUnused(subject="n1", error=BROKEN),
        Level.WARNING,
        "n1: not used: tasks/users.yml:9:5: unknown key `keyz` (POLYNYA-CFG-007)",
        {"subject": "n1", **BROKEN.as_dict()},
    ),
    (
        cluster.ConfigurationBroken(subject="n1", file="tasks/users.yml", error=BROKEN),
        Level.WARNING,
        (
            "n1: invalid, the last valid version stays in force: "
            "tasks/users.yml:9:5: unknown key `keyz` (POLYNYA-CFG-007)"
        ),
        {"subject": "n1", "file": "tasks/users.yml", **BROKEN.as_dict()},
    ),
    (
        cluster.ConfigurationFixed(subject="n1", file="tasks/users.yml"),
        Level.NOTE,
        "config   n1: tasks/users.yml is valid again",
        {"subject": "n1", "file": "tasks/users.yml"},
    ),
    (
        cluster.JobStarted(subject="shop.a", task="a", reason="new"),
        Level.NOTE,
        "start    shop.a: new",
        {"subject": "shop.a", "task": "a", "reason": "new"},
    ),
    (
        cluster.JobStopped(subject="shop.a", task="a", reason="its file changed"),
        Level.NOTE,
        "stop     shop.a: its file changed",
        {"subject": "shop.a", "task": "a", "reason": "its file changed"},
    ),
    (
        cluster.JobWaits(subject="shop.a", task="a", reason="S3 is slow", in_seconds=4.0),
        Level.NOTE,
        "wait     shop.a: 4 s: S3 is slow",
        {"subject": "shop.a", "task": "a", "reason": "S3 is slow", "in_seconds": 4.0},
    ),
    (
        cluster.JobSuspended(subject="shop.a", task="a", reason="failed 5 times"),
        Level.WARNING,
        "suspend  shop.a: failed 5 times",
        {"subject": "shop.a", "task": "a", "reason": "failed 5 times"},
    ),
    (
        cluster.JobForgotten(subject="shop.a", task="a", reason="gone"),
        Level.NOTE,
        "forget   shop.a: gone",
        {"subject": "shop.a", "task": "a", "reason": "gone"},
    ),
]

EVENTS = [
    *OF_THE_ENGINE, *OF_MAINTENANCE, *OF_NOTIFICATIONS, *OF_AUTOMATIONS, *OF_CAPTURES, *OF_A_NODE,
]  # fmt: skip
#: How the name of a figure ends or begins that has a unit, or counts things.
UNIT = re.compile(
    r"(^|_)(seconds|bytes|percent|share|files|epoch)$|^(rows|files)(_|$)"
    r"|(^|_)records$|^number$|^(events|current|prior|removed|manifests|snapshots)$"
)


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


#: Told in tests of the cluster.
OF_CLUSTERS = {
    "AgentUpdate", "ClusterFrozen", "CommandChanged", "CommandUnreadable", "JobRunCancelled",
    "JobRunEnded", "JobRunStarted", "JobRunTrouble", "LeaderChanged", "NetworkConnected",
    "NetworkDisconnected", "ClusterRecovered", "ClusterTrouble", "SpotAdvised",
    "SpotNoticesUnreadable", "UnitAlarm", "UnitClaimed", "UnitDecided", "UnitLost", "UnitPlanned",
    "UnitRaised", "UnitReleased", "UnitRevoked", "UnitRequestEnded",
}  # fmt: skip


def test_no_kind_of_event_is_left_out() -> None:
    kinds = {
        one
        for module in (
            automations, capture, engine, cluster, events, streams, maintenance, notifications,
            otlp,
        )
        for one in vars(module).values()
        if isinstance(one, type)
        and issubclass(one, Event)
        and "type" in vars(one)
        and one.__name__ not in OF_CLUSTERS
    }  # fmt: skip

    assert {type(event) for event, *_ in EVENTS} == kinds
    assert len({one.type for one in kinds}) == len(kinds)


def test_on_a_node_an_event_of_the_engine_names_its_task() -> None:
    event = engine.ApplySkipped(subject="shop.users", task="users", reason="few")

    assert list(event.as_json()) == ["subject", "task", "reason"]


def test_what_was_quarantined_stands_out() -> None:
    whole = engine.BatchCopied(
        subject="a.b",
        rows_in=2,
        rows_out=2,
        rows_filtered=0,
        rows_quarantined=0,
        files=1,
        seconds=1,
    )

    assert whole.level is Level.NOTE
    assert replace(whole, rows_out=1, rows_quarantined=1).level is Level.CAUTION


@pytest.mark.parametrize(
    ("error", "level", "verb"),
    [
        (OUTAGE, Level.FAILURE, "failed   "),
        (SuspendedError("POLYNYA-LAKE-017", "new column"), Level.FAILURE, "suspended "),
        (ConflictError("POLYNYA-LAKE-002", "process 7 on n1"), Level.CAUTION, "waiting  "),
    ],
)
def test_a_failure_says_of_which_kind_it_is(error: PolynyaError, level: Level, verb: str) -> None:
    failed = engine.UnitFailed(subject="shop.users", error=error)

    assert failed.level is level
    assert failed.text().startswith(f"{verb}shop.users: ")
