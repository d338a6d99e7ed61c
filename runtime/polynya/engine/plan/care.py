"""How good the shape of a table is, what was done about it, and what comes next. Needs no JVM."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any

from pyiceberg.table import Table

from polynya.engine.work.upkeep.choose import Choice, choose
from polynya.engine.work.upkeep.spent import came_true
from polynya.lake.maintenance.look.facts import (
    files_facts,
    may_be_joined,
    may_be_rewritten,
    table_facts,
)
from polynya.lake.maintenance.look.health import Health, health_of
from polynya.lake.maintenance.look.record import Done, Record
from polynya.lake.maintenance.look.rule import BUILT_NAMES, kept_for, rule_of
from polynya.lake.maintenance.rewrite.plan import REWRITTEN
from polynya.lake.read.inspect import data_files, data_manifests
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.maintenance.actions import ActionName


@dataclass(frozen=True, slots=True)
class Care:
    """See the module."""

    health: Health
    choice: Choice
    record: Record

    @property
    def last(self) -> tuple[ActionName, Done] | None:
        """The action that was taken last."""
        return self.record.newest

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        last, comes = self.last, self.choice.next
        return {
            "health": _plain(asdict(self.health)),
            "last_action": None if last is None else {"action": last[0], **_plain(asdict(last[1]))},
            "came_true": [one.as_json() for one in came_true(self.record)],
            "next_action": None
            if comes is None
            else {
                "action": comes.action,
                "due": comes.taken,
                "reason": comes.reason,
                "score": round(comes.score, 3),
                "at": None if comes.at is None else comes.at.isoformat(),
            },
        }


def care_of(table: Table, dataset: ResolvedDataset, now: datetime) -> Care:
    """What is known of a table, by its newest metadata."""
    text = table.metadata.model_dump_json(by_alias=True)
    rule, settings = rule_of(dataset), dataset.maintenance
    facts = table_facts(
        table.metadata.model_dump(by_alias=True, mode="json"),
        now=now,
        expiry=settings.snapshot_expiry,
        metadata_bytes=len(text),
        retention=kept_for(dataset),
    )
    if may_be_joined(facts):
        facts = replace(facts, data_manifests=data_manifests(table))
    if may_be_rewritten(facts, rule):
        sizes: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for partition, rows, size in data_files(table):
            sizes[partition].append((rows, size))
        files = {str(one): files_facts(sizes[str(one)], rule) for one in REWRITTEN}
        facts = replace(facts, files=files)
    choice = choose(facts, settings, rule=rule, built=BUILT_NAMES)
    return Care(health_of(facts, rule), choice, facts.record)


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: value.isoformat() if isinstance(value, datetime) else value
        for name, value in values.items()
    }
