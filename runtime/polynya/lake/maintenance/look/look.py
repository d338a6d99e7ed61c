"""Look at a table that is open, in few calls into the JVM, and write down what was done to it.

A look costs `CALLS` calls. Where the snapshot counts more files than a rewrite would leave, it
costs what `IcebergTable.files` does, too, and so it does where files may have an old layout:
nothing for partitions that this process has read already. Where it counts many manifests, their
list is read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from operator import attrgetter
from typing import Any, Final

from polynya.lake.iceberg.gateway import IcebergTable
from polynya.lake.iceberg.parting.wanted import Wanted
from polynya.lake.iceberg.user_layout import lacks
from polynya.lake.maintenance.fenced import commit_fenced
from polynya.lake.maintenance.look.facts import (
    FilesFacts,
    FileSize,
    TableFacts,
    files_facts,
    may_be_joined,
    may_be_outdated,
    may_be_rewritten,
    table_facts,
)
from polynya.lake.maintenance.look.record import PROPERTY, Record
from polynya.lake.maintenance.look.rule import events_kept_for, kept_for, oldest_event
from polynya.lake.maintenance.rewrite.plan import REWRITTEN, Rule
from polynya.lake.table.dataset import DatasetTable
from polynya.model.config.dataset import Layout
from polynya.model.config.recorded import LAYOUT
from polynya.model.contract.headers import Partition
from polynya.observe.trace import span

#: Calls into the JVM of a look: the operations, their metadata, and its text.
CALLS: Final = 3


@span("look at table", table=attrgetter("table.name"))
def look(
    target: DatasetTable, *, now: datetime, rule: Rule, committed_beside: bool = False
) -> TableFacts:
    """The facts of a table as this process has it.

    `committed_beside`: this process committed through another object of the table, as an expiry
    does, so that the catalog is asked for the newest metadata.
    """
    if committed_beside:
        with target.changing:
            operations: Any = target.table.java.operations()
            operations.refresh()
    text = _metadata(target.table)
    metadata, expiry = json.loads(text), target.dataset.maintenance.snapshot_expiry
    facts = table_facts(
        metadata,
        now=now,
        expiry=expiry,
        metadata_bytes=len(text),
        retention=kept_for(target.dataset),
    )
    if (events_kept := events_kept_for(target.dataset)) is not None:
        oldest = oldest_event(target.state.apply)
        facts = replace(facts, events_kept=events_kept, oldest_event=oldest)
    if may_be_joined(facts):
        facts = replace(facts, data_manifests=target.table.data_manifests())
    snapshot = target.state.snapshot
    wanted = Wanted.of(metadata, target.dataset.layout.sort_by)
    if snapshot is None or not (may_be_rewritten(facts, rule) or may_be_outdated(metadata, wanted)):
        return facts
    return replace(facts, files=dict(_files(target.table, snapshot, rule, wanted)))


def awaits_layout(target: DatasetTable) -> bool:
    """Whether the table gets another layout when its owner takes it over."""
    layout, settings = target.dataset.layout, target.state.copy.settings
    if target.owned or (layout == Layout() and not any(settings.get(one) for one in LAYOUT)):
        return False
    return lacks(target.table, layout, target.known_schema())


def _files(
    table: IcebergTable, snapshot: int, rule: Rule, wanted: Wanted
) -> Iterator[tuple[str, FilesFacts]]:
    """Facts of the files of each partition that is written again."""
    spec_id = table.java_files().spec_id
    for partition in map(str, REWRITTEN):
        files = [
            FileSize(one.rows, one.size_bytes, spec_id(one.slot), one.sort_order)
            for one in table.files(Partition(partition), snapshot)
        ]
        yield partition, files_facts(partition, files, rule, wanted)


def remember(target: DatasetTable, record: Record) -> None:
    """Write down what was done. It is a change of metadata alone, which no step conflicts with.

    Raises ConflictError when another owner has taken the table over.
    """

    def write(transaction: Any) -> None:
        transaction.updateProperties().set(PROPERTY, record.to_json()).commit()

    with target.changing:
        commit_fenced(target, target.table, write)


def _metadata(table: IcebergTable) -> str:
    parser: Any = table.iceberg.TableMetadataParser
    return str(parser.toJson(table.java.operations().current()))
