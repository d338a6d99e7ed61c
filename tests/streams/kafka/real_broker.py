"""What lands from a real broker: run by `test_real_broker.py`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from polynya.engine.context import EngineContext
from polynya.engine.runner import RunOutcome, run_once, run_until_stopped, units
from polynya.formats.landed import StreamFooter
from polynya.model.config.stream_landing import StreamingLanding
from polynya.model.errors import DependencyError
from polynya.model.loader import load_project
from polynya.observe.events import Event
from polynya.observe.streams import StreamLanded, StreamLost
from polynya.store.object_store import LocalObjectStore
from polynya.streams.kafka.plan import Extent, Reads
from polynya.streams.kafka.reading import read_ranges
from polynya.streams.landing import LandedLog
from tests.oracle.packs.driver import command, environment
from tests.projects import write_project
from tests.streams.kafka.broker import Broker, kafka_broker
from tests.streams.kafka.fake import kafka_source

KILLED = """\
apiVersion: polynya/v1
kind: streaming_landing
name: in
source: {{kafka: {{bootstrap_servers: "{address}", topics: [{topic}]}}}}
interval: 1s
batch: {{max_records: 200}}
"""
FACTS = """\
apiVersion: polynya/v1
kind: storage
name: facts
schema: kafka_facts
landing: {path: in, format: stream}
datasets:
  - name: users
    keys: [id]
    apply_as_deletes: "type = 'unsubscribe'"
    history: true
