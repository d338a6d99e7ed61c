"""HTTP/1.1 of the server: uvicorn's, with deadlines for the head and the body of a request.

uvicorn limits the time between two requests only. A client that sends a byte now and then would
keep a connection for ever (slow loris).
"""

from __future__ import annotations

import asyncio
from typing import Any, Final, Literal, cast

import h11
from typing_extensions import override
from uvicorn.protocols.http.h11_impl import H11Protocol

#: Seconds from the first byte of a request, or from the connection, to the end of its headers.
HEAD_SECONDS: Final = 10.0
#: Seconds for a body.
BODY_SECONDS: Final = 60.0
#: Where the scope of a request has the time of its first bytes, by the clock of the event loop.
ARRIVED: Final = "polynya.arrived"
#: Bytes of the headers of a request, with its first line.
MAX_HEAD_BYTES: Final = 32 * 1024


class DeadlineProtocol(H11Protocol):
    """A connection that is closed when a request does not arrive in time."""

    head_seconds = HEAD_SECONDS
    body_seconds = BODY_SECONDS

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._stage: Literal["head", "body"] | None = None
        self._timer: asyncio.TimerHandle | None = None

    @override
    def connection_made(  # type: ignore[override]  # as uvicorn has it
        self, transport: asyncio.Transport
    ) -> None:
        super().connection_made(transport)
        self._enter("head")

    @override
    def data_received(self, data: bytes) -> None:
        now = self.loop.time()
        super().data_received(data)
        if self.scope is not None:
            # Its task runs after this: the time that it waits for the loop counts.
            cast("dict[str, Any]", self.scope).setdefault(ARRIVED, now)
        state = self.conn.their_state
        if state is h11.SEND_BODY:
            self._enter("body")
        elif state is h11.IDLE and self.conn.trailing_data[0]:
            self._enter("head")
        else:
            self._enter(None)

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._enter(None)
        super().connection_lost(exc)

    def _enter(self, stage: Literal["head", "body"] | None) -> None:
        """Go to a stage; one that goes on keeps its deadline."""
        if stage == self._stage:
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._stage = stage
        if stage is not None:
            seconds = self.head_seconds if stage == "head" else self.body_seconds
            self._timer = self.loop.call_later(seconds, self._too_late)

    def _too_late(self) -> None:
        if not self.transport.is_closing():
            self.transport.abort()


def protocol_settings() -> dict[str, Any]:
    """What `uvicorn.Config` gets besides the app and its address."""
    return {
        "http": DeadlineProtocol,
        "ws": "none",
        "h11_max_incomplete_event_size": MAX_HEAD_BYTES,
        "access_log": False,
        "timeout_keep_alive": 15,
        "timeout_graceful_shutdown": 5,
        "limit_concurrency": 512,
        "server_header": False,
        "proxy_headers": False,
    }
