"""A landing zone in memory, and runs of a task that lands resources of a local API there."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa

from polynya.engine.context import EngineContext
from polynya.engine.runner import RunOutcome, run_once
from polynya.engine.tasks.streams import LandingTask
from polynya.engine.unit import Unit
from polynya.formats.landed import StreamFooter, opened_batch
from polynya.lake.spark.api import SparkSession
from polynya.model.config.http_connection import HttpConnection
from polynya.model.config.http_source import ConnectedHttpSource
from polynya.model.config.stream_landing import StreamingLanding
from polynya.model.http_checks import with_api
from polynya.observe.events import Event
from polynya.store.http_client import HttpClient
from polynya.store.object_store import ObjectStore
from polynya.store.vault import Vault
from polynya.streams.landing import LandedLog
from polynya.streams.rest.api import Api
from polynya.streams.rest.source import ApiSource
from polynya.testing.fakes import FakeClock, MemoryObjectStore
from tests.streams.killing import Killed, KilledError

NOW = datetime(2026, 11, 23, 15, 30, tzinfo=UTC)


@dataclass
class ApiZone:
    """What lands the resources of an API; each `run` is a new process."""

    url: str
    resources: dict[str, Any]
    connection: dict[str, Any] = field(default_factory=dict)
    task: dict[str, Any] = field(default_factory=dict)
    landing: MemoryObjectStore = field(default_factory=MemoryObjectStore)
    clock: FakeClock = field(default_factory=lambda: FakeClock(NOW))
    events: list[Event] = field(default_factory=list)

    def landing_task(self, **more: Any) -> StreamingLanding:
        task = StreamingLanding.model_validate(
            {
                "apiVersion": "polynya/v1",
                "kind": "streaming_landing",
                "name": "shop",
                "source": {"http": {"connection": "api", "resources": self.resources}},
                **self.task,
                **more,
            }
        )
        api = {"type": "http", "url": self.url, "timeout": "2s", **self.connection}
        return with_api(task, HttpConnection.model_validate(api))

    def source(
        self, landing: ObjectStore, wrap: Callable[[Any], Any] = lambda one: one, **more: Any
    ) -> ApiSource:
        task = self.landing_task(**more)
        http = task.source.http
        assert isinstance(http, ConnectedHttpSource)
        connection = http.api
        client = HttpClient(
            timeout=connection.timeout.total_seconds(), max_bytes=connection.max_response
        )
        api = Api(connection, wrap(client), Vault(), self.clock, draw=lambda: 0.01)
        return ApiSource(api, self.clock, task, http, landing)

    def run(self, kill: Callable[[Any], Any] = lambda one: one, **more: Any) -> RunOutcome:
        landing = cast("ObjectStore", kill(self.landing))
        context = EngineContext(
            cast("SparkSession", None), landing, self.clock, sink=self.events.append
        )
        task, source = self.landing_task(**more), self.source(landing, kill, **more)
        unit = Unit("shop", "shop", LandingTask(context, task, source).step, lands=True)
        return run_once(context, [unit])

    def run_killed(self, at: int, *, after: bool, **more: Any) -> bool:
        """Run until a step of the zone or the client; whether it came to that."""
        steps = [0]

        def kill(one: Any) -> Any:
            if not isinstance(one, HttpClient):
                return Killed(one, steps, at, done=after)
            # A request is a step, too.
            client = Killed(SimpleNamespace(read=one.get), steps, at, done=after)
            return SimpleNamespace(get=client.read, post_form=one.post_form)

        with suppress(KilledError):
            self.run(kill, **more)
        return steps[0] >= at

    def log(self, table: str) -> LandedLog:
        return LandedLog(self.landing, "shop", table)

    def footer(self, table: str) -> StreamFooter:
        newest = self.log(table).newest()
        assert newest is not None
        return newest

    def rows(self, table: str) -> list[dict[str, Any]]:
        log = self.log(table)
        tables = [opened_batch(self.landing.open(log.path(one)))[1].read() for one in log.numbers()]
        return cast("list[dict[str, Any]]", pa.concat_tables(tables).to_pylist()) if tables else []

    def values(self, table: str) -> list[Any]:
        return [json.loads(row["value"]) for row in self.rows(table)]

    def text(self) -> str:
        """All that was written or told, for those who look for what may not be there."""
        objects = b"".join(self.landing.objects[path] for path in self.landing.objects)
        told = "".join(f"{event!r} {event.text()}" for event in self.events)
        return objects.decode("latin-1") + told
