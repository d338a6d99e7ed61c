"""A server that answers while its routes still load.

To load all routes takes a second or two. Probes are answered meanwhile; each other request waits
for the app, and then passes its guard as any request does.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import Future

from polynya.server.access.control import AccessControl, AccessSettings
from polynya.server.access.guard import AsgiApp, Guard, Message, Receive, Scope, Send, is_probe


class StartingApp:
    """The app of a server, by ASGI, which `becomes` the app with all routes."""

    def __init__(self, control: AccessControl, settings: AccessSettings) -> None:
        self._probes = Guard(self._pass_on, control, settings)
        self._loaded: Future[AsgiApp] = Future()
        self._open: Future[AsgiApp] = Future()

    def becomes(self, app: AsgiApp) -> None:
        """Let requests pass to the app, as soon as it has started itself. From any thread."""
        self._loaded.set_result(app)

    def give_up(self) -> None:
        """End the requests that wait for an app that will not come. From any thread."""
        self._loaded.cancel()
        self._open.cancel()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or start and end with the server."""
        if scope["type"] == "lifespan":
            await self._live(scope, receive, send)
        elif is_probe(scope):
            await self._probes(scope, receive, send)
        else:
            await self._pass_on(scope, receive, send)

    async def _pass_on(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self._open.result() if self._open.done() else await _result(self._open)
        await app(scope, receive, send)

    async def _live(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Start at once. The app starts when it is loaded, and ends when the server does."""
        started = await receive()
        await send({"type": "lifespan.startup.complete"})
        ends = asyncio.ensure_future(receive())
        loaded = asyncio.ensure_future(_result(self._loaded))
        await asyncio.wait({ends, loaded}, return_when=asyncio.FIRST_COMPLETED)
        if ends.done() or loaded.cancelled():
            loaded.cancel()
            await ends
            await send({"type": "lifespan.shutdown.complete"})
            return
        app, messages = loaded.result(), [started]

        async def received() -> Message:
            return messages.pop() if messages else await ends

        async def sent(message: Message) -> None:
            if message["type"] == "lifespan.startup.complete":
                self._open.set_result(app)
            elif message["type"] == "lifespan.startup.failed":
                self._open.cancel()
            else:
                await send(message)

        await app(scope, received, sent)


async def _result(future: Future[AsgiApp]) -> AsgiApp:
    """Wait for a result; who stops waiting leaves it to the others."""
    return await asyncio.shield(asyncio.wrap_future(future))
