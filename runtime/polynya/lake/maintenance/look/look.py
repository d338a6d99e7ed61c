"""Look at a table that is open, in few calls into the JVM, and write down what was done to it.

A look costs `CALLS` calls. Where the snapshot counts more files than a rewrite would leave, it
costs what `IcebergTable.files` does, too: nothing for partitions that applies have read already.
Where it counts many manifests, their list is read.
"""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime
from operator import attrgetter
from typing import Any, Final

from polynya.lake.iceberg.gateway import IcebergTable
from polynya.lake.maintenance.fenced import commit_fenced
from polynya.lake.maintenance.look.facts import (
    TableFacts,
    files_facts,
    may_be_joined,
    may_be_rewritten,
    table_facts,
)
from polynya.lake.maintenance.look.record import PROPERTY, Record
from polynya.lake.maintenance.look.rule import kept_for
from polynya.lake.maintenance.rewrite.plan import REWRITTEN, Rule
from polynya.lake.table.dataset import DatasetTable
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
    expiry = target.dataset.maintenance.snapshot_expiry
    facts = table_facts(
        json.loads(text),
        now=now,
        expiry=expiry,
        metadata_bytes=len(text),
        retention=kept_for(target.dataset),
    )
    if may_be_joined(facts):
        facts = replace(facts, data_manifests=target.table.data_manifests())
    snapshot = target.state.snapshot
    if snapshot is None or not may_be_rewritten(facts, rule):
        return facts
    found = {partition: target.table.files(partition, snapshot) for partition in REWRITTEN}
    return replace(
        facts,
        files={
            str(partition): files_facts([(one.rows, one.size_bytes) for one in files], rule)
            for partition, files in found.items()
        },
    )


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
