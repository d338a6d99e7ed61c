"""Latency and backlog over time, of a dataset and of a task."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Annotated, Final, TypeAlias, TypeVar

from fastapi import Query, Request
from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool

from polynya.engine.latency import read_latencies
from polynya.model.loader import LoadedProject
from polynya.observe.latency import (
    BacklogPart,
    LatencyPart,
    LatencySample,
    latency_series,
    samples_of_task,
)
from polynya.server.access.actions import Action
from polynya.server.access.door import allowed, api_router
from polynya.server.routes.datasets import table_of
from polynya.server.routes.projects import task as task_of
from polynya.server.state import ServerState

router = api_router("datasets")

Key = TypeVar("Key", LatencyPart, BacklogPart)

#: What `polynya latency` shows first, and the worst.
_HALF: Final = [50, 95]
_Days: TypeAlias = Annotated[float, Query(gt=0, le=366)]
_Hours: TypeAlias = Annotated[float, Query(ge=0.1, le=8784, description="length of a step")]
_Percentiles: TypeAlias = Annotated[list[Annotated[int, Query(ge=1, le=100)]], Query(max_length=10)]


class LatencyShown(BaseModel):
    """A step of time: percentiles by part, over the worst of each five minutes.

    In seconds `source`, `landing` and `copy` make `total`, after which live views show a change;
    after `apply` stored rows show it.
    """

    at: str
    samples: int
    rows: int
    seconds: dict[LatencyPart, dict[str, float]]
    backlog: dict[BacklogPart, dict[str, float]] = Field(
        description="what waited for a copy, in bytes and as its age in seconds, and the rows that "
        "waited for an apply"
    )


class Latencies(BaseModel):
    """Latency and backlog; `kept` is false where the project does not set `latency`."""

    kept: bool
    window_seconds: float
    step_seconds: float
    items: list[LatencyShown]


@router.get("/datasets/{name}/latency", dependencies=[allowed(Action.VIEW_PROJECT)])
def dataset_latency(
    request: Request,
    name: str,
    *,
    days: _Days = 30.0,
    hours: _Hours = 4.0,
    percentile: _Percentiles = _HALF,
) -> Latencies:
    """How long changes of a dataset took and what waited; kept where the project sets `latency`."""
    entry = table_of(request, name)

    def read(project: LoadedProject, since: datetime) -> list[LatencySample]:
        return read_latencies(project, since, entry.name)

    return _latencies(request, read, days, hours, percentile)


@router.get("/tasks/{name}/latency", dependencies=[allowed(Action.VIEW_PROJECT)])
async def task_latency(
    request: Request,
    name: str,
    *,
    days: _Days = 30.0,
    hours: _Hours = 4.0,
    percentile: _Percentiles = _HALF,
) -> Latencies:
    """The worst latencies of the datasets of a task, and what waited of all of them."""
    await task_of(request, name)

    def read(project: LoadedProject, since: datetime) -> list[LatencySample]:
        return samples_of_task(read_latencies(project, since, task=name), name)

    return await run_in_threadpool(_latencies, request, read, days, hours, percentile)


def _latencies(
    request: Request,
    read: Callable[[LoadedProject, datetime], list[LatencySample]],
    days: float,
    hours: float,
    percentiles: Sequence[int],
) -> Latencies:
    state = ServerState.of(request)
    project, now, step = state.known_project(), state.clock.now(), timedelta(hours=hours)
    window = max(timedelta(days=days), step)
    samples = read(project, now - window)
    series = latency_series(samples, now=now, window=window, step=step, percentiles=percentiles)
    return Latencies(
        kept=project.project.latency is not None,
        window_seconds=window.total_seconds(),
        step_seconds=step.total_seconds(),
        items=[
            LatencyShown(
                at=one.at.isoformat(),
                samples=one.samples,
                rows=one.rows,
                seconds=_named(one.percentiles),
                backlog=_named(one.backlog),
            )
            for one in series
        ],
    )


def _named(parts: Mapping[Key, Mapping[int, float]]) -> dict[Key, dict[str, float]]:
    return {
        part: {f"p{percent}": value for percent, value in values.items()}
        for part, values in parts.items()
    }
