"""A page answers in time, and says what it does not know and since when.

What a page shows comes from tables, stores and databases, of which each may be down or silent. Then
the part that asks for it says so, and the others stay; where a whole page is about it, the page
does. A part that hangs is not asked again while it does, so the threads of the server stay free.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar, Final, TypeVar

from anyio.to_thread import current_default_thread_limiter
from fastapi import APIRouter, Request, Response
from fastapi.routing import APIRoute
from typing_extensions import override

from polynya.engine.errors import as_polynya
from polynya.model.error_catalogue.server import PART_SILENT
from polynya.model.errors import (
    ConfigError,
    ConflictError,
    DependencyError,
    PolynyaError,
    RefusedError,
)
from polynya.server.access.door import CONSOLE
from polynya.server.console.html import render
from polynya.server.console.navigation import ENTRIES
from polynya.server.health import why_unknown
from polynya.server.state import ServerState

log = logging.getLogger(__name__)
T = TypeVar("T")

#: A part is given up before its page is.
PART_SECONDS: Final = 10.0
_PAGE_SECONDS: Final = 12.0
#: Pages that run queries or search what landed have limits of their own, which are longer.
_SLOW_SECONDS: Final = 75.0
#: Seconds after which a page that does not know asks again.
_AGAIN: Final = "10"
_MOST_KEPT: Final = 1000


@dataclass(slots=True)
class UnknownParts:
    """What is not known now, by a key of the part: since when, and what still hangs."""

    since: dict[str, datetime] = field(default_factory=dict)
    hanging: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, request: Request) -> UnknownParts:
        """Those of the server that got this request."""
        kept = request.app.state
        if not hasattr(kept, "unknown_parts"):
            kept.unknown_parts = cls()
        found: UnknownParts = kept.unknown_parts
        return found

    def failed(self, part: str, now: datetime) -> datetime:
        """Since when a part that has just failed is not known."""
        if len(self.since) >= _MOST_KEPT:
            self.since.clear()
        return self.since.setdefault(part, now)

    def give_up(self, part: str, task: asyncio.Future[Any]) -> None:
        """Leave a question that hangs to itself, and give its thread a substitute until it ends."""
        threads = current_default_thread_limiter()
        threads.total_tokens += 1
        self.hanging.add(part)

        def ended(_: asyncio.Future[Any]) -> None:
            threads.total_tokens -= 1
            self.hanging.discard(part)
            if not task.cancelled() and (error := task.exception()) is not None:
                log.info("%s failed after it was given up: %s", part, error)

        task.add_done_callback(ended)


async def _in_time(
    request: Request, part: str, ask: Callable[[], Awaitable[T]], seconds: float
) -> T:
    """What `ask` answers. Raises POLYNYA-SRV-010 if it takes too long, or still hangs."""
    unknown = UnknownParts.of(request)
    if part in unknown.hanging:
        raise PART_SILENT(where=part, seconds=f"{seconds:.0f}")
    task = asyncio.ensure_future(ask())
    done, _ = await asyncio.wait({task}, timeout=seconds)
    if not done:
        unknown.give_up(part, task)
        raise PART_SILENT(where=part, seconds=f"{seconds:.0f}")
    found = task.result()
    unknown.since.pop(part, None)
    return found


def is_answer(error: Exception) -> bool:
    """Whether an error answers a request, or is our fault; else something does not answer."""
    known = as_polynya(error)
    if isinstance(known, ConfigError | RefusedError):
        return True
    waits = isinstance(known, ConflictError | DependencyError) or known.retryable
    return not (waits or isinstance(error, OSError))


async def asked(
    request: Request, what: str, ask: Callable[[], Awaitable[T]]
) -> tuple[T | None, dict[str, Any] | None]:
    """A part of a page, or why it is not known and since when, as `ui.problem` shows it."""
    part = f"{request.url.path} {what}"
    try:
        return await _in_time(request, part, ask, PART_SECONDS), None
    except Exception as error:
        known = why_unknown(error)
        if not isinstance(error, PolynyaError | OSError):
            # One part that fails by a fault of ours must not take the others away.
            log.exception("%s failed", part)
    now = ServerState.of(request).clock.now()
    since = UnknownParts.of(request).failed(part, now)
    return None, {**known.as_dict(), "what": what, "since": since.isoformat()}


class TimedPage(APIRoute):
    """A route of a page."""

    seconds: ClassVar[float] = _PAGE_SECONDS

    @override
    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def answer(request: Request) -> Response:
            if request.method != "GET":
                return await handle(request)
            part = request.url.path
            try:
                return await _in_time(request, part, lambda: handle(request), self.seconds)
            except Exception as error:
                if is_answer(error):
                    raise
                return _unknown(request, why_unknown(error))

        return answer


class SlowPage(TimedPage):
    """A page whose answer may take as long as a query."""

    seconds: ClassVar[float] = _SLOW_SECONDS


def page_router(route_class: type[TimedPage] = TimedPage) -> APIRouter:
    """The router of a module with pages, which the OpenAPI document leaves out."""
    return APIRouter(prefix=CONSOLE, route_class=route_class, include_in_schema=False)


def _unknown(request: Request, error: PolynyaError) -> Response:
    """The page, or its part, that is not known."""
    path = request.url.path
    titles = [one.title for one in ENTRIES if one.is_at(path)]
    since = UnknownParts.of(request).failed(path, ServerState.of(request).clock.now())
    # The audit log has who read data. Nothing was read, and its place may be what does not answer.
    request.scope.pop("polynya.logs", None)
    # A page that asks for a part of itself gets that part, which asks again.
    part = request.headers.get("hx-target", "").partition("#")[2] or "state"
    return render(
        request,
        "unknown.html",
        fragment="unknown",
        headers={"Refresh": _AGAIN} if "hx-request" not in request.headers else {},
        title=titles[0] if titles else "Page",
        problem={**error.as_dict(), "what": "this page shows", "since": since.isoformat()},
        part=part,
    )
