"""Datasets as resources: health, freshness, backlog, schema, files, rejected records."""

from __future__ import annotations

import fnmatch
import re
from dataclasses import asdict
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any

from fastapi import Query, Request, Response
from pydantic import BaseModel, Field

from polynya.engine.inventory import ProjectTable, tables_of
from polynya.engine.maintenance_status import maintenance_status
from polynya.lake.read.committed import CommittedTable
from polynya.lake.read.inspect import quarantine
from polynya.lake.spark.catalog import has_tables, python_catalog
from polynya.model.config.access import ViewKind
from polynya.model.config.notification import NotificationRule
from polynya.model.config.settings import ApplyPolicy
from polynya.model.error_catalogue.server import NO_SUCH_RESOURCE
from polynya.model.loader import LoadedProject
from polynya.model.names import quote_path, shown
from polynya.server.access.actions import Action
from polynya.server.access.door import allowed, api_router
from polynya.server.health import HealthPart, HealthWord
from polynya.server.overview import DatasetOverview
from polynya.server.pages import Cursor, Fields, Limit, ListPage, only, page
from polynya.server.routes.queries import QueryAnswered, QueryAsked, answered
from polynya.server.state import ServerState

router = api_router("datasets")


class DatasetShown(BaseModel):
    """A dataset in a list; ages in seconds, None where nothing was copied or is pending."""

    name: str
    task: str
    health: HealthWord
    parts: list[HealthPart]
    rows: int | None
    pending_rows: int | None
    pending_age_seconds: float | None
    freshness_seconds: float | None
    quarantined: int | None
    copied_at: str | None
    applied_at: str | None
    late_after_seconds: float | None = Field(
        description="the strictest `stale_after` of the notification rules that take the dataset"
    )


class ApplyLimits(BaseModel):
    """Pending changes are applied once they reach one of these."""

    rows: int
    bytes: int
    files: int
    seconds: float = Field(description="age of the oldest pending change")


class DatasetDetails(DatasetShown):
    """A dataset with its columns, and with all that `polynya status --json` says of it."""

    called: str = Field(description="its name in its task, as commands take it")
    apply_at: ApplyLimits | None
    columns: dict[str, str]
    keys: list[str]
    status: dict[str, Any]
    as_of: str | None


class QuarantinedRecord(BaseModel):
    """A record that the quarantine keeps; `raw` is how it stood in its file, as text."""

    id: str
    dataset: str
    file: str
    offset: int
    rule: str
    error: str
    raw: str


class PartitionShown(BaseModel):
    """The data files of one part of a table, such as `current` or `changes`."""

    partition: str
    files: int
    rows: int
    bytes: int


class MaintenanceVerdict(BaseModel):
    """What maintenance makes of one action: whether it is taken now, why, and else when."""

    action: str
    due: bool
    reason: str
    score: float = Field(description="gain against cost; an action pays from 1 on")
    at: str | None = Field(description="when it is considered again")


class DoneMaintenance(BaseModel):
    """The last time an action was taken."""

    action: str
    at: str
    why: str
    seconds: float
    read_bytes: int
    written_bytes: int
    freed_bytes: int
    files_removed: int
    files_added: int


class TableFiles(BaseModel):
    """The files of a dataset's table, its health of 100, and what maintenance does about it."""

    health: dict[str, Any]
    partitions: list[PartitionShown]
    actions: list[MaintenanceVerdict]
    done: list[DoneMaintenance]


class SampleRows(QueryAnswered):
    """Rows of a view, with the statement that reads them all."""

    sql: str


class DatasetOrder(StrEnum):
    """By what a list of datasets is sorted; the largest first, but for names."""

    NAME = "name"
    PENDING = "pending"
    FRESHNESS = "freshness"
    QUARANTINED = "quarantined"


def _value(facts: DatasetOverview, order: DatasetOrder) -> float:
    """What a list in this order is sorted by, the smallest first."""
    status = facts.status
    if status is None or order is DatasetOrder.NAME:
        return 0.0
    if order is DatasetOrder.PENDING:
        return -float(status.pending_rows)
    if order is DatasetOrder.FRESHNESS:
        return -(status.freshness_seconds or 0.0)
    return -float(status.rows_quarantined)


_Glob = Annotated[str, Query(max_length=500, description="a glob of names")]
_Task = Annotated[str | None, Query(max_length=500)]


