"""A real broker of Apache Kafka on this machine, and what is done with it beside Polynya.

Its jars come through the Ivy that PySpark ships, once, and stay in the cache of the user. Topics
and producers go through the client in the JVM of a Spark session, or in one that has nothing else.
"""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from polynya.lake.spark import jars as ivy
from polynya.lake.spark.cache import cache_root
from polynya.lake.spark.java import find_java

#: Of the broker.
VERSION: Final = "4.3.1"
_SMALL: Final = ("-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
_SETTINGS: Final = """\
process.roles=broker,controller
node.id=1
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}{more}
controller.listener.names=CONTROLLER
controller.quorum.bootstrap.servers=127.0.0.1:{controller}
log.dirs={folder}/data
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
offsets.topic.num.partitions=1
group.initial.rebalance.delay.ms=0
broker.session.timeout.ms=1500
broker.heartbeat.interval.ms=300
log.cleaner.backoff.ms=100
auto.create.topics.enable=false
"""


class UnavailableError(Exception):
    """The jars of the server cannot be had; the text is the reason."""


@dataclass(frozen=True)
class Secured:
    """Listeners beside the plain one, by name, with the settings that they need.

    `users` are those of SCRAM, as the tool that formats the broker's folder takes them.
    """

    listeners: tuple[str, ...] = ()
    settings: str = ""
    users: tuple[str, ...] = ()


class Broker:
    """The server as a process that can be killed and started again."""

    def __init__(self, folder: Path, gateway: Any, secured: Secured | None = None) -> None:
        """Make its folder ready; `gateway` is py4j's to a JVM with the jars of the client.

        Raises UnavailableError.
        """
        self._folder, self._gateway, self._jvm = folder, gateway, gateway.jvm
        secured = secured or Secured()
        ports = _free_ports(2 + len(secured.listeners))
        self.port = ports[0]
        self._more = dict(zip(secured.listeners, ports[2:], strict=True))
        self._process: subprocess.Popen[bytes] | None = None
        self._settings = folder / "server.properties"
        more = "".join(f",{name}://127.0.0.1:{port}" for name, port in self._more.items())
        text = _SETTINGS.format(port=ports[0], controller=ports[1], folder=folder, more=more)
        self._settings.write_text(text + secured.settings)
        tool = ["kafka.tools.StorageTool", "format", "--standalone", "-t", "AAAAAAAAQACAAAAAAAAAAQ"]
        users = [word for user in secured.users for word in ("--add-scram", user)]
        self._run(*tool, "-c", str(self._settings), *users).wait()
        self._admin: Any = None

    @property
    def address(self) -> str:
        """Where clients reach it."""
        return f"127.0.0.1:{self.port}"

    def address_of(self, listener: str) -> str:
        """Where clients reach a listener beside the plain one."""
        return f"127.0.0.1:{self._more[listener]}"

    @property
    def pid(self) -> int:
        """The number of its process, which was started."""
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Start it, and wait until it listens. Raises TimeoutError."""
        self._process = self._run("kafka.Kafka", str(self._settings))
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and self._process.poll() is None:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.05)
        raise TimeoutError(f"the broker did not start; see {self._folder}/server.log")

    def kill(self) -> None:
        """End it at once, as `kill -9` does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def create(self, topic: str, partitions: int = 1, **configs: str) -> None:
        """Make a topic; settings with `_` for each `.` of their names."""
        new = self._kafka.admin.NewTopic(topic, partitions, 1)
        settings = self._jvm.java.util.HashMap()
        for name, value in configs.items():
            settings.put(name.replace("_", "."), value)
        self.admin.createTopics(self._list([new.configs(settings)])).all().get()

    def delete(self, topic: str) -> None:
        """Delete a topic, and wait until it is gone."""
        self.admin.deleteTopics(self._list([topic])).all().get()
        while topic in str(self.admin.listTopics().names().get()):
            time.sleep(0.05)

    def grow(self, topic: str, partitions: int) -> None:
        """Give a topic more partitions."""
        wanted = self._jvm.java.util.HashMap()
        wanted.put(topic, self._kafka.admin.NewPartitions.increaseTo(partitions))
        self.admin.createPartitions(wanted).all().get()

    def expire(self, topic: str, before: int, partition: int = 0) -> None:
        """Delete records as the retention of a topic does."""
        wanted = self._jvm.java.util.HashMap()
        place = self._jvm.org.apache.kafka.common.TopicPartition(topic, partition)
        wanted.put(place, self._before(before))
        self.admin.deleteRecords(wanted).all().get()

    def segments(self, topic: str) -> int:
        """Segments of a topic on the disk of the broker."""
        return len(list(self._folder.glob(f"data/{topic}-0/*.log")))

    def _before(self, offset: int) -> Any:
        """`RecordsToDelete.beforeOffset(offset)`: py4j finds no method with a namesake."""
        kind = self._jvm.java.lang.Class.forName("org.apache.kafka.clients.admin.RecordsToDelete")
        types = self._gateway.new_array(self._jvm.java.lang.Class, 1)
        types[0] = self._jvm.java.lang.Long.TYPE
        values = self._gateway.new_array(self._jvm.java.lang.Object, 1)
        values[0] = offset
        return kind.getMethod("beforeOffset", types).invoke(None, values)

    @contextmanager
    def producer(self, **settings: str) -> Iterator[Any]:
        """A producer of bytes that waits for all answers, unless `settings` say otherwise."""
        given = {"bootstrap.servers": self.address, "acks": "all"}
        given |= {name.replace("_", "."): value for name, value in settings.items()}
        properties = self._jvm.java.util.Properties()
        for name, value in given.items():
            properties.put(name, value)
        bytes_ = self._jvm.org.apache.kafka.common.serialization.ByteArraySerializer
        producer = self._kafka.producer.KafkaProducer(properties, bytes_(), bytes_())
        try:
            yield producer
        finally:
            producer.close()

    def send(self, topic: str, values: Iterable[bytes | None], partition: int = 0) -> None:
        """Send values to a partition, and wait until they are there."""
        with self.producer() as producer:
            for value in values:
                producer.send(self.record(topic, value, partition))

    def record(
        self, topic: str, value: bytes | None, partition: int | None = 0, *,
        key: bytes | None = None, headers: Mapping[str, bytes | None] | None = None,
    ) -> Any:  # fmt: skip
        """A record for a producer; without a partition the key says which one it goes to."""
        record = self._kafka.producer.ProducerRecord(topic, partition, key, value)
        for name, content in (headers or {}).items():
            record.headers().add(name, content)
        return record

    def seconds(self, count: int) -> Any:
        """A time as clients take it."""
        return self._jvm.java.time.Duration.ofSeconds(count)

    @property
    def admin(self) -> Any:
        """A client that makes and deletes topics."""
        if self._admin is None:
            properties = self._jvm.java.util.Properties()
            properties.put("bootstrap.servers", self.address)
            self._admin = self._kafka.admin.AdminClient.create(properties)
        return self._admin

    def close(self) -> None:
        """End it and its client."""
        try:
            if self._admin is not None:
                self._admin.close(self.seconds(1))
        finally:
            self.kill()

    @property
    def _kafka(self) -> Any:
        return self._jvm.org.apache.kafka.clients

    def _list(self, items: Iterable[Any]) -> Any:
        found = self._jvm.java.util.ArrayList()
        for one in items:
            found.add(one)
        return found

    def _run(self, *arguments: str) -> subprocess.Popen[bytes]:
        log = (self._folder / "server.log").open("ab")
        command = [str(find_java().executable), *_SMALL, "-cp", f"{jars()}/*", *arguments]
        return subprocess.Popen(command, stdout=log, stderr=log)


@contextmanager
def kafka_broker(folder: Path, spark: Any, secured: Secured | None = None) -> Iterator[Broker]:
    """A broker that runs, with the clients of a Spark session; it ends with the block."""
    with broker_with(folder, spark.sparkContext._gateway, secured) as broker:
        yield broker


@contextmanager
def broker_with(folder: Path, gateway: Any, secured: Secured | None = None) -> Iterator[Broker]:
    """The same with another JVM's clients (`examples.servers.kafka_clients`)."""
    broker = Broker(folder, gateway, secured)
    try:
        broker.start()
        yield broker
    finally:
        broker.close()


def jars() -> Path:
    """The folder of the server's jars, fetched when they are missing. Raises UnavailableError."""
    folder = cache_root() / "test-parts" / f"kafka-{VERSION}"
    if not any(folder.glob("kafka_2.13-*.jar")):
        folder.mkdir(parents=True, exist_ok=True)
        ivy_jar = next(ivy.spark_jars_directory().glob("ivy-*.jar"))
        done = subprocess.run(
            [
                str(find_java().executable), "-jar", str(ivy_jar),
                "-confs", "default", "-cache", str(folder / ".ivy"),
                "-dependency", "org.apache.kafka", "kafka_2.13", VERSION,
                "-retrieve", str(folder / "[artifact]-[revision].[ext]"),
            ],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode != 0:
            missing = f"the jars of a Kafka server cannot be had: {done.stdout[-500:]}"
            raise UnavailableError(missing)
    return folder


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [int(one.getsockname()[1]) for one in sockets]
    finally:
        for one in sockets:
            one.close()
