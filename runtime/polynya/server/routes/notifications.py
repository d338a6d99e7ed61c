"""Notifications through the API: rules and channels, what is open, what was told, and a test."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from fastapi import Query, Request
from pydantic import BaseModel, ConfigDict, Field

from polynya.model.config.notification import Cause, Severity
from polynya.model.error_catalogue.server import REQUEST_INVALID
from polynya.model.loader import LoadedProject
from polynya.notify.decide import NoticeKind, routes_of
from polynya.notify.history import HistoryEntry, NoticeResult, NotificationHistory
from polynya.notify.memory import FailingChannel, NotificationStore, StoredObject
from polynya.notify.trial import try_channels
from polynya.server.access.actions import Action
from polynya.server.access.door import allowed, api_router
from polynya.server.pages import Cursor, Limit, ListPage, page
from polynya.server.state import ServerState
from polynya.store.places import store_at

router = api_router("notifications")


class FailureShown(BaseModel):
    """A channel that fails: for which process, how often in a row, and when it tries again."""

    sender: str
    failures: int
    since: datetime
    retry_at: datetime | None
    why: str

    @classmethod
    def of(cls, one: FailingChannel) -> FailureShown:
        """The failure of a channel."""
        return cls(**one.model_dump(exclude={"format", "route"}))


class RouteShown(BaseModel):
    """One channel of one rule; both with their settings as they are in force, secrets masked."""

    route: str = Field(description="its name: `FILE.RULE.CHANNEL`")
    file: str
    rule: str
    channel: str
    type: str
    rule_settings: dict[str, Any]
    channel_settings: dict[str, Any]
    failing: list[FailureShown]


class ToldShown(BaseModel):
    """A route that was told of something, and when last."""

    route: str
    at: datetime


class OpenShown(BaseModel):
    """Something that is wrong now, and the routes that were told of it, if any."""

    name: str
    task: str | None
    cause: Cause
    detail: str
    severity: Severity
    title: str
    code: str | None
    since: datetime
    seen: datetime
    count: int
    told: list[ToldShown]


class NoticeShown(BaseModel):
    """What became of one notice on one route, and why; `until` says when what is held goes out."""

    at: datetime
    route: str
    sender: str
    result: NoticeResult
    reason: str
    until: datetime | None
    kind: NoticeKind
    cause: Cause
    name: str
    detail: str
    task: str | None
    severity: Severity
    title: str
    code: str | None
    since: datetime


class NoticePage(BaseModel):
    """Notices, the newest first. A page may be short, or empty, and still have a `next`."""

    items: list[NoticeShown]
    next: str | None


class TestAsked(BaseModel):
    """A file of `notifications/`, or a rule or channel of it as `FILE.NAME`."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(min_length=1, max_length=300)


class TestShown(BaseModel):
    """A test message through one channel; `error` is null if it was sent."""

    channel: str
    type: str
    error: dict[str, Any] | None


def _project(request: Request) -> LoadedProject:
    state = ServerState.of(request)
    return state.overview.newest().project or state.project()


def _store(project: LoadedProject) -> NotificationStore:
    target = project.target
    return NotificationStore(lambda: store_at(target.warehouse, target.aws))


@router.get("/notifications/rules", dependencies=[allowed(Action.VIEW_NOTIFICATIONS)])
def rules(request: Request, limit: Limit = 100, cursor: Cursor = None) -> ListPage[RouteShown]:
    """Each channel of each rule, by name, and whether it fails."""
    project = _project(request)
    routes = {one.id: one for one in routes_of(project.notifications)}
    files = {one.name: one.settings for one in project.notifications}
    chosen = page(sorted(routes), lambda id_: (id_, id_), limit, cursor)
    failing: dict[str, list[FailureShown]] = {}
    for failure in _store(project).failing_channels() if routes else ():
        failing.setdefault(failure.route, []).append(FailureShown.of(failure))
    items = []
    for route in (routes[id_] for id_ in chosen.items):
        channel = files[route.file].channels[route.channel]
        items.append(
            RouteShown(
                route=route.id,
                file=route.file,
                rule=route.rule,
                channel=route.channel,
                type=channel.type,
                rule_settings=route.settings.model_dump(mode="json", by_alias=True),
                channel_settings=channel.model_dump(mode="json", by_alias=True),
                failing=failing.get(route.id, []),
            )
        )
    return ListPage(items=items, total=chosen.total, next=chosen.next)


@router.get("/notifications/open", dependencies=[allowed(Action.VIEW_NOTIFICATIONS)])
def open_(request: Request, limit: Limit = 100, cursor: Cursor = None) -> ListPage[OpenShown]:
    """What is wrong now as the project's processes keep it, the newest first."""
    project = _project(request)
    objects = _store(project).open_objects({task.name for task in project.works})
    found = [shown for one in objects for shown in _open_of(one)]
    found.sort(key=_place)
    return page(found, _place, limit, cursor)


def _place(one: OpenShown) -> tuple[float, str]:
    return -one.since.timestamp(), f"{one.task} {one.name} {one.cause} {one.detail}"


def _open_of(one: StoredObject) -> list[OpenShown]:
    return [
        OpenShown(
            name=one.name,
            task=one.task,
            **condition.model_dump(exclude={"grace", "fresh", "seconds"}),
            told=[
                ToldShown(route=entry.route, at=entry.at)
                for entry in one.told
                if (entry.condition.cause, entry.condition.detail)
                == (condition.cause, condition.detail)
            ],
        )
        for condition in one.conditions
    ]


@router.get("/notifications/history", dependencies=[allowed(Action.VIEW_NOTIFICATIONS)])
def history(
    request: Request,
    limit: Limit = 100,
    cursor: Annotated[
        str | None,
        Query(max_length=100, pattern=r"^[0-9]{8}/[0-9a-f-]{1,60}\.json:[0-9]{1,6}$",
              description="`next` of the page before this one"),
    ] = None,
    *,
    name: Annotated[str | None, Query(max_length=500, description="only of this object")] = None,
    route: Annotated[str | None, Query(max_length=500, description="only on this route")] = None,
    result: Annotated[NoticeResult | None, Query(description="only these")] = None,
) -> NoticePage:  # fmt: skip
    """What was sent, held back, dropped or not delivered in the last 30 days, the newest first."""

    def wanted(entry: HistoryEntry) -> bool:
        return (
            name in (None, entry.name)
            and route in (None, entry.route)
            and result in (None, entry.result)
        )

    kept = NotificationHistory(_store(_project(request)).opened)
    found, following = kept.page(limit, cursor, wanted)
    return NoticePage(items=[NoticeShown(**one.model_dump()) for one in found], next=following)


@router.post("/notifications/test", dependencies=[allowed(Action.TEST_NOTIFICATION)])
def test(request: Request, asked: TestAsked) -> list[TestShown]:
    """Send a test message through channels, at once, whatever their rules say."""
    if not asked.name.isprintable():
        raise REQUEST_INVALID(reason="`name` has control characters")
    state = ServerState.of(request)
    return [
        TestShown(
            channel=one.channel,
            type=one.type,
            error=None if one.error is None else one.error.as_dict(),
        )
        for one in try_channels(state.project(), asked.name, state.clock.now())
    ]
