"""Facts of a table, from the JSON of its metadata."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from polynya.lake.iceberg.wanted import TargetLayout
from polynya.lake.maintenance.health import (
    PROPERTY,
    Done,
    FilesFacts,
    FileSize,
    MaintenanceRecord,
    files_facts,
    health_of,
    may_be_outdated,
    may_be_rewritten,
    table_facts,
)
from polynya.lake.maintenance.rewrite_plan import RewriteRule
from polynya.model.config.maintenance import SnapshotExpiry

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
RULE = RewriteRule()


def metadata(snapshots: int, *, every: timedelta = MINUTE, **summary: Any) -> dict[str, Any]:
    """A table with so many snapshots, the last of them now."""
    made = [NOW - every * back for back in reversed(range(snapshots))]
    figures = {"total-data-files": 40, "total-records": 1000, "total-files-size": 4000}
    texts = {name: str(value) for name, value in {**figures, **summary}.items()}
    return {
        "current-snapshot-id": snapshots,
        "refs": {"main": {"snapshot-id": snapshots, "type": "branch"}},
        "snapshots": [
            {
                "snapshot-id": number,
                "parent-snapshot-id": number - 1 or None,
                "timestamp-ms": int(moment.timestamp() * 1000),
                "summary": {"polynya.step": "apply" if number % 2 else "copy", **texts},
            }
            for number, moment in enumerate(made, 1)
        ],
    }


def test_rates_hold_where_there_are_more_snapshots_than_may_stay() -> None:
    many = SnapshotExpiry(at_most=40)
    before = table_facts(metadata(100), now=NOW, expiry=many)
    after = table_facts(metadata(40), now=NOW, expiry=many)

    assert before.expirable == 60
    # The first could go once forty others had come, which was after half an hour.
    assert before.expirable_since == NOW - 59 * MINUTE
    assert after.expirable == 0
    assert (before.commits, after.commits) == (60, 60)


def test_a_snapshot_counts_its_files_its_deletes_and_its_manifests() -> None:
    counted = {"total-delete-files": 3, "manifests-created": 2, "manifests-kept": 5}
    facts = table_facts(metadata(1, **counted), now=NOW, expiry=SnapshotExpiry())

    assert (facts.data_files, facts.rows, facts.size_bytes) == (40, 1000, 4000)
    assert (facts.delete_files, facts.manifests) == (3, 7)
    assert not facts.has_vectors
    newer = {**metadata(1), "format-version": 3}
    assert table_facts(newer, now=NOW, expiry=SnapshotExpiry()).has_vectors
    assert facts.reads > 0


def test_commits_and_applies_of_the_last_hour_are_counted() -> None:
    facts = table_facts(metadata(200), now=NOW, expiry=SnapshotExpiry())

    assert (facts.commits, facts.applies) == (60, 30)
    assert facts.snapshots == 200


def test_rates_do_not_fall_when_snapshots_expire_within_the_hour() -> None:
    """What has expired is not counted as if nothing had been committed then."""
    short = SnapshotExpiry(age=timedelta(minutes=10))
    before = table_facts(metadata(200), now=NOW, expiry=short)
    after = table_facts(metadata(10), now=NOW, expiry=short)

    assert (before.commits, before.applies) == (60, 30)
    assert (after.commits, after.applies) == (60, 30)


def test_what_may_expire_holds_the_files_that_followers_removed() -> None:
    removing = {"removed-files-size": 100}
    facts = table_facts(metadata(200, **removing), now=NOW, expiry=SnapshotExpiry())

    assert facts.expirable == 78
    assert facts.expirable_bytes == 7800
    assert facts.expirable_since == NOW - 198 * MINUTE + timedelta(hours=2)
    few = table_facts(metadata(10, every=60 * MINUTE), now=NOW, expiry=SnapshotExpiry())
    assert (few.expirable, few.expirable_since) == (0, None)


def test_a_table_that_was_quiet_for_a_day_has_no_readers() -> None:
    later = NOW + timedelta(days=1)

    assert table_facts(metadata(3), now=later, expiry=SnapshotExpiry()).reads == 0
    assert table_facts({}, now=NOW, expiry=SnapshotExpiry()).snapshot is None


def test_single_files_are_asked_for_only_where_a_rewrite_may_pay() -> None:
    def crowded(**summary: Any) -> bool:
        facts = table_facts(metadata(1, **summary), now=NOW, expiry=SnapshotExpiry())
        return may_be_rewritten(facts, RULE)

    assert crowded()
    assert not crowded(**{"total-data-files": 8})
    assert not crowded(**{"total-files-size": 40 * RULE.target_bytes})
    assert crowded(**{"total-data-files": 1, "total-position-deletes": 200})


def test_small_files_are_told_smallest_first() -> None:
    large = RULE.target_bytes
    files = [FileSize(5, 70), FileSize(1, large), FileSize(2, 30)]

    assert files_facts("current", files, RULE, TargetLayout(0)) == FilesFacts(
        files=3, rows=8, size_bytes=large + 100, small=(30, 70), small_rows=7
    )


def test_files_of_another_layout_are_told_but_for_small_ones_that_are_only_not_sorted() -> None:
    large = RULE.target_bytes
    parted = [FileSize(1, 10, 1), FileSize(1, 20, 0), FileSize(1, large, 0)]
    ordered = [FileSize(1, 10, 1), FileSize(1, large, 1, 3), FileSize(1, large, 1, 2)]

    def outdated(partition: str, files: list[FileSize], wanted: TargetLayout) -> tuple[int, int]:
        facts = files_facts(partition, files, RULE, wanted)
        return facts.outdated, facts.outdated_bytes

    assert outdated("current", parted, TargetLayout(1)) == (2, large + 20)
    assert outdated("prior", ordered, TargetLayout(1, 3)) == (1, large)
    assert outdated("prior", ordered, TargetLayout(1)) == (0, 0)
    # Only Current and Prior have a layout.
    assert outdated("retained", parted, TargetLayout(1, 3)) == (0, 0)


def test_single_files_are_asked_for_where_the_layout_may_have_changed() -> None:
    one, two = [{"spec-id": 0}], [{"spec-id": 0}, {"spec-id": 1}]

    assert not may_be_outdated({"partition-specs": one}, TargetLayout(0))
    assert may_be_outdated({"partition-specs": two}, TargetLayout(0))
    assert may_be_outdated({"partition-specs": one}, TargetLayout(0, 1))


def test_the_health_of_a_table_falls_with_what_its_readers_do_for_nothing() -> None:
    def score(**summary: Any) -> int:
        facts = table_facts(metadata(1, **summary), now=NOW, expiry=SnapshotExpiry())
        return health_of(facts, RULE).score

    best = score(**{"total-data-files": 1})
    assert best == 100
    assert best > score() > score(**{"total-data-files": 4000})
    assert score(**{"total-delete-files": 500}) < score()


def test_a_record_is_read_back_and_a_broken_one_is_empty() -> None:
    done = Done(NOW, "60 files became 1", expected_gain=900, gain=890, files_removed=60)
    record = MaintenanceRecord().with_done("rewrite_data_files", done)

    assert MaintenanceRecord.of({PROPERTY: record.to_json()}) == record
    assert record.began == NOW
    for broken in ("", "[]", "{", '{"last": {"expire_snapshots": {"at": "noon"}}}', '{"last": 3}'):
        assert MaintenanceRecord.of({PROPERTY: broken}) == MaintenanceRecord()
    later = record.to_json().replace('"why"', '"new_field":1,"why"')
    later = later.replace('"last":{', '"last":{"new_action":{"by":"a later version"},')
    assert MaintenanceRecord.of({PROPERTY: later}) == record