@router.get(
    "/datasets",
    name="datasets",
    response_model=ListPage[DatasetShown],
    dependencies=[allowed(Action.VIEW_PROJECT)],
)
async def datasets_with_fields(
    request: Request,
    *,
    name: _Glob = "*",
    task: _Task = None,
    health: HealthWord | None = None,
    sort: DatasetOrder = DatasetOrder.NAME,
    limit: Limit = 100,
    cursor: Cursor = None,
    fields: Fields = None,
) -> Response:
    """The datasets of the project, as of the newest look at their tables."""
    found = await datasets(
        request, name=name, task=task, health=health, sort=sort, limit=limit, cursor=cursor
    )
    return only(found, fields, DatasetShown)


async def datasets(
    request: Request,
    *,
    name: str = "*",
    task: str | None = None,
    health: HealthWord | None = None,
    sort: DatasetOrder = DatasetOrder.NAME,
    limit: int = 100,
    cursor: str | None = None,
) -> ListPage[DatasetShown]:
    """A page of datasets, for routes that show it."""
    overview, loaded = await ServerState.of(request).newest()

    def place(one: DatasetOverview) -> tuple[float, str]:
        return _value(one, sort), one.name

    def chosen() -> list[DatasetOverview]:
        matches = re.compile(fnmatch.translate(name)).match
        found = [
            one
            for one in overview.datasets.values()
            if task in (None, one.task) and health in (None, one.health) and matches(one.name)
        ]
        return sorted(found, key=place)

    found = overview.once(("datasets", name, task, health, sort), chosen)
    part = page(found, place, limit, cursor)
    # Thousands of datasets are filtered and sorted, and only those of the page are made JSON.
    items = [_shown(one, loaded) for one in part.items]
    return ListPage(items=items, total=part.total, next=part.next)


@router.get(
    "/datasets/{name}",
    name="dataset",
    response_model=DatasetDetails,
    dependencies=[allowed(Action.VIEW_PROJECT)],
)
async def dataset_with_fields(request: Request, name: str, fields: Fields = None) -> Response:
    """One dataset."""
    return only(await dataset(request, name), fields, DatasetDetails)


async def dataset(request: Request, name: str) -> DatasetDetails:
    """One dataset, for routes that show it."""
    overview, loaded = await ServerState.of(request).newest()
    facts = overview.datasets.get(name)
    if facts is None:
        raise NO_SUCH_RESOURCE(what=f"dataset {shown(name)}")
    task = next((one for one in loaded.tasks if one.name == facts.task), None)
    return DatasetDetails(
        **_shown(facts, loaded).model_dump(),
        called=name.partition(".")[2].removeprefix(task.prefix if task else ""),
        apply_at=task and _limits(task.apply),
        columns=dict(facts.columns),
        keys=list(facts.keys),
        status=facts.as_json(),
        as_of=None if overview.at is None else overview.at.isoformat(),
    )


