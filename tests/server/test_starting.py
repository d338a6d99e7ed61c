"""A server that answers while its routes load: probes at once, the rest when there is an app."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from polynya.server.access.control import AccessControl, AccessSettings
from polynya.server.access.guard import AsgiApp, Message, Receive, Scope, Send
from polynya.server.starting import StartingApp
from polynya.store.object_store import LocalObjectStore
from polynya.testing.fakes import FakeClock


class Routes:
    """An app that answers `here`, and remembers how it was started and ended."""

    def __init__(self) -> None:
        self.life: list[str] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"here"})
            return
        for phase in ("startup", "shutdown"):
            self.life.append((await receive())["type"])
            await send({"type": f"lifespan.{phase}.complete"})


@pytest.fixture
def starting(tmp_path: Path) -> StartingApp:
    control = AccessControl.at(tmp_path, LocalObjectStore(tmp_path), FakeClock())
    return StartingApp(control, AccessSettings())


@contextlib.asynccontextmanager
async def served(app: AsgiApp) -> AsyncIterator[httpx.AsyncClient]:
    """A client, between the start and the end of the server."""
    to_app: asyncio.Queue[Message] = asyncio.Queue()
    from_app: asyncio.Queue[Message] = asyncio.Queue()
    life = asyncio.create_task(app({"type": "lifespan"}, to_app.get, from_app.put))
    to_app.put_nowait({"type": "lifespan.startup"})
    assert (await from_app.get())["type"] == "lifespan.startup.complete"
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        yield client
    to_app.put_nowait({"type": "lifespan.shutdown"})
    assert (await from_app.get())["type"] == "lifespan.shutdown.complete"
    await life


def test_a_probe_is_answered_and_a_page_waits_for_the_routes(starting: StartingApp) -> None:
    routes = Routes()

    async def run() -> None:
        async with served(starting) as client:
            probe = await client.get("/health")
            assert (probe.text, probe.headers["x-frame-options"]) == ("ok\n", "DENY")
            page = asyncio.create_task(client.get("/console"))
            await asyncio.sleep(0.05)
            assert not page.done()
            assert routes.life == []
            await asyncio.to_thread(starting.becomes, routes)
            assert (await page).text == "here"
            assert (await client.get("/health")).text == "ok\n"

    asyncio.run(run())

    assert routes.life == ["lifespan.startup", "lifespan.shutdown"]


def test_who_stops_waiting_leaves_the_routes_to_others(starting: StartingApp) -> None:
    async def run() -> None:
        async with served(starting) as client:
            gone = asyncio.create_task(client.get("/console"))
            await asyncio.sleep(0.05)
            gone.cancel()
            starting.becomes(Routes())
            assert (await client.get("/console")).text == "here"

    asyncio.run(run())


def test_a_server_that_ends_while_it_loads_lets_nobody_wait(starting: StartingApp) -> None:
    async def run() -> None:
        async with served(starting) as client:
            page = asyncio.create_task(client.get("/console"))
            await asyncio.sleep(0.05)
            starting.give_up()
            with pytest.raises(asyncio.CancelledError):
                await page

    asyncio.run(run())
