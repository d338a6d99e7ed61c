"""Messages of a real broker with schemas in a real registry: run by `test_real_broker.py`."""

from __future__ import annotations

import io
import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import fastavro
import pytest

from polynya.engine.context import EngineContext
from polynya.engine.runner import run_once, run_until_stopped, units
from polynya.model.errors import PolynyaError
from polynya.model.loader import load_project
from polynya.observe.engine import UnitFailed
from polynya.observe.events import Event
from polynya.store.object_store import LocalObjectStore
from tests.projects import write_project
from tests.registry import RegistryServer, registry_server, with_login
from tests.streams.kafka.broker import Broker, kafka_broker

CITY = {"type": "record", "name": "City", "namespace": "geo",
        "fields": [{"name": "name", "type": "string"}]}  # fmt: skip
_DATE = {"type": "int", "logicalType": "date"}
FIRST = {"type": "record", "name": "User", "fields": [{"name": "id", "type": "int"}]}
#: Wider, with a new column, and with types of another subject.
SECOND = {
    "type": "record",
    "name": "User",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "born", "type": ["null", _DATE], "default": None},
        {"name": "homes", "type": {"type": "array", "items": "geo.City"}},
    ],
}
HOMES = {"homes": [{"name": "Leon"}, {"name": "Puebla"}]}
SECRET = "r3g1stry-s3cr3t"


