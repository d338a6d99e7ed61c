"""The metadata of a table with a commit every two seconds, for hours, by the rule alone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from polynya.engine.maintenance_choice import SNAPSHOT_BYTES, choose
from polynya.lake.maintenance import snapshots
from polynya.lake.maintenance.health import PROPERTY, Done, MaintenanceRecord, table_facts
from polynya.lake.maintenance.rewrite_plan import RewriteRule
from polynya.lake.maintenance.snapshots import Keep
from polynya.model.config.maintenance import Maintenance

BEGAN = datetime(2026, 3, 1, tzinfo=UTC)
EVERY = timedelta(seconds=2)
LOOK = timedelta(minutes=1)


class Fed:
    """A table as its metadata tells of it."""

    def __init__(self, settings: Maintenance) -> None:
        self.settings = settings
        self.now = BEGAN
        self.expiries = 0
        self._record = MaintenanceRecord(BEGAN)
        self._snapshots: list[dict[str, Any]] = []

    @property
    def snapshots(self) -> int:
        return len(self._snapshots)

    def runs(self, time: timedelta) -> list[int]:
        """Take commits, and what pays, for a time; bytes of snapshots that each minute's wrote."""
        written: list[int] = []
        until = self.now + time
        while self.now < until:
            written.append(0)
            for _ in range(LOOK // EVERY):
                self._commit()
                written[-1] += SNAPSHOT_BYTES * len(self._snapshots)
            self._maintain()
        return written

    def _commit(self) -> None:
        self.now += EVERY
        number = int(self._snapshots[-1]["snapshot-id"]) + 1 if self._snapshots else 1
        self._snapshots.append(
            {
                "snapshot-id": number,
                "parent-snapshot-id": number - 1,
                "timestamp-ms": int(self.now.timestamp() * 1000),
                "summary": {"polynya.step": "copy", "total-data-files": "5"},
            }
        )

    def _metadata(self) -> dict[str, Any]:
        newest = self._snapshots[-1]["snapshot-id"]
        return {
            "current-snapshot-id": newest,
            "refs": {"main": {"snapshot-id": newest, "type": "branch"}},
            "snapshots": self._snapshots,
            "properties": {PROPERTY: self._record.to_json()},
        }

    def _maintain(self) -> None:
        expiry = self.settings.snapshot_expiry
        facts = table_facts(self._metadata(), now=self.now, expiry=expiry)
        taken = choose(facts, self.settings, rule=RewriteRule()).taken
        if taken is None or taken.action != "expire_snapshots":
            return
        keep = Keep(expiry.age, expiry.keep, expiry.at_most)
        chosen = snapshots.choose(self._metadata(), keep, now=self.now)
        before = len(self._snapshots)
        self._snapshots = [
            one for one in self._snapshots if one["timestamp-ms"] >= chosen.older_than_ms
        ]
        assert before - len(self._snapshots) == chosen.expired > 0
        self.expiries += 1
        done = Done(self.now, chosen.why, files_removed=chosen.expired)
        self._record = self._record.with_done("expire_snapshots", done)


def test_it_levels_off_within_the_hour_and_is_not_tidied_all_the_time() -> None:
    table = Fed(Maintenance())

    first = table.runs(timedelta(hours=1))
    then = table.runs(timedelta(hours=1))

    assert max(then) <= 1.05 * max(first)
    # 1,000 that stay and those that came since the last expiry.
    assert max(then) <= 30 * 1300 * SNAPSHOT_BYTES
    assert 1000 <= table.snapshots <= 1300
    assert table.expiries <= 15


def test_what_was_current_within_the_last_half_hour_is_always_there() -> None:
    table = Fed(Maintenance.model_validate({"snapshot_expiry": {"at_most": 20}}))

    table.runs(timedelta(hours=1))

    assert timedelta(minutes=30) // EVERY <= table.snapshots <= 1200
