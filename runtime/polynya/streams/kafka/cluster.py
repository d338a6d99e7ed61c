"""What the brokers say of topics: through the client of Kafka in the JVM of Spark."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal, TypeAlias, TypeVar

from polynya.lake.spark.api import Py4JError, Py4JJavaError, SparkSession
from polynya.model.config.stream_landing import KafkaSource
from polynya.model.error_catalogue.stream_sources import KAFKA_JARS_MISSING
from polynya.streams.kafka.errors import chain_of, explained, has
from polynya.streams.kafka.plan import Partition
from polynya.streams.kafka.reading import client_properties

T = TypeVar("T")
#: Which offset of a partition is asked for: its first, the one after its last that can be read, or
#: the first of a moment on.
Wanted: TypeAlias = Literal["earliest", "latest"] | datetime

_GONE: Final = "UnknownTopicOrPartitionException"

#: One client for each set of settings: a client has threads and connections.
_clients: dict[tuple[int, str, tuple[tuple[str, str], ...]], Any] = {}
_lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class TopicShape:
    """A topic that exists: its id, and how many partitions it has."""

    id: str
    partitions: int


class KafkaCluster:
    """Asks the brokers of a source. All methods raise DependencyError when they cannot be asked."""

    def __init__(self, spark: SparkSession, source: KafkaSource, where: str) -> None:
        self._spark, self._source, self._where = spark, source, where
        self._secrets: tuple[str, ...] = ()

    def topics(self) -> list[str]:
        """The names of all topics but the brokers' own."""
        jvm = self._jvm
        names = self._asked(lambda client: client.listTopics().names().get())
        # As one text: through py4j a set costs several calls for each of its members.
        text = str(jvm.java.lang.String.join("\n", names))
        return sorted(text.split("\n")) if text else []

    def shapes(self, topics: Iterable[str]) -> dict[str, TopicShape]:
        """Id and partitions of each of the topics that exist."""
        names = self._jvm.java.util.ArrayList()
        for topic in topics:
            names.add(topic)
        if names.isEmpty():
            return {}
        answers = self._asked(lambda client: client.describeTopics(names).topicNameValues())
        found = {}
        for topic in topics:
            described = self._unless_gone(answers.get(topic).get)
            if described is not None:
                shape = TopicShape(str(described.topicId()), int(described.partitions().size()))
                found[topic] = shape
        return found

    def offsets(self, partitions: Sequence[Partition], wanted: Wanted) -> dict[Partition, int]:
        """An offset of each partition; those of a topic that is gone by now are left out.

        Of a moment after the last record it is the offset after that.
        """
        if not partitions:
            return {}
        jvm, admin = self._jvm, self._jvm.org.apache.kafka.clients.admin
        spec = self._spec(admin.OffsetSpec, wanted)
        places = {
            partition: jvm.org.apache.kafka.common.TopicPartition(partition[0], partition[1])
            for partition in partitions
        }
        asked = jvm.java.util.HashMap()
        for place in places.values():
            asked.put(place, spec)
        options = admin.ListOffsetsOptions(self._isolation())
        answers = self._asked(lambda client: client.listOffsets(asked, options))
        found: dict[Partition, int] = {}
        for one, place in places.items():
            told = self._unless_gone(answers.partitionResult(place).get)
            if told is not None:
                found[one] = int(told.offset())
        none = [one for one, offset in found.items() if offset < 0]
        return {**found, **self.offsets(none, "latest")} if none else found

    def _spec(self, specs: Any, wanted: Wanted) -> Any:
        if isinstance(wanted, datetime):
            return specs.forTimestamp(int(wanted.timestamp() * 1000))
        return specs.earliest() if wanted == "earliest" else specs.latest()

    def _isolation(self) -> Any:
        levels = self._jvm.org.apache.kafka.common.IsolationLevel
        return levels.valueOf(self._properties()["isolation.level"].upper())

    @property
    def _jvm(self) -> Any:
        return self._spark._jvm

    def _properties(self) -> Mapping[str, str]:
        found = client_properties(self._source)
        self._secrets = found.secrets
        return found.values

    def _client(self) -> Any:
        properties = self._properties()
        key = (id(self._jvm), self._where, tuple(sorted(properties.items())))
        with _lock:
            if key not in _clients:
                settings = self._jvm.java.util.Properties()
                for name, value in properties.items():
                    settings.put(name, value)
                try:
                    kafka = self._jvm.org.apache.kafka.clients.admin
                    _clients[key] = kafka.AdminClient.create(settings)
                except TypeError:
                    raise KAFKA_JARS_MISSING(where=self._where) from None
            return _clients[key]

    def _asked(self, ask: Callable[[Any], T]) -> T:
        try:
            return ask(self._client())
        except Py4JJavaError as error:
            raise self._explained(error) from error

    def _unless_gone(self, answer: Callable[[], T]) -> T | None:
        try:
            return answer()
        except Py4JJavaError as error:
            if has(chain_of(error), _GONE):
                return None
            raise self._explained(error) from error

    def _explained(self, error: Py4JError) -> Exception:
        return explained(chain_of(error), self._where, self._secrets) or error
