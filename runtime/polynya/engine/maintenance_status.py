"""The maintenance status of a table: its health, the last actions, the next one. Needs no JVM."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any

from polynya.engine.maintenance_choice import MaintenanceChoice, choose, review_actions
from polynya.lake.iceberg.wanted import TargetLayout
from polynya.lake.maintenance.health import (
    BUILT_NAMES,
    Done,
    FileSize,
    Health,
    MaintenanceRecord,
    TableFacts,
    events_kept_for,
    files_facts,
    health_of,
    kept_for,
    may_be_joined,
    may_be_outdated,
    may_be_rewritten,
    oldest_event,
    rule_of,
    table_facts,
)
from polynya.lake.maintenance.rewrite_plan import REWRITTEN
from polynya.lake.read.committed import CommittedTable
from polynya.lake.read.inspect import states
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.maintenance import ActionName
from polynya.observe.maintenance import TableHealth


@dataclass(frozen=True, slots=True)
class MaintenanceStatus:
    """See the module."""

    health: Health
    choice: MaintenanceChoice
    record: MaintenanceRecord

    @property
    def last(self) -> tuple[ActionName, Done] | None:
        """The action that was taken last."""
        return self.record.newest

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        last, following = self.last, self.choice.next
        return {
            "health": _plain(asdict(self.health)),
            "last_action": None if last is None else {"action": last[0], **_plain(asdict(last[1]))},
            "came_true": [review.as_json() for review in review_actions(self.record)],
            "next_action": None
            if following is None
            else {
                "action": following.action,
                "due": following.taken,
                "reason": following.reason,
                "score": round(following.score, 3),
                "at": None if following.at is None else following.at.isoformat(),
            },
        }


def maintenance_status(
    table: CommittedTable, dataset: ResolvedDataset, now: datetime
) -> MaintenanceStatus:
    """What is known of a table, by its newest metadata."""
    rule, settings = rule_of(dataset), dataset.maintenance
    facts = committed_facts(table, dataset, now)
    choice = choose(facts, settings, rule=rule, built=BUILT_NAMES)
    return MaintenanceStatus(health_of(facts, rule), choice, facts.record)


def committed_facts(table: CommittedTable, dataset: ResolvedDataset, now: datetime) -> TableFacts:
    """The facts of a table that maintenance is chosen by, as the engine sees them (`look`)."""
    metadata = table.metadata
    facts = table_facts(
        metadata,
        now=now,
        expiry=dataset.maintenance.snapshot_expiry,
        metadata_bytes=table.metadata_bytes,
        retention=kept_for(dataset),
    )
    if (events_kept := events_kept_for(dataset)) is not None:
        _, apply = states(table)
        facts = replace(facts, events_kept=events_kept, oldest_event=oldest_event(apply))
    if may_be_joined(facts):
        facts = replace(facts, data_manifests=table.data_manifests)
    rule, wanted = rule_of(dataset), TargetLayout.of(metadata, dataset.layout.sort_by)
    if not (may_be_rewritten(facts, rule) or may_be_outdated(metadata, wanted)):
        return facts
    sizes: dict[str, list[FileSize]] = defaultdict(list)
    for file in table.data_files(REWRITTEN):
        size = FileSize(file.rows, file.size_bytes, file.spec, file.sort_order)
        sizes[file.partition].append(size)
    files = {
        partition: files_facts(partition, sizes[partition], rule, wanted)
        for partition in map(str, REWRITTEN)
    }
    return replace(facts, files=files)


def health_event(
    dataset: ResolvedDataset, facts: TableFacts, choice: MaintenanceChoice
) -> TableHealth:
    """How good the shape of a table is, and what comes next."""
    health, following = health_of(facts, rule_of(dataset)), choice.next
    last = facts.record.newest
    return TableHealth(
        subject=dataset.relations.current,
        health_percent=health.score,
        files=health.files,
        average_bytes=health.average_bytes,
        delete_files=health.delete_files,
        deleted_share=health.deleted_share,
        manifests=health.manifests,
        metadata_bytes=health.metadata_bytes,
        snapshots=health.snapshots,
        rows_not_optimised=health.rows_not_optimised,
        removed_orphan_bytes=health.removed_orphan_bytes,
        last_action=None if last is None else last[0],
        last_action_at=None if last is None else last[1].at.isoformat(),
        next_action=None if following is None else following.action,
        reason=None if following is None else following.reason,
    )


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: value.isoformat() if isinstance(value, datetime) else value
        for name, value in values.items()
    }