@router.get("/datasets/{name}/quarantine", dependencies=[allowed(Action.VIEW_QUARANTINE)])
def quarantined(
    request: Request,
    name: str,
    rule: Annotated[str | None, Query(max_length=200)] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> ListPage[QuarantinedRecord]:
    """The rejected records of a dataset, by the rule that rejects them and their id."""
    # Start-up time.
    import pyarrow as pa

    entry = table_of(request, name)
    if entry.table is None:
        return ListPage(items=[], total=0)
    records = quarantine(entry.table).sort_by([("rule", "ascending"), ("id", "ascending")])
    places = list(zip(records["rule"].to_pylist(), records["id"].to_pylist(), strict=True))
    chosen = [number for number, (of, _) in enumerate(places) if rule in (None, of)]
    part = page(chosen, places.__getitem__, limit, cursor)
    # There may be millions, of which only those of the page become objects.
    items = [
        QuarantinedRecord(
            id=row["id"],
            dataset=name,
            file=row["file"],
            offset=row["offset"],
            rule=row["rule"],
            error=row["error"],
            raw=(row["raw"] or b"").decode("utf-8", errors="backslashreplace"),
        )
        for row in records.take(pa.array(part.items, pa.int64())).to_pylist()
    ]
    return ListPage(items=items, total=part.total, next=part.next)


@router.get("/datasets/{name}/files", dependencies=[allowed(Action.VIEW_PROJECT)])
def files(request: Request, name: str) -> TableFiles:
    """The files of a dataset's table, their health, and what maintenance will do and why."""
    entry = table_of(request, name)
    if entry.table is None:
        return TableFiles(health={}, partitions=[], actions=[], done=[])
    table = CommittedTable.of(entry.table)
    known = maintenance_status(table, entry.dataset, ServerState.of(request).clock.now())
    partitions: dict[str, PartitionShown] = {}
    for file in table.data_files():
        part = partitions.setdefault(
            file.partition, PartitionShown(partition=file.partition, files=0, rows=0, bytes=0)
        )
        part.files, part.rows = part.files + 1, part.rows + file.rows
        part.bytes += file.size_bytes
    return TableFiles(
        health=_plain(asdict(known.health)),
        partitions=[partitions[one] for one in sorted(partitions)],
        actions=[
            MaintenanceVerdict(
                action=one.action,
                due=one.taken,
                reason=one.reason,
                score=round(one.score, 3),
                at=None if one.at is None else one.at.isoformat(),
            )
            for one in known.choice.verdicts
        ],
        done=[
            DoneMaintenance(
                action=action,
                at=one.at.isoformat(),
                why=one.why,
                seconds=one.seconds,
                read_bytes=one.read_bytes,
                written_bytes=one.written_bytes,
                freed_bytes=one.freed_bytes,
                files_removed=one.files_removed,
                files_added=one.files_added,
            )
            for action, one in sorted(known.record.last.items(), key=lambda item: item[1].at)
        ],
    )


@router.get("/datasets/{name}/rows", dependencies=[allowed(Action.QUERY_DATA)])
def rows(
    request: Request,
    name: str,
    view: ViewKind = "current",
    limit: Annotated[int, Query(ge=1, le=500, description="most rows")] = 50,
) -> SampleRows:
    """Some rows of a live view, as a query of the person who asks reads them."""
    relations = table_of(request, name).dataset.relations
    views: dict[ViewKind, str] = {
        "current": relations.view,
        "history": relations.history_view,
        "changes": relations.changes_view,
    }
    sql = f"SELECT * FROM {quote_path(relations.schema, views[view])}"
    found = answered(request, QueryAsked(sql=sql, limit=limit))
    return SampleRows(sql=sql, **found.model_dump())


def table_of(request: Request, name: str) -> ProjectTable:
    """The table of a dataset, as its newest commit has it.

    Raises ConfigError where the project has no such dataset.
    """
    state = ServerState.of(request)
    project = state.known_project()
    seen = state.overview.newest().datasets.get(name)
    catalog = python_catalog(project.target) if has_tables(project.target) else None
    for task in project.tasks:
        if seen is None or seen.task == task.name:
            for entry in tables_of(task, catalog, lambda one: one.relations.current == name):
                return entry
    raise NO_SUCH_RESOURCE(what=f"dataset {shown(name)}")


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    return {
        name: value.isoformat() if isinstance(value, datetime) else value
        for name, value in values.items()
    }


def _limits(apply: ApplyPolicy) -> ApplyLimits:
    return ApplyLimits(
        rows=apply.max_pending_rows,
        bytes=apply.max_pending_bytes,
        files=apply.max_pending_files,
        seconds=apply.max_pending_age.total_seconds(),
    )


def _late_after(project: LoadedProject, task: str, name: str) -> float | None:
    rules: list[NotificationRule] = [
        rule for one in project.notifications for rule in one.settings.rules.values()
    ]
    limits = [
        rule.stale_after.total_seconds()
        for rule in rules
        if rule.takes(cause="stale", severity="warning", task=task, name=name)
    ]
    return min(limits, default=None)


def _shown(one: DatasetOverview, project: LoadedProject) -> DatasetShown:
    status = one.status
    return DatasetShown(
        name=one.name,
        task=one.task,
        health=one.health,
        parts=list(one.parts),
        rows=status and status.current_rows,
        pending_rows=status and status.pending_rows,
        pending_age_seconds=status and status.pending_age_seconds,
        freshness_seconds=status and status.freshness_seconds,
        quarantined=status and status.rows_quarantined,
        copied_at=status and status.copied_at,
        applied_at=status and status.applied_at,
        late_after_seconds=_late_after(project, one.task, one.name),
    )