@pytest.fixture(scope="module")
def broker(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with kafka_broker(tmp_path_factory.mktemp("kafka"), spark) as started:
        yield started


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[RegistryServer]:
    with registry_server(tmp_path) as started:
        yield started


def registered(registry: RegistryServer) -> tuple[int, int]:
    """The numbers of both schemas of users."""
    registry.register("geo/city", CITY)
    first = registry.register("users-value", FIRST)
    return first, registry.register("users-value", SECOND, geo__City="geo/city")


def message(number: int, schema: Mapping[str, Any], record: Mapping[str, Any]) -> bytes:
    """A datum after the number of its schema, as Confluent's serializers write it."""
    named: dict[str, Any] = {}
    fastavro.parse_schema(CITY, named)
    datum = io.BytesIO()
    fastavro.schemaless_writer(datum, fastavro.parse_schema(schema, named), record)
    return b"\0" + number.to_bytes(4, "big") + datum.getvalue()


@dataclass
class Stream:
    """A topic that lands, and the table that a transform makes of it."""

    spark: Any
    broker: Broker
    folder: Path
    name: str
    registry: Mapping[str, str]
    events: list[Event] = field(default_factory=list)

    def run(self, **environment: str) -> list[PolynyaError]:
        """Land and copy what is there; what failed."""
        context, work = self._work(environment)
        return list(run_once(context, work).failures.values())

    @contextmanager
    def going_on(self) -> Iterator[None]:
        context, work = self._work({})
        thread = threading.Thread(
            target=run_until_stopped, args=(context, work), kwargs={"poll_seconds": 0.5},
            daemon=True,
        )  # fmt: skip
        thread.start()
        try:
            yield
        finally:
            context.stop.set()
            thread.join(120)
        assert not thread.is_alive()

    def rows(self, columns: str = "id") -> list[tuple[Any, ...]]:
        try:
            found = self.spark.sql(f"SELECT {columns} FROM {self.name}.users ORDER BY id")
            return [tuple(row) for row in found.collect()]
        except Exception as error:
            # There is no view before the first copy.
            assert "TABLE_OR_VIEW_NOT_FOUND" in str(error)
            return []

    def quarantined(self) -> list[str]:
        found = self.spark.sql(
            f"SELECT hdr__quarantine.rule FROM {self.name}_internal.users_internal "
            "WHERE hdr__partition = 'quarantine' ORDER BY 1"
        )
        return [row[0] for row in found.collect()]

    def codes(self) -> list[str]:
        return [event.error.code for event in self.events if isinstance(event, UnitFailed)]

    def _work(self, environment: Mapping[str, str]) -> tuple[EngineContext, Any]:
        landing = {
            "apiVersion": "polynya/v1",
            "kind": "streaming_landing",
            "name": "in",
            "source": {"kafka": {"bootstrap_servers": self.broker.address, "topics": [self.name]}},
            "content": {"type": "avro_with_schema", "schema_registry": self.registry},
            "interval": "1s",
        }
        transform = {
            "apiVersion": "polynya/v1",
            "kind": "streaming_transform",
            "name": "users",
            "from": "in",
            "schema": self.name,
            "mode": "merge",
            "columns": [{"name": "id", "expression": "id", "type": "bigint", "key": 1}],
            "partition_by": [],
        }
        tasks = {"landing": json.dumps(landing), "users": json.dumps(transform)}
        project = load_project(
            write_project(self.folder / "project", **tasks), environment=environment
        )
        store = LocalObjectStore(self.folder / "project/landing")
        context = EngineContext(
            spark=self.spark, landing=store, sink=self.events.append, apply_mode="always"
        )
        return context, units(context, project.works)


def _until(there: Any, seconds: float = 300) -> None:
    deadline = time.monotonic() + seconds
    while not there():
        assert time.monotonic() < deadline, "it took too long"
        time.sleep(0.5)


def test_schemas_of_a_registry_evolve_and_what_it_does_not_know_is_quarantined(
    spark: Any, broker: Broker, registry: RegistryServer, tmp_path: Path
) -> None:
    one, two = registered(registry)
    with with_login(registry, f"ann:{SECRET}") as url:
        login = {"url": url, "user": "ann", "password": "${env:REGISTRY_PASSWORD}"}
        stream = Stream(spark, broker, tmp_path, "registered", login)
        broker.create("registered")
        broker.send("registered", [message(one, FIRST, {"id": 1})])

        [refused] = stream.run(REGISTRY_PASSWORD="wr0ng-s3cr3t")
        assert refused.code == "POLYNYA-STR-023"
        assert "wr0ng" not in refused.render() + str(stream.events)
        assert stream.run(REGISTRY_PASSWORD=SECRET) == []
        assert stream.rows() == [(1,)]

        unknown = message(two, SECOND, {"id": 9, **HOMES}).replace(bytes([0, two]), b"\x03\xe7", 1)
        late = message(one, FIRST, {"id": 3})
        wide = message(two, SECOND, {"id": 1 << 40, "born": 10957, **HOMES})
        broker.send("registered", [unknown, b"\0\0\0", wide, wide[:-2], late])
        assert stream.run(REGISTRY_PASSWORD=SECRET) == []

    assert stream.rows("id, CAST(born AS STRING), homes.name") == [
        (1, None, None), (3, None, None), (1 << 40, "2000-01-01", ["Leon", "Puebla"]),
    ]  # fmt: skip
    assert stream.quarantined() == ["bad_avro", "bad_avro", "unknown_schema"]
    written = [path for path in (tmp_path / "project").rglob("*") if path.is_file()]
    assert written
    assert [path for path in written if SECRET.encode() in path.read_bytes()] == []


@pytest.mark.slow
def test_a_stream_waits_for_a_registry_that_is_gone_and_loses_nothing(
    spark: Any, broker: Broker, registry: RegistryServer, tmp_path: Path
) -> None:
    one, two = registered(registry)
    stream = Stream(spark, broker, tmp_path, "waiting", {"url": registry.url})
    broker.create("waiting")
    broker.send("waiting", [message(one, FIRST, {"id": 1})])
    with stream.going_on():
        _until(lambda: stream.rows() == [(1,)])
        registry.kill()
        broker.send("waiting", [message(one, FIRST, {"id": 2})])
        # A schema that is known is not asked for, so that its messages go on.
        _until(lambda: stream.rows() == [(1,), (2,)])
        later = [message(two, SECOND, {"id": 3, **HOMES}), message(one, FIRST, {"id": 4})]
        broker.send("waiting", later)
        _until(lambda: "POLYNYA-STR-022" in stream.codes())
        assert stream.rows() == [(1,), (2,)]

        registry.start()
        assert registered(registry) == (one, two)
        _until(lambda: len(stream.rows()) == 4)

    assert stream.rows() == [(1,), (2,), (3,), (4,)]
    assert stream.quarantined() == []


@pytest.mark.slow
def test_an_address_beside_the_registry_refuses_no_message(
    spark: Any, broker: Broker, registry: RegistryServer, tmp_path: Path
) -> None:
    one, _ = registered(registry)
    beside = registry.url.removesuffix("/apis/ccompat/v7")
    stream = Stream(spark, broker, tmp_path, "beside", {"url": beside})
    broker.create("beside")
    broker.send("beside", [message(one, FIRST, {"id": 1})])

    [failure] = stream.run()

    assert (failure.code, failure.retryable) == ("POLYNYA-STR-083", True)
    assert stream.rows() == []
