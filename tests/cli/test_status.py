"""`polynya status` in plain words. Without Spark, and without tables."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from polynya.cli.exit_codes import ExitCode
from polynya.cli.main import main
from polynya.cli.status import dataset_block, schema_change_lines
from polynya.lake.read.inspect import DatasetStatus
from polynya.lake.table.state import DecidedChange, ExpectationFailures
from polynya.store.clock import SystemClock
from tests.projects import USERS, write_project

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
POSITION = "00000000000000009223372036854775814"
NEVER = DatasetStatus(
    dataset="shop.users",
    suspended=None,
    suspended_where=None,
    copied_to=None,
    copied_at=None,
    applied_to=None,
    applied_at=None,
    last_apply_reason=None,
    last_apply_seconds=None,
    applies=0,
    pending_rows=0,
    pending_bytes=0,
    pending_files=0,
    pending_age_seconds=None,
    current_rows=0,
    retained_rows=0,
    retained_bytes=0,
    retained_since=None,
    freshness_seconds=None,
    rows_in=0,
    rows_out=0,
    rows_filtered=0,
    rows_quarantined=0,
    counters={},
    conflicts={},
    epoch=1,
    owner="n1:7:0",
)
BUSY = replace(
    NEVER,
    copied_to=POSITION,
    copied_at="2026-11-21T11:58:00+00:00",
    applied_to=POSITION,
    applied_at="2026-11-21T12:59:00.25+01:00",
    last_apply_reason="30 pending files reached 30",
    last_apply_seconds=3.04,
    pending_rows=7,
    pending_bytes=8192,
    pending_age_seconds=90.0,
    freshness_seconds=7200.0,
    conflicts={"raised": 2, "update_of_missing": 0, "insert_of_existing": 1},
)


@pytest.fixture
def shop(tmp_path: Path) -> str:
    return str(write_project(tmp_path, users=USERS))


def test_a_derived_table_shows_what_its_last_step_has_read_and_no_records() -> None:
    derived = replace(
        BUSY,
        derived_at="2026-11-21T11:59:30+00:00",
        inputs={"shop_internal.orders_internal": 1234, "registered:crm.rates": 7},
        applied_at=None,
        conflicts={},
        pending_rows=0,
    )
    names = {"shop_internal.orders_internal": "shop.orders"}

    lines = dataset_block(derived, NOW, names=names).splitlines()
    with_snapshots = dataset_block(derived, NOW, names=names, positions=True)

    assert lines == [
        "shop.users",
        "  current    0 rows",
        "  pending    nothing",
        "  derived    2026-11-21 11:59:30 UTC, 30.0 s ago, from shop.orders, crm.rates",
        "  last apply never",
    ]
    assert "from shop.orders at 1234, crm.rates at 7" in with_snapshots


def test_times_are_written_one_way_and_positions_left_out() -> None:
    assert dataset_block(BUSY, NOW).splitlines() == [
        "shop.users",
        "  current    0 rows",
        "  pending    7 rows, 8 KiB, the oldest for 1.5 min",
        "  freshness  newest event is 2.0 h old",
        "  records    0 in = 0 out + 0 filtered + 0 quarantined",
        "  last copy  2026-11-21 11:58:00 UTC, 2.0 min ago",
        "  last apply 2026-11-21 11:59:00 UTC, 59.8 s ago, in 3.0 s: 30 pending files reached 30",
        (
            "  conflicts  2 times that went back along the sequence, raised to that of the version "
            "before; 1 inserts of a record that exists, taken as updates"
        ),
    ]
    assert POSITION in dataset_block(BUSY, NOW, positions=True)


def test_what_never_happened_is_said_in_words() -> None:
    text = dataset_block(NEVER, NOW)

    assert "  last copy  never\n  last apply never" in text
    assert "  freshness  no event has arrived yet" in text
    assert "- old" not in text


def test_each_expectation_that_results_have_failed_has_a_line() -> None:
    at = "2026-11-21T11:58:00+00:00"
    failures = {
        "not_null(name)": ExpectationFailures(3, "2 of 9 rows", at),
        "row_count": ExpectationFailures(1, "9 rows, and at most 8 are expected", at),
    }

    last = "last 2026-11-21 11:58:00 UTC"
    assert (
        f"  expect     `not_null(name)` failed in 3 steps, {last}: 2 of 9 rows\n"
        f"             `row_count` failed in 1 step, {last}: 9 rows, and at most 8 are expected\n"
    ) in dataset_block(replace(BUSY, failures=failures), NOW)


def test_copies_that_wait_for_the_apply_are_shown() -> None:
    text = dataset_block(BUSY, NOW, waits="40 pending rows are 20 times 2")

    assert "  waits      copies wait for the apply: 40 pending rows are 20 times 2\n" in text
    assert "  waits " not in dataset_block(BUSY, NOW)


def test_landed_batches_that_nobody_copied_are_shown() -> None:
    lost = replace(BUSY, lost_batches=2, lost_messages=40)

    assert (
        "  lost       2 landed batches, removed before the table had copied them, 40 messages at "
        "least\n" in dataset_block(lost, NOW)
    )
    assert "  lost " not in dataset_block(BUSY, NOW)


def test_a_new_project_is_no_error(shop: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", "--project", shop]) == 0
    assert capsys.readouterr().out == "shop.users\n  nothing was copied yet: `polynya run`\n"

    assert main(["status", "--project", shop, "--json"]) == 0
    _, line = map(json.loads, capsys.readouterr().out.splitlines())
    assert line == {"type": "dataset.new", "task": "users", "dataset": "shop.users"}


@pytest.mark.parametrize("name", ["users", "shop.users", "shop.*"])
def test_a_dataset_is_chosen_by_name(
    shop: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["status", name, "--project", shop]) == 0
    assert capsys.readouterr().out.startswith("shop.users")


def test_an_unknown_dataset_is_wrong_usage(shop: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", "shop.user", "--project", shop]) == ExitCode.USAGE
    assert "did you mean `shop.users`?" in capsys.readouterr().err


def test_a_watch_shows_it_again_until_ctrl_c(
    shop: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []

    def sleep(_: SystemClock, seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(SystemClock, "sleep", sleep)

    assert main(["status", "--watch", "--every-seconds", "2", "--project", shop]) == 0
    assert slept == [2.0, 2.0, 2.0]
    assert capsys.readouterr().out.count("shop.users") == 3


DAY = "2026-11-21T10:00:00+00:00"
CITY, AGE = (
    DecidedChange("2026-11-20T10:00:00+00:00", "add_column", "a new column city", "propagate"),
    DecidedChange(
        "2026-11-21T10:00:00+00:00", "drop_column", "age is gone", "ignore", accepted=True
    ),
)

AGE_DECIDED = "2026-11-21 10:00:00 UTC  age is gone (accepted by `polynya dataset resume`: ignore)"


def test_changes_are_counted_and_say_since_when() -> None:
    counted = replace(BUSY, inserts=1200, updates=1, truncates=2)

    assert "  changes    1,200 inserts, 1 update, 0 deletes, 2 truncates\n" in dataset_block(
        counted, NOW
    )
    later = replace(counted, counted_since="2026-11-21T11:00:00+01:00")
    assert "2 truncates, since 2026-11-21 10:00:00 UTC\n" in dataset_block(later, NOW)
    assert "  changes " not in dataset_block(BUSY, NOW)


def test_the_last_schema_change_is_shown_and_all_on_request() -> None:
    changed = replace(BUSY, shape_changes=[CITY, AGE], earlier_shape_changes=1)

    assert (
        f"  schema     3 changes, last {AGE_DECIDED.replace('UTC ', 'UTC:')}\n"
    ) in dataset_block(changed, NOW)
    assert list(schema_change_lines(changed)) == [
        "             1 earlier change",
        "             2026-11-20 10:00:00 UTC  a new column city (policy: propagate)",
        f"             {AGE_DECIDED}",
    ]
    assert "  schema " not in dataset_block(BUSY, NOW)
