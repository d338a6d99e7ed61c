"""Datasets as resources: health, freshness, backlog, schema, and rejected records."""

from __future__ import annotations

import fnmatch
import re
from enum import StrEnum
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel

from polynya.engine.inventory import inventory
from polynya.lake.read.inspect import quarantine
from polynya.lake.spark.catalog import has_tables, python_catalog
from polynya.model.error_catalogue.server import NO_SUCH_RESOURCE
from polynya.model.names import shown
from polynya.server.access.actions import Action
from polynya.server.access.door import allowed
from polynya.server.health import HealthPart, HealthWord
from polynya.server.overview import DatasetOverview
from polynya.server.pages import Cursor, Limit, ListPage, page
from polynya.server.state import ServerState

router = APIRouter(tags=["datasets"])


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


class DatasetDetails(DatasetShown):
    """A dataset with its columns, and with all that `polynya status --json` says of it."""

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


@router.get("/datasets", dependencies=[allowed(Action.VIEW_PROJECT)])
async def datasets(
    request: Request,
    *,
    name: Annotated[str, Query(max_length=500, description="a glob of names")] = "*",
    task: Annotated[str | None, Query(max_length=500)] = None,
    health: HealthWord | None = None,
    sort: DatasetOrder = DatasetOrder.NAME,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> ListPage[DatasetShown]:
    """The datasets of the project, as of the newest look at their tables."""
    overview, _ = await ServerState.of(request).newest()

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
    return ListPage(items=[_shown(one) for one in part.items], total=part.total, next=part.next)


@router.get("/datasets/{name}", dependencies=[allowed(Action.VIEW_PROJECT)])
async def dataset(request: Request, name: str) -> DatasetDetails:
    """One dataset."""
    overview, _ = await ServerState.of(request).newest()
    facts = overview.datasets.get(name)
    if facts is None:
        raise NO_SUCH_RESOURCE(what=f"dataset {shown(name)}")
    return DatasetDetails(
        **_shown(facts).model_dump(),
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
    project = ServerState.of(request).project()
    catalog = python_catalog(project.target) if has_tables(project.target) else None
    entries = inventory(project, catalog, lambda one: one.relations.current == name)
    entry = next(entries, None)
    if entry is None:
        raise NO_SUCH_RESOURCE(what=f"dataset {shown(name)}")
    rows = [] if entry.table is None else quarantine(entry.table).to_pylist()
    found = [
        QuarantinedRecord(
            id=row["id"],
            dataset=name,
            file=row["file"],
            offset=row["offset"],
            rule=row["rule"],
            error=row["error"],
            raw=(row["raw"] or b"").decode("utf-8", errors="backslashreplace"),
        )
        for row in rows
        if rule in (None, row["rule"])
    ]
    found.sort(key=lambda one: (one.rule, one.id))
    return page(found, lambda one: (one.rule, one.id), limit, cursor)


def _shown(one: DatasetOverview) -> DatasetShown:
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
    )