"""


@pytest.fixture(scope="module")
def broker(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with kafka_broker(tmp_path_factory.mktemp("kafka"), spark) as started:
        yield started


@dataclass
class Zone:
    """A landing zone, and runs of a task that lands there."""

    spark: Any
    folder: Path
    broker: Broker
    events: list[Event] = field(default_factory=list)

    def run(self, *topics: str, **settings: Any) -> RunOutcome:
        context, task = self._task(topics, settings)
        return run_once(context, units(context, [task]))

    def _task(
        self, topics: tuple[str, ...], settings: dict[str, Any]
    ) -> tuple[EngineContext, StreamingLanding]:
        kafka: dict[str, Any] = {"bootstrap_servers": self.broker.address, "topics": topics}
        # A broker that is gone is to be noticed soon.
        kafka["properties"] = {"default.api.timeout.ms": "3000", "request.timeout.ms": "2000"}
        task = StreamingLanding.model_validate(
            {
                "apiVersion": "polynya/v1",
                "kind": "streaming_landing",
                "name": "in",
                "source": {"kafka": kafka},
                **settings,
            }
        )
        context = EngineContext(
            spark=self.spark, landing=LocalObjectStore(self.folder), sink=self.events.append
        )
        return context, task

    @contextmanager
    def going_on(self, *topics: str, **settings: Any) -> Iterator[None]:
        """A run until the end of the block."""
        context, task = self._task(topics, settings)
        work = threading.Thread(
            target=run_until_stopped, args=(context, units(context, [task])), daemon=True
        )
        work.start()
        try:
            yield
        finally:
            context.stop.set()
            work.join(120)
        assert not work.is_alive()

    def log(self, table: str) -> LandedLog:
        return LandedLog(LocalObjectStore(self.folder), "in", table)

    def footers(self, table: str) -> list[StreamFooter]:
        log = self.log(table)
        return [log.footer(number) for number in log.numbers()]

    def rows(self, table: str) -> pa.Table:
        log = self.log(table)
        files = [self.folder / log.path(number) for number in log.numbers()]
        return pa.concat_tables(parquet.read_table(file) for file in files)

    def values(self, table: str) -> list[bytes | None]:
        return self.rows(table)["value"].to_pylist()

    def told(self, kind: type[Event]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]


@pytest.fixture
def zone(spark: Any, tmp_path: Path, broker: Broker) -> Zone:
    return Zone(spark, tmp_path, broker)


def numbered(count: int, start: int = 0) -> list[bytes]:
    return [b'{"n": %d}' % number for number in range(start, start + count)]


def test_a_record_lands_as_it_is_and_only_once(zone: Zone, broker: Broker) -> None:
    broker.create("as-it-is")
    with broker.producer() as producer:
        whole = {"trace": b"\xff\x00", 'a "kind"\n': b"click", "none": None}
        producer.send(broker.record("as-it-is", b'{"n": 1}', key=b"\x00k", headers=whole))
        producer.send(broker.record("as-it-is", None, key=b"gone"))
        producer.send(broker.record("as-it-is", b"no json \xff"))

    for _ in range(2):
        assert zone.run("as-it-is").failures == {}

    rows = zone.rows("as_it_is").to_pylist()
    assert [row["value"] for row in rows] == [b'{"n": 1}', None, b"no json \xff"]
    assert [row["hdr__kafka_offset"] for row in rows] == [0, 1, 2]
    assert {row["hdr__kafka_topic"] for row in rows} == {"as-it-is"}
    assert [row["hdr__kafka_key"] for row in rows] == [
        b64encode(b"\x00k").decode(), b64encode(b"gone").decode(), None,
    ]  # fmt: skip
    assert json.loads(rows[0]["hdr__kafka_headers"]) == [
        {"key": "trace", "value": b64encode(b"\xff\x00").decode()},
        {"key": 'a "kind"\n', "value": b64encode(b"click").decode()},
        {"key": "none", "value": None},
    ]
    assert [row["hdr__kafka_headers"] for row in rows[1:]] == [None, None]
    assert [footer.number for footer in zone.footers("as_it_is")] == [1]


@pytest.mark.slow
@pytest.mark.parametrize("readers", ["auto", 1])
def test_batches_are_cut_by_bytes_and_hold_every_record_once(
    zone: Zone, broker: Broker, readers: str | int
) -> None:
    topic = f"wide_{readers}"
    broker.create(topic, partitions=2)
    for partition, size in ((0, 500), (1, 3000)):
        filled = [b"%06d" % number + b"x" * (size - 6) for number in range(50)]
        broker.send(topic, filled, partition)

    zone.run(topic, readers=readers, batch={"max_bytes": 100_000})

    rows = zone.rows(topic)
    columns = (rows["hdr__kafka_partition"].to_pylist(), rows["hdr__kafka_offset"].to_pylist())
    places = list(zip(*columns, strict=True))
    assert sorted(places) == [(at, offset) for at in range(2) for offset in range(50)]
    footers = zone.footers(topic)
    assert len(footers) >= 2
    assert all(footer.counts.bytes <= 103_000 for footer in footers)
    assert footers[-1].totals.records == 100
    assert [footer.begin for footer in footers[1:]] == [footer.end for footer in footers[:-1]]
    # The partition of large records was cut, the other one was read to its planned end.
    assert footers[0].end["topics"][topic]["partitions"]["1"] < 39


@pytest.mark.slow
def test_only_committed_records_land_and_markers_are_no_loss(zone: Zone, broker: Broker) -> None:
    broker.create("paid")
    with broker.producer(transactional_id="t") as producer:
        producer.initTransactions()
        for part, commit in ((b"a", True), (b"b", False), (b"c", True)):
            producer.beginTransaction()
            for number in range(3):
                producer.send(broker.record("paid", part + b"%d" % number))
            producer.flush()
            (producer.commitTransaction if commit else producer.abortTransaction)()

    zone.run("paid")
    zone.run("paid")

    assert zone.values("paid") == [b"a0", b"a1", b"a2", b"c0", b"c1", b"c2"]
    [footer] = zone.footers("paid")
    assert footer.end["topics"]["paid"]["partitions"] == {"0": 12}
    assert footer.totals.lost == 0


@pytest.mark.slow
def test_topics_and_partitions_that_come_later_are_read_from_their_begin(
    zone: Zone, broker: Broker
) -> None:
    broker.create("later-1")
    broker.send("later-1", numbered(2))
    zone.run("later-%", start_from="now")
    broker.send("later-1", numbered(1, start=2))
    broker.grow("later-1", 2)
    broker.send("later-1", numbered(1, start=10), partition=1)
    broker.create("later-2")
    broker.send("later-2", numbered(1))
    zone.run("later-%", start_from="now")

    assert zone.values("later_1") == [*numbered(1, start=2), *numbered(1, start=10)]
    # Of a landing that begins now, so does what was there; what came later is read whole.
    assert [footer.number for footer in zone.footers("later_2")] == [1]


@pytest.mark.slow
def test_what_a_topic_loses_is_counted_and_told(zone: Zone, broker: Broker) -> None:
    broker.create("short")
    broker.send("short", numbered(4))
    zone.run("short")
    broker.send("short", numbered(6, start=4))
    broker.expire("short", before=7)
    zone.run("short")

    assert zone.values("short") == [*numbered(4), *numbered(3, start=7)]
    assert zone.footers("short")[-1].totals.lost == 3
    [lost] = zone.told(StreamLost)
    assert (lost.at, lost.begin, lost.end, lost.reason) == ("short/0", "4", "7", "retention")


@pytest.mark.slow
def test_records_that_are_deleted_before_they_are_read_stop_the_read(
    zone: Zone, broker: Broker
) -> None:
    broker.create("hurried")
    broker.send("hurried", numbered(6))
    broker.expire("hurried", before=3)
    source = kafka_source(bootstrap_servers=broker.address, topics=["hurried"])

    def read(begin: int) -> pa.Table:
        reads = Reads({("hurried", 0): Extent(begin, 6)})
        return read_ranges(
            zone.spark._jvm, source, reads, max_bytes=999, readers="auto", where="task in"
        ).rows

    with pytest.raises(DependencyError) as refused:
        read(0)

    assert refused.value.code == "POLYNYA-STR-011"
    assert read(3)["value"].to_pylist() == numbered(3, start=3)


@pytest.mark.slow
def test_a_topic_that_was_made_again_is_read_from_its_begin(zone: Zone, broker: Broker) -> None:
    broker.create("again")
    broker.send("again", numbered(3))
    zone.run("again")
    broker.delete("again")
    broker.create("again")
    broker.send("again", numbered(5, start=100))
    zone.run("again")
    zone.run("again")

    assert zone.values("again") == [*numbered(3), *numbered(5, start=100)]
    assert [lost.reason for lost in zone.told(StreamLost)] == ["recreated"]
    assert sum(event.records for event in zone.told(StreamLanded)) == 8


@pytest.mark.slow
def test_a_topic_that_is_missing_stops_no_other(zone: Zone, broker: Broker) -> None:
    broker.create("there")
    broker.send("there", numbered(1))

    outcome = zone.run("there", "missing")

    assert zone.values("there") == numbered(1)
    [failure] = outcome.failures.values()
    assert failure.code == "POLYNYA-STR-006"


@pytest.mark.slow
def test_a_broker_that_is_killed_is_waited_for(spark: Any, tmp_path: Path) -> None:
    with kafka_broker(tmp_path, spark) as own:
        zone = Zone(spark, tmp_path / "landing", own)
        own.create("kept")
        own.send("kept", numbered(500))
        zone.run("kept")
        own.kill()

        [failure] = zone.run("kept").failures.values()

        assert (failure.code, failure.retryable) == ("POLYNYA-STR-005", True)
        own.start()
        own.send("kept", numbered(500, start=500))
        assert zone.run("kept").failures == {}
        assert zone.values("kept") == numbered(1000)


@pytest.mark.slow
def test_a_landing_goes_on_over_the_death_of_its_broker(spark: Any, tmp_path: Path) -> None:
    with kafka_broker(tmp_path, spark) as own:
        zone = Zone(spark, tmp_path / "landing", own)
        own.create("live", partitions=2)
        with zone.going_on("live", interval="1s", batch={"max_records": 700}):
            for part in range(4):
                own.send("live", numbered(1000, start=part * 1000), partition=part % 2)
                if part == 1:
                    own.kill()
                    own.start()
            deadline = time.monotonic() + 240
            while len(zone.values("live")) < 4000 and time.monotonic() < deadline:
                time.sleep(1)

        assert sorted(zone.values("live")) == sorted(numbered(4000))
        zone.run("live")
        assert len(zone.values("live")) == 4000


@pytest.mark.slow
def test_the_gaps_of_a_compacted_topic_are_no_loss(zone: Zone, broker: Broker) -> None:
    broker.create(
        "compact", cleanup_policy="compact", segment_ms="100", min_cleanable_dirty_ratio="0.01",
        delete_retention_ms="100",
    )  # fmt: skip
    with broker.producer() as producer:
        for number in range(60):
            record = broker.record("compact", b"%d" % number, key=b"%d" % (number % 3))
            producer.send(record).get()
            time.sleep(0.02)
    deadline = time.monotonic() + 120
    while broker.segments("compact") > 10 and time.monotonic() < deadline:
        # A segment is compacted when a later one was begun.
        broker.send("compact", [b"end"])
        time.sleep(1)

    zone.run("compact", batch={"max_records": 7})
    zone.run("compact")

    offsets = zone.rows("compact")["hdr__kafka_offset"].to_pylist()
    assert offsets == sorted(set(offsets))
    assert len(offsets) < 60
    assert zone.footers("compact")[-1].totals.lost == 0


@pytest.mark.parametrize("rounds", [1, pytest.param(4, marks=pytest.mark.slow)])
def test_a_process_that_is_killed_at_any_moment_loses_and_doubles_nothing(
    zone: Zone, broker: Broker, rounds: int
) -> None:
    topic = f"killed{rounds}"
    broker.create(topic, partitions=2)
    landing = KILLED.format(address=broker.address, topic=topic)
    project = write_project(zone.folder / "project", killed=landing)
    log = LandedLog(LocalObjectStore(project / "landing"), "in", topic)
    for round_ in range(rounds):
        broker.send(topic, numbered(3000, start=round_ * 3000), partition=round_ % 2)
        before = len(log.numbers())
        process = subprocess.Popen(
            [*command(), "run", "--project", str(project)],
            env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True,
        )  # fmt: skip
        deadline = time.monotonic() + 240
        # Some batches of the many that it lands are enough, and then at no moment in particular.
        while len(log.numbers()) < before + 2 and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(0.1 * round_)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        assert len(log.numbers()) >= before + 2

    Zone(zone.spark, project / "landing", broker).run(topic)

    values = [
        value
        for number in log.numbers()
        for value in parquet.read_table(project / "landing" / log.path(number))["value"].to_pylist()
    ]
    assert sorted(values) == sorted(numbered(rounds * 3000))


@pytest.mark.slow
def test_a_project_takes_its_brokers_from_bindings_outside(zone: Zone, broker: Broker) -> None:
    broker.create("bound")
    broker.send("bound", numbered(3), partition=0)
    landing = KILLED.replace('bootstrap_servers: "{address}"', "connection: events")
    project = write_project(zone.folder / "project", bound=landing.format(topic='"${var:TOPIC}"'))
    connections, bindings = project / "connections", zone.folder / "etc"
    connections.mkdir()
    bindings.mkdir()
    # Nothing listens there: only the bindings know the brokers.
    (connections / "events.yml").write_text("type: kafka\nbootstrap_servers: 127.0.0.1:9\n")
    (bindings / "local.yml").write_text(
        f"connections: {{events: {{bootstrap_servers: '{broker.address}'}}}}\n"
        "variables: {TOPIC: bound}\n"
    )

    line = [*command(), "run", "--once", "-p", str(project), "--bindings", str(bindings)]
    done = subprocess.run(line, env=environment(), capture_output=True, text=True)

    assert done.returncode == 0, done.stderr
    log = LandedLog(LocalObjectStore(project / "landing"), "in", "bound")
    files = [project / "landing" / log.path(number) for number in log.numbers()]
    rows = pa.concat_tables(parquet.read_table(file) for file in files)
    assert sorted(rows["value"].to_pylist()) == numbered(3)


def test_messages_become_a_table_with_history_and_quarantine(zone: Zone, broker: Broker) -> None:
    broker.create("users")
    kafka = KILLED.format(address=broker.address, topic="users")
    project = load_project(write_project(zone.folder / "project", streams=kafka, facts=FACTS))
    landing = LocalObjectStore(zone.folder / "project/landing")
    engine = EngineContext(spark=zone.spark, landing=landing, apply_mode="always")
    messages = (
        [b'{"id": 1, "name": "a", "type": ""}', b'{"id": 2, "name": "b"}', b"no json"],
        [b'{"id": 1, "name": "c"}', b'{"id": 2, "type": "unsubscribe"}'],
    )
    for part in messages:
        broker.send("users", part)
        # In one run what is landed is copied, too.
        assert run_once(engine, units(engine, project.works)).failures == {}

    rows = zone.spark.sql("SELECT id, name FROM kafka_facts.users").collect()
    versions = zone.spark.sql("SELECT id, name FROM kafka_facts.users__history").collect()
    assert [tuple(row) for row in rows] == [(1, "c")]
    assert sorted(tuple(row) for row in versions) == [(1, "a"), (1, "c"), (2, "b"), (2, "b")]
