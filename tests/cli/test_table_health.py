"""The health of a table in plain words. Without Spark, and without tables."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from polynya.cli.status import health_line, maintenance_line
from polynya.cli.tables import review_line, verdict_line
from polynya.engine.maintenance_choice import choose, review_actions
from polynya.engine.maintenance_status import MaintenanceStatus
from polynya.lake.maintenance.health import (
    PROPERTY,
    Done,
    FilesFacts,
    MaintenanceRecord,
    TableFacts,
    health_of,
)
from polynya.lake.maintenance.rewrite_plan import RewriteRule
from polynya.model.config.maintenance import Maintenance

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
MEBIBYTE = 2**20
RULE = RewriteRule()


def care(**facts: Any) -> MaintenanceStatus:
    """What is known of a table that is read four times an hour."""
    seen = TableFacts(
        at=NOW, snapshot=1, written_at=NOW, oldest=NOW - timedelta(hours=1), reads=4.0, **facts
    )
    return MaintenanceStatus(
        health_of(seen, RULE), choose(seen, Maintenance(), rule=RULE), seen.record
    )


CROWDED = care(
    data_files=120,
    rows=9000,
    size_bytes=60 * MEBIBYTE,
    files={"current": FilesFacts(120, 9000, 60 * MEBIBYTE, (MEBIBYTE // 2,) * 120, 9000)},
    delete_files=1,
    deleted_rows=90,
    manifests=7,
    snapshots=1200,
    metadata_bytes=3 * 2**18,
    record=MaintenanceRecord(
        NOW, {"expire_snapshots": Done(NOW, "40 of 52 snapshots", seconds=0.31)}
    ),
)


def test_a_table_has_a_score_and_the_figures_that_make_it() -> None:
    assert health_line(CROWDED) == (
        "80 of 100: 120 files of 512 KiB, 1.0% deleted in 1 file, 9,090 rows not optimised, "
        "7 manifests, 1,200 snapshots in 768 KiB of metadata"
    )


def test_what_was_done_last_and_what_comes_next_and_why_not_sooner() -> None:
    text = maintenance_line(CROWDED, NOW)

    assert text == (
        "expire_snapshots 2026-11-21 12:00:00 UTC, 0.0 s ago, in 0.3 s: 40 of 52 snapshots; "
        "next rewrite_data_files: 119 small files fewer to open: it pays in 247 minutes "
        "if nothing changes"
    )
    assert maintenance_line(care(), NOW) is None
    nothing = next(one for one in care().choice.verdicts if one.action == "expire_rows")
    assert verdict_line(nothing) == (
        "  expire_rows                   not now  there is nothing to do"
    )


def test_what_came_true_stands_beside_what_was_expected() -> None:
    earlier = NOW - timedelta(hours=1)
    joined = Done(NOW, "", expected_cost=200, cost=500, expected_gain=1000, gain=900, whole=False)
    record = MaintenanceRecord(
        NOW, {"expire_rows": Done(earlier, "", cost=9), "rewrite_data_files": joined}
    )

    first, second = (review_line(one) for one in review_actions(record))
    assert first == (
        "  rewrite_data_files            last     cost 2.50 of what was expected, "
        "gain 0.90 of what was expected (a part of it)"
    )
    assert second == "  expire_rows                   last     nothing was expected"
    newest, _ = care(record=record).as_json()["came_true"]
    assert newest == {
        "action": "rewrite_data_files", "at": NOW.isoformat(), "whole": False,
        "expected_cost": 200, "cost": 500, "cost_ratio": 2.5,
        "expected_gain": 1000, "gain": 900, "gain_ratio": 0.9,
    }  # fmt: skip
    assert MaintenanceRecord.of({PROPERTY: record.to_json()}) == record


def test_programs_get_all_of_it() -> None:
    said = json.loads(json.dumps(CROWDED.as_json()))

    assert said["health"]["score"] == 80
    assert said["last_action"]["action"] == "expire_snapshots"
    assert [one["action"] for one in said["came_true"]] == ["expire_snapshots"]
    assert said["next_action"]["at"].startswith("2026-11-21T16:06")
    assert not said["next_action"]["due"]
