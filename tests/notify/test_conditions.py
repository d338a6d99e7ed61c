"""What begins and ends a condition: events, rounds of units, reports of nodes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from polynya.model.error_catalogue.derived import EXPECTATION_FAILED
from polynya.model.error_catalogue.lake import TABLE_TAKEN_OVER
from polynya.model.error_catalogue.notifications import APPRISE_MISSING
from polynya.model.errors import ConflictError, PolynyaError, SuspendedError
from polynya.notify.conditions import (
    FADES_AFTER,
    Conditions,
    after_event,
    after_report,
    after_round,
    expired,
)
from polynya.observe.capture import (
    CaptureLag,
    CaptureLanded,
    CaptureRetry,
    CaptureStreaming,
    CaptureTable,
    CaptureTableFailed,
)
from polynya.observe.engine import (
    BatchCopied,
    ExpectationFailed,
    RowsDerived,
    UnitFailed,
    UnitRecovered,
)
from polynya.observe.events import Event
from polynya.observe.streams import StreamLost

NOW = datetime(2026, 11, 29, 8, tzinfo=UTC)
SECRET = "row-value-4711"
ERROR = APPRISE_MISSING(where=SECRET, why=SECRET)
SUSPENDED = SuspendedError("POLYNYA-EVO-001", f"value {SECRET}")


def after(*events: Event, before: Conditions | None = None) -> Conditions:
    found: Conditions = before or {}
    for number, event in enumerate(events):
        found = after_event(found, event, NOW + timedelta(seconds=number), lambda _: "crm")
    assert SECRET not in repr(found)
    return found


def said(conditions: Conditions) -> list[str]:
    return [f"{key.cause} {key.name} {one.severity}" for key, one in sorted(conditions.items())]


def failure(error: PolynyaError = ERROR, subject: str = "crm.users") -> UnitFailed:
    return UnitFailed(subject=subject, task="crm", error=error)


def test_a_unit_that_failed_has_a_condition_until_it_recovers() -> None:
    failed = after(failure())
    [one] = failed.values()

    assert said(failed) == ["failed crm.users error"]
    assert (one.code, one.title, one.task) == ("POLYNYA-NTF-003", "Apprise is not installed", "crm")
    assert after(failure(), UnitRecovered(subject="crm.users")) == {}


def test_a_unit_that_is_suspended_no_longer_counts_as_failed() -> None:
    assert said(after(failure(), failure(SUSPENDED))) == ["suspended crm.users critical"]


def test_a_unit_that_waits_for_another_process_has_not_failed() -> None:
    conflict = TABLE_TAKEN_OVER.raising(ConflictError)("taken over")

    assert after(failure(conflict)) == {}


def test_a_round_of_a_whole_task_ends_what_its_datasets_had() -> None:
    failed = after(failure(), failure(subject="crm.orders"), failure(SUSPENDED, "crm.items"))

    def round_of(name: str, error: PolynyaError | None) -> list[str]:
        return said(after_round(failed, name=name, task="crm", error=error, at=NOW))

    assert len(round_of("crm.users", None)) == 2
    assert len(round_of("crm", ERROR)) == 4
    assert round_of("crm", None) == []


def test_quarantine_grows_until_an_hour_brings_no_record() -> None:
    def batch(rejected: int) -> BatchCopied:
        return BatchCopied(
            subject="crm.users", rows_in=9, rows_out=9 - rejected, rows_filtered=0,
            rows_quarantined=rejected, files=1, seconds=1.0,
        )  # fmt: skip

    growing = after(batch(0), batch(2), batch(0), batch(3))
    [one] = growing.values()

    assert (one.key.cause, one.count, one.since) == ("quarantine", 5, NOW + timedelta(seconds=1))
    seen = NOW + timedelta(seconds=3)
    assert expired(growing, seen + FADES_AFTER - timedelta(seconds=1)) == growing
    assert expired(growing, seen + FADES_AFTER) == {}


def test_an_expectation_fails_until_a_result_is_committed_in_which_it_holds() -> None:
    failing = ExpectationFailed(subject="mart.x", expectation="positive", reason=f"-1, {SECRET}")
    derived = RowsDerived(subject="mart.x", rows=1, changes={}, seconds=1.0, how="all")

    assert said(after(failing, derived)) == ["expectation mart.x warning"]
    assert len(after(failing, derived, failing, derived)) == 1
    assert after(failing, derived, derived) == {}


def test_an_expectation_that_stops_a_table_is_an_expectation() -> None:
    stopped = after(failure(EXPECTATION_FAILED(where="mart.x", failed=SECRET), "mart.x"))

    assert said(stopped) == ["expectation mart.x error"]
    assert after_round(stopped, name="mart.x", task="mart", error=None, at=NOW) == {}


CAPTURES: list[tuple[Event, Event, str]] = [
    (
        CaptureRetry(subject="crm", error=ERROR, number=1, pause_seconds=5),
        CaptureStreaming(subject="crm"),
        "capture crm error",
    ),
    (
        CaptureRetry(subject="crm", error=ERROR, number=1, pause_seconds=5),
        CaptureLanded(subject="crm", number=1, events=2, bytes=1, object_bytes=1, seconds=1.0),
        "capture crm error",
    ),
    (
        CaptureLag(subject="crm", bytes=9, seconds=1, notes=("the slot is lost",), warned=True),
        CaptureLag(subject="crm", bytes=0, seconds=0),
        "capture crm critical",
    ),
    (
        CaptureTableFailed(subject="crm/public.users", error=ERROR, suspended=True),
        CaptureTable(subject="crm/public.users", state="running", rows=1),
        "capture crm/public.users critical",
    ),
]


@pytest.mark.parametrize(("begins", "ends", "wanted"), CAPTURES)
def test_a_capture_in_danger_is_told_until_it_works(
    begins: Event, ends: Event, wanted: str
) -> None:
    assert said(after(begins, begins)) == [wanted]
    assert after(begins, ends) == {}


def test_a_warning_of_a_database_that_lasts_is_still_in_force() -> None:
    # The notes stand in the first of these events only.
    first = CaptureLag(subject="crm", bytes=9, seconds=1, notes=("it fills",), warned=True)
    later = CaptureLag(subject="crm", bytes=9, seconds=1, warned=True)

    assert said(after(first, later, later)) == ["capture crm critical"]


def test_records_that_a_source_lost_are_told() -> None:
    lost = StreamLost(subject="clicks", at="p0", begin="1", end="9", reason="retention", records=8)

    assert said(after(lost)) == ["capture clicks critical"]


def job(**values: Any) -> dict[str, Any]:
    return {"state": "running", "reason": "runs", "held": False, "failed_in_a_row": 0, **values}


def report(sharing: dict[str, Any] | None = None, **jobs: dict[str, Any]) -> dict[str, Any]:
    configuration = {"errors": [], "unread": None}
    return {
        "cluster": "main", "node": "n1", "sharing": sharing, "configuration": configuration,
        "tasks": {"crm": {"jobs": {f"crm.{name}": one for name, one in jobs.items()}}},
    }  # fmt: skip


def leads(**values: Any) -> dict[str, Any]:
    return {"leading": True, "leader": "n1", "troubles": [], "stream_trouble": None,
            "unowned": None, **values}  # fmt: skip


def reported(*reports: dict[str, Any]) -> list[str]:
    found: Conditions = {}
    for one in reports:
        found = after_report(found, one, NOW)
    assert SECRET not in repr(found)
    return said(found)


FAILING = {"failed_in_a_row": 2, "reason": f"POLYNYA-NTF-003: {SECRET}"}


def test_a_job_of_an_agent_fails_from_its_first_failure_to_its_first_good_round() -> None:
    waiting = report(users=job(state="waiting", **FAILING))
    again = report(users=job(failed_in_a_row=2, reason="failed 2 times in a row, tried again"))

    assert reported(waiting) == ["failed crm.users error"]
    assert reported(waiting, again) == ["failed crm.users error"]
    assert reported(waiting, again, report(users=job())) == []


@pytest.mark.parametrize(
    "suspended", [{"state": "suspended", **FAILING}, {"held": True, "reason": "held"}]
)
def test_a_suspended_job_is_told_until_it_is_resumed(suspended: dict[str, Any]) -> None:
    assert reported(report(users=job(**suspended))) == ["suspended crm.users critical"]
    assert reported(report(users=job(**suspended)), report(users=job())) == []


def test_a_job_that_works_elsewhere_says_nothing() -> None:
    waiting = report(users=job(state="waiting", **FAILING))

    assert reported(waiting, report(users=job(state="elsewhere"))) == ["failed crm.users error"]


def test_only_the_leader_speaks_of_the_cluster() -> None:
    short = leads(unowned={"units": 3, "seconds": 9.0, "oldest_seconds": 9.0})
    follows = {**short, "leading": False, "leader": "n2"}

    assert reported(report(short)) == ["cluster main error"]
    assert reported(report(follows)) == []
    assert reported(report(short), report(leads())) == []


def test_a_configuration_that_is_refused_is_told_until_it_is_in_force() -> None:
    broken = report()
    broken["configuration"] = {"errors": [{"code": "POLYNYA-CFG-001"}], "unread": None}

    assert reported(broken) == ["deploy main error"]
    assert reported(broken, report()) == []
