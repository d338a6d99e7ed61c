"""Operations as resources: how far they are, what they said, and their end."""

from __future__ import annotations

import asyncio
import json
import shlex
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict
from typing import Annotated, Any, Final, TypeAlias

from fastapi import FastAPI, Header, Query, Request
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field

from polynya.model.error_catalogue.server import NO_SUCH_RESOURCE, REQUEST_INVALID
from polynya.model.error_catalogue.server_operations import OPERATIONS_LOCKED
from polynya.model.errors import PolynyaError
from polynya.model.names import shown
from polynya.server.access.actions import Action
from polynya.server.access.door import allowed, api_router, caller
from polynya.server.access.views import reads_whole_project
from polynya.server.operations.kept import KeptOperations
from polynya.server.operations.manager import OperationManager, OperationView, command_of
from polynya.server.operations.output import without_keys
from polynya.server.operations.records import OperationStore, Status
from polynya.server.pages import Cursor, Limit, ListPage, page
from polynya.server.state import ServerState
from polynya.store.places import store_at

#: Operations of each target, in the project folder.
FOLDER: Final = ".polynya/operations"
_OPENING: Final = threading.Lock()
_LOOK_SECONDS: Final = 0.3
_STORE_SECONDS: Final = 5.0
#: Without news a stream says so, so that proxies keep it open.
_HEARTBEAT_SECONDS: Final = 15.0
_ENDED: Final = frozenset({"succeeded", "failed", "cancelled", "interrupted"})

#: The header by which a request that starts an operation can be repeated.
IdempotencyKey: TypeAlias = Annotated[str | None, Header(min_length=1, max_length=200)]


def manager_of(app: FastAPI) -> OperationManager:
    """The operations of a server; the first call takes up what an earlier server left.

    Raises:
        ConflictError: POLYNYA-SRV-043, another server has them.
        DependencyError: POLYNYA-SRV-062, they are kept in a store that does not answer.
    """
    with _OPENING:
        kept: KeptOperations | None = getattr(app.state, "kept_operations", None)
        if kept is not None and not kept.lease.held:
            raise OPERATIONS_LOCKED(where=kept.folder)
        found = getattr(app.state, "operations", None)
        if found is None:
            state: ServerState = app.state.polynya
            target = state.project().target.name
            store = OperationStore(state.root.absolute() / FOLDER / target)
            found = OperationManager(
                store,
                command_of(state.root),
                state.clock,
                options=[f"--target={target}"],
                kept=kept,
                requests_only=state.requests_only,
            )
            found.open()
            app.state.operations = found
        assert isinstance(found, OperationManager)
        return found


@asynccontextmanager
async def while_served(app: FastAPI) -> AsyncIterator[None]:
    """Take up operations when the server starts, and end them with it."""
    # The first request for an operation tells of an error; other routes work.
    with suppress(PolynyaError):
        await asyncio.to_thread(_open, app)
    yield
    await asyncio.to_thread(_close, app)
    kept: KeptOperations | None = getattr(app.state, "kept_operations", None)
    if kept is not None:
        await asyncio.to_thread(kept.stop)


def _open(app: FastAPI) -> None:
    state: ServerState = app.state.polynya
    if state.keeper is None:
        manager_of(app)
        return
    target = state.project().target
    # Requests for operations wait for it.
    store = store_at(target.warehouse, target.aws, retry_seconds=_STORE_SECONDS)
    kept = KeptOperations(store, target.name, state.keeper, state.clock)

    def changed(held: bool) -> None:  # noqa: FBT001 - the lease says so
        if not held:
            _close(app)
            return
        with suppress(PolynyaError):
            manager_of(app)

    kept.changed = changed
    app.state.kept_operations = kept
    kept.start()


def _close(app: FastAPI) -> None:
    """End all processes and give the operations back; the next request may open them again."""
    with _OPENING:
        found = getattr(app.state, "operations", None)
        app.state.operations = None
    if found is not None:
        found.close()


router = api_router("operations")


class ProgressShown(BaseModel):
    """How far a running operation is; what is unknown is null."""

    phase: str | None = Field(description="the step that is running")
    done: int | None = Field(description="rows done")
    known: int | None = Field(description="rows that are known to be there")
    rate: float | None = Field(description="rows in a second")
    left_seconds: float | None = Field(description="time left at that rate")
    still_seconds: float | None = Field(description="time since anything moved, from 60 s on")


class OperationShown(BaseModel):
    """An operation: `command` is the equal command line, `state` that of the data at its end."""

    id: str
    action: str
    command: str
    objects: list[str]
    status: Status
    by: str
    created: str
    ended: str | None = None
    exit_code: int | None = None
    state: str | None = None
    progress: ProgressShown | None = None

    @classmethod
    def of(cls, view: OperationView) -> OperationShown:
        """The operation as it is now."""
        request, result = view.request, view.result
        return cls(
            id=request.id,
            action=request.verb,
            command=shlex.join(["polynya", *request.arguments]),
            objects=list(request.objects),
            status=view.status,
            by=request.by,
            created=request.created,
            ended=result.ended if result else None,
            exit_code=result.exit_code if result else None,
            state=result.state if result else None,
            progress=ProgressShown(**asdict(view.progress)) if view.progress else None,
        )


