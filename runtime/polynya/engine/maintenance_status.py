"""The maintenance status of a table: its health, the last actions, the next one. Needs no JVM."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any

from pyiceberg.table import Table

from polynya.engine.maintenance_choice import MaintenanceChoice, choose, review_actions
from polynya.lake.iceberg.wanted import TargetLayout
from polynya.lake.maintenance.health import (
    BUILT_NAMES,
    Done,
    FileSize,
    Health,
    MaintenanceRecord,
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
from polynya.lake.read.inspect import data_files, data_manifests, states
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.maintenance import ActionName


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


def maintenance_status(table: Table, dataset: ResolvedDataset, now: datetime) -> MaintenanceStatus:
    """What is known of a table, by its newest metadata."""
    text = table.metadata.model_dump_json(by_alias=True)
    rule, settings = rule_of(dataset), dataset.maintenance
    metadata = table.metadata.model_dump(by_alias=True, mode="json")
    facts = table_facts(
        metadata,
        now=now,
        expiry=settings.snapshot_expiry,
        metadata_bytes=len(text),
        retention=kept_for(dataset),
    )
    if (events_kept := events_kept_for(dataset)) is not None:
        _, apply = states(table)
        facts = replace(facts, events_kept=events_kept, oldest_event=oldest_event(apply))
    if may_be_joined(facts):
        facts = replace(facts, data_manifests=data_manifests(table))
    wanted = TargetLayout.of(metadata, dataset.layout.sort_by)
    if may_be_rewritten(facts, rule) or may_be_outdated(metadata, wanted):
        sizes: dict[str, list[FileSize]] = defaultdict(list)
        for file in data_files(table):
            size = FileSize(file.rows, file.size_bytes, file.spec, file.sort_order)
            sizes[file.partition].append(size)
        partitions = map(str, REWRITTEN)
        facts = replace(
            facts,
            files={
                partition: files_facts(partition, sizes[partition], rule, wanted)
                for partition in partitions
            },
        )
    choice = choose(facts, settings, rule=rule, built=BUILT_NAMES)
    return MaintenanceStatus(health_of(facts, rule), choice, facts.record)


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: value.isoformat() if isinstance(value, datetime) else value
        for name, value in values.items()
    }
