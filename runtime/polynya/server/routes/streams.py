"""Streams as resources: each table that a task lands, or reads directly, from a topic or stream."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Annotated, Final, Literal, TypeAlias

from fastapi import Query, Request
from pydantic import BaseModel, Field

from polynya.model.config.stream_landing import DirectTask
from polynya.model.error_catalogue.server import NO_SUCH_RESOURCE
from polynya.model.errors import PolynyaError
from polynya.model.names import shown
from polynya.server.access.actions import Action
from polynya.server.access.door import allowed, api_router
from polynya.server.pages import Cursor, Limit, ListPage, page
from polynya.server.state import ServerState
from polynya.streams.source import BEHIND_UNITS

if TYPE_CHECKING:
    # Start-up time: the batches of streams.
    from polynya.streams.landed_status import StreamStatus

router = api_router("streams")

StreamWord: TypeAlias = Literal["new", "current", "behind", "unknown"]
_NOTHING: Final = "nothing was read yet: `polynya run`"


class StreamLoss(BaseModel):
    """Records that the source had no more when they were to be read."""

    at: str = Field(description="partition or shard")
    since: str = Field(description="first position that was lost")
    until: str
    why: str


class StreamShown(BaseModel):
    """A landed table, as of its newest batch; ages in seconds, what is unknown is null."""

    name: str = Field(description="`task/table`")
    task: str
    table: str | None
    source: str | None = Field(description="`kafka`, `kinesis`, `files` or `http`")
    direct: bool = Field(description="the table reads the source itself; nothing lands")
    state: StreamWord
    reason: str
    read_at: str | None = Field(description="when the newest batch was written")
    age_seconds: float | None
    batches: int
    records: int
    bytes: int
    behind: int | None = Field(description="what the source had beyond the newest batch, at most")
    behind_unit: str | None = Field(description="`records`, `shards`, `files` or `pages`")
    behind_seconds: float | None
    records_per_second: float | None
    bytes_per_second: float | None
    lost_records: int
    lost: list[StreamLoss] = Field(description="before the newest batch")


class StreamPlace(BaseModel):
    """The next position of a partition or shard."""

    at: str
    position: str


@router.get("/streams", dependencies=[allowed(Action.VIEW_PROJECT)])
def streams(
    request: Request,
    *,
    task: Annotated[str | None, Query(max_length=500)] = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> ListPage[StreamShown]:
    """The streams of the project by name; a task that has read nothing yet is one of them."""
    state = ServerState.of(request)
    found = [
        one
        for name, read in _reads(state)
        if task in (None, name)
        for one in _of_task(state, name, read)
    ]
    found.sort(key=lambda one: one.name)
    return page(found, lambda one: (one.name, one.name), limit, cursor)


@router.get("/streams/{task}/{table}", dependencies=[allowed(Action.VIEW_PROJECT)])
def stream(request: Request, task: str, table: str) -> StreamShown:
    """One stream."""
    return _shown(ServerState.of(request), task, _known(request, task, table))


@router.get("/streams/{task}/{table}/positions", dependencies=[allowed(Action.VIEW_PROJECT)])
def positions(
    request: Request, task: str, table: str, limit: Limit = 100, cursor: Cursor = None
) -> ListPage[StreamPlace]:
    """The partitions or shards of a stream, each with the next position to read."""
    found = [
        StreamPlace(at=at, position=position)
        for at, position in _known(request, task, table).positions.items()
    ]
    found.sort(key=lambda one: one.at)
    return page(found, lambda one: (one.at, one.at), limit, cursor)


def _known(request: Request, task: str, table: str) -> StreamStatus:
    for name, read in _reads(ServerState.of(request)):
        for one in read() if name == task else ():
            if one.table == table:
                return one
    raise NO_SUCH_RESOURCE(what=f"stream {shown(task)}/{shown(table)}")


def _reads(state: ServerState) -> Iterator[tuple[str, Callable[[], list[StreamStatus]]]]:
    """Each task that reads streams, and what tells its streams; that may raise PolynyaError."""
    project, sources = state.known_project(), state.sources
    for landing in project.landings:
        yield landing.name, partial(sources.streams, project, landing)
    for task in project.tasks:
        if isinstance(task, DirectTask):
            yield task.name, partial(sources.direct, project, task)


def _of_task(
    state: ServerState, task: str, read: Callable[[], list[StreamStatus]]
) -> list[StreamShown]:
    """The streams of a task, or one line that says why there is none."""
    try:
        found = read()
    except PolynyaError as error:
        return [_without(task, "unknown", f"{error.message} ({error.code})")]
    return [_shown(state, task, one) for one in found] or [_without(task, "new", _NOTHING)]


def _without(task: str, word: StreamWord, reason: str) -> StreamShown:
    return StreamShown(
        name=task,
        task=task,
        table=None,
        source=None,
        direct=False,
        state=word,
        reason=reason,
        read_at=None,
        age_seconds=None,
        batches=0,
        records=0,
        bytes=0,
        behind=None,
        behind_unit=None,
        behind_seconds=None,
        records_per_second=None,
        bytes_per_second=None,
        lost_records=0,
        lost=[],
    )


def _shown(state: ServerState, task: str, one: StreamStatus) -> StreamShown:
    age = (state.clock.now() - datetime.fromisoformat(one.landed_at)).total_seconds()
    unit = BEHIND_UNITS[one.source]
    behind = {
        "records": one.behind_records,
        "shards": one.behind_shards,
        "files": one.behind_files,
        "pages": one.behind_pages,
    }[unit]
    return StreamShown(
        name=f"{task}/{one.table}",
        task=task,
        table=one.table,
        source=one.source,
        direct=one.direct,
        state="behind" if behind else "current",
        reason=f"{behind:,} {unit} were left" if behind else "it had read what there was",
        read_at=one.landed_at,
        age_seconds=max(0.0, age),
        batches=one.batches,
        records=one.records,
        bytes=one.size_bytes,
        behind=behind,
        behind_unit=unit,
        behind_seconds=one.behind_seconds,
        records_per_second=one.records_per_second,
        bytes_per_second=one.bytes_per_second,
        lost_records=one.lost_records,
        lost=[
            StreamLoss(at=gap["at"], since=gap["from"], until=gap["to"], why=gap["why"])
            for gap in one.lost
        ],
    )