class OutputLines(BaseModel):
    """Lines that the command wrote with `--json`; `after` is the place behind the last one."""

    lines: list[dict[str, Any]]
    after: int


def view_of(request: Request, name: str) -> OperationView:
    """An operation of the server of a request, or the error that it has none."""
    found = manager_of(request.app).view(name)
    if found is None:
        raise NO_SUCH_RESOURCE(what=f"operation {shown(name)}")
    return found


@router.get("/operations", dependencies=[allowed(Action.VIEW_OPERATIONS)])
def operations(
    request: Request, limit: Limit = 50, cursor: Cursor = None
) -> ListPage[OperationShown]:
    """The operations of the last 30 days, the newest first."""
    manager = manager_of(request.app)
    names = page(manager.ids(), lambda name: (_newest_first(name), name), limit, cursor)
    views = [view for name in names.items if (view := manager.view(name)) is not None]
    return ListPage(
        items=[OperationShown.of(one) for one in views], total=names.total, next=names.next
    )


def _newest_first(name: str) -> int:
    """What sorts ids, which begin with their time, the newest first."""
    return -int("".join(sign for sign in name.partition("-")[0] if sign in "0123456789") or "0")


@router.get("/operations/{name}", dependencies=[allowed(Action.VIEW_OPERATIONS)])
def operation(request: Request, name: str) -> OperationShown:
    """One operation as it is now."""
    return OperationShown.of(view_of(request, name))


@router.get("/operations/{name}/output", dependencies=[allowed(Action.VIEW_OPERATIONS)])
def output(
    request: Request,
    name: str,
    after: Annotated[int, Query(ge=0, le=2**53, description="`after` of the last answer")] = 0,
) -> OutputLines:
    """What the command wrote after a place, about 1 MiB at most."""
    view_of(request, name)
    found = list(manager_of(request.app).folder(name).lines(after))
    shown_line = _shown_line(request)
    return OutputLines(
        lines=[shown_line(line) for _, line in found], after=found[-1][0] if found else after
    )


def _shown_line(request: Request) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """What the person of a request may see of a line of output."""
    return dict if reads_whole_project(*caller(request)) else without_keys


@router.post("/operations/{name}/cancel", dependencies=[allowed(Action.CANCEL_OPERATION)])
def cancel(request: Request, name: str) -> OperationShown:
    """Ask an operation to end after its running steps, as Ctrl-C does.

    After two minutes it is killed. An operation that has ended stays as it is.
    """
    view_of(request, name)
    manager_of(request.app).cancel(name)
    return OperationShown.of(view_of(request, name))


@router.get(
    "/operations/{name}/events",
    dependencies=[allowed(Action.VIEW_OPERATIONS)],
    response_class=StreamingResponse,
    responses={200: {"content": {"text/event-stream": {}}}},
)
async def events(
    request: Request, name: str, last_event_id: Annotated[str | None, Header()] = None
) -> StreamingResponse:
    """Server-sent events: `output` for each line of the command, `operation` when that changes.

    The stream ends with the operation. `Last-Event-ID` resumes it after an `output`.
    """
    place = last_event_id or "0"
    if not (place.isascii() and place.isdecimal() and len(place) <= 16):
        raise REQUEST_INVALID(reason="`Last-Event-ID` is none of this stream")
    await asyncio.to_thread(view_of, request, name)
    return StreamingResponse(
        _events(request, name, int(place)),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


async def _events(request: Request, name: str, after: int) -> AsyncIterator[str]:
    manager = manager_of(request.app)
    folder, shown_line = manager.folder(name), _shown_line(request)
    told, silent = "", 0.0
    while not await request.is_disconnected():
        # Before the output: what is read after the end is all of it.
        view = await asyncio.to_thread(manager.view, name)
        if view is None:
            return
        lines = await asyncio.to_thread(lambda at: list(folder.lines(at)), after)
        for after_line, line in lines:
            after = after_line
            yield f"id: {after}\nevent: output\ndata: {json.dumps(shown_line(line))}\n\n"
        if lines:
            silent = 0.0
            continue
        now = OperationShown.of(view).model_dump_json()
        if now != told:
            told, silent = now, 0.0
            yield f"event: operation\ndata: {now}\n\n"
        if view.status in _ENDED:
            return
        silent += _LOOK_SECONDS
        if silent >= _HEARTBEAT_SECONDS:
            silent = 0.0
            yield ": alive\n\n"
        await asyncio.sleep(_LOOK_SECONDS)
