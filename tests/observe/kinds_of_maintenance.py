"""Every event of maintenance: how it is made, what it says to people and to programs."""

from __future__ import annotations

from typing import Any

from polynya.model.errors import DependencyError
from polynya.observe import maintenance
from polynya.observe.events import Event, Level

REFUSED = DependencyError("POLYNYA-DEP-005", "S3\nis slow", where="s3://lake", fix="wait")

OF_MAINTENANCE: list[tuple[Event, Level, str, dict[str, Any]]] = [
    (
        maintenance.MaintenanceDone(
            subject="shop.users",
            action="rewrite_data_files",
            reason="59 small files fewer to open",
            ended="60 files became 1",
            whole=True,
            expected_gain_bytes=900,
            gain_bytes=890,
            expected_cost_bytes=300,
            cost_bytes=310,
            read_bytes=100,
            written_bytes=90,
            freed_bytes=0,
            files_removed=60,
            files_added=1,
            seconds=1.24,
        ),
        Level.DETAIL,
        "maintained shop.users: 60 files became 1, in 1.2 s (59 small files fewer to open)",
        {
            "subject": "shop.users",
            "action": "rewrite_data_files",
            "reason": "59 small files fewer to open",
            "ended": "60 files became 1",
            "whole": True,
            "expected_gain_bytes": 900,
            "gain_bytes": 890,
            "expected_cost_bytes": 300,
            "cost_bytes": 310,
            "read_bytes": 100,
            "written_bytes": 90,
            "freed_bytes": 0,
            "files_removed": 60,
            "files_added": 1,
            "seconds": 1.24,
        },
    ),
    (
        maintenance.MaintenanceFailed(
            subject="shop.users", action="expire_snapshots", error=REFUSED
        ),
        Level.WARNING,
        "shop.users: expire_snapshots failed: s3://lake: S3 is slow (POLYNYA-DEP-005); wait",
        {
            "subject": "shop.users",
            "action": "expire_snapshots",
            "error": str(REFUSED),
            "code": "POLYNYA-DEP-005",
        },
    ),
    (
        maintenance.TableHealth(
            subject="shop.users",
            health_percent=87,
            files=312,
            average_bytes=3 * 2**19,
            delete_files=4,
            deleted_share=0.123,
            manifests=9,
            metadata_bytes=40_000,
            snapshots=1200,
            rows_not_optimised=77,
            removed_orphan_bytes=5000,
            last_action="z",
            last_action_at="2026-11-21T12:00:00+00:00",
            next_action="x",
            reason="y",
        ),
        Level.DETAIL,
        "health   shop.users: 87 of 100, 312 files of 1.5 MiB, 12% deleted, 1,200 snapshots; x: y",
        {
            "subject": "shop.users",
            "health_percent": 87,
            "files": 312,
            "average_bytes": 3 * 2**19,
            "delete_files": 4,
            "deleted_share": 0.123,
            "manifests": 9,
            "metadata_bytes": 40_000,
            "snapshots": 1200,
            "rows_not_optimised": 77,
            "removed_orphan_bytes": 5000,
            "last_action": "z",
            "last_action_at": "2026-11-21T12:00:00+00:00",
            "next_action": "x",
            "reason": "y",
        },
    ),
]
