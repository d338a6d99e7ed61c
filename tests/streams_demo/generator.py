"""Writers of Kafka and Kinesis that go on in threads, and remember what they wrote."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Protocol

from botocore.exceptions import ClientError

from examples.servers.kafka import Broker
from tests.cluster_demo.agents import Failed
from tests.streams_demo.messages import Message

#: Longest time that a producer waits for a broker that is gone, in milliseconds.
_PATIENCE = "600000"
#: Longest time that Kinesis may refuse records, in seconds.
_KINESIS_PATIENCE = 120.0


class Writer(Protocol):
    """A stream that is written to."""

    def write(self, group: Sequence[Message]) -> None:
        """Write messages of which no two have one key."""

    def finish(self) -> None:
        """Wait until the server has confirmed all of them; raises when it did not."""


class KafkaWriter:
    """Writes to a topic, partitioned by key. What the broker does not confirm is sent again."""

    def __init__(self, broker: Broker, producer: Any, topic: str) -> None:
        self._broker, self._producer, self._topic = broker, producer, topic
        self._sent: list[Any] = []

    def write(self, group: Sequence[Message]) -> None:
        """See `Writer`. Goes on while the broker is gone."""
        for message in group:
            key = message.key.encode()
            record = self._broker.record(self._topic, message.value, None, key=key)
            self._sent.append(self._producer.send(record))

    def finish(self) -> None:
        """See `Writer`."""
        for sent in self._sent:
            sent.get()


@contextmanager
def kafka_writer(broker: Broker, topic: str) -> Iterator[KafkaWriter]:
    """A writer that doubles nothing when it sends again; it ends with the block."""
    settings = {"linger_ms": "20", "delivery_timeout_ms": _PATIENCE, "max_block_ms": _PATIENCE}
    with broker.producer(enable_idempotence="true", **settings) as producer:
        try:
            yield KafkaWriter(broker, producer, topic)
        finally:
            # Not before all is confirmed, unless something failed: then nobody waits for it.
            with suppress(Exception):
                producer.close(broker.seconds(0))


class KinesisWriter:
    """Writes to a stream, one request after the other."""

    def __init__(self, kinesis: Any, stream: str) -> None:
        self._kinesis, self._stream = kinesis, stream

    def write(self, group: Sequence[Message]) -> None:
        """See `Writer`."""
        records = [{"Data": one.value, "PartitionKey": one.key} for one in group]
        deadline = time.monotonic() + _KINESIS_PATIENCE
        while records := self._put(records):
            if time.monotonic() > deadline:
                raise TimeoutError("Kinesis refuses records")
            time.sleep(0.1)

    def _put(self, records: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Those that were refused, such as all of them while a shard is split."""
        try:
            answer = self._kinesis.put_records(StreamName=self._stream, Records=records)
        except ClientError as error:
            # Of other failures nobody knows whether the records are there.
            if error.response["ResponseMetadata"]["HTTPStatusCode"] != 400:
                raise
            return records
        refused = [bool(one.get("ErrorCode")) for one in answer["Records"]]
        return [one for one, again in zip(records, refused, strict=True) if again]

    def finish(self) -> None:
        """See `Writer`: each request was confirmed."""


class Generator:
    """Writes group after group of messages, until it is told to stop.

    `pause` is between two groups, in seconds. `written` are the messages in their order.
    """

    def __init__(self, writer: Writer, groups: Iterator[list[Message]], pause: float) -> None:
        self.written: list[Message] = []
        self._writer, self._groups, self._pause = writer, groups, pause
        self._stop = threading.Event()
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._work, daemon=True)

    def start(self) -> None:
        """Begin to write."""
        self._thread.start()

    def finish(self) -> None:
        """Stop after a group, and wait until all is confirmed. Raises Failed."""
        self._stop.set()
        self._thread.join()
        if self._failure is None:
            try:
                self._writer.finish()
            except Exception as error:
                self._failure = error
        if self._failure is not None:
            raise Failed(f"the generator could not write: {self._failure}")

    def _work(self) -> None:
        try:
            while not self._stop.wait(self._pause):
                group = next(self._groups)
                self._writer.write(group)
                self.written += group
        except Exception as error:
            self._failure = error
