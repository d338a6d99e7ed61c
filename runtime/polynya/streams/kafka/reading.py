"""Ranges of Kafka offsets read by a client in the JVM of Spark, with its properties and secrets.

`RangeReader.java` writes the records to a file, as a stream of Arrow that Python maps into its
memory: a record costs no call from Python into Java. Clients are kept for the next ranges.
"""

from __future__ import annotations

import mmap
import os
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from polynya.formats.landed import SCHEMAS
from polynya.lake.spark.api import Py4JError, Py4JJavaError
from polynya.model.config.client_properties import FILES, JAAS, login, property_problem
from polynya.model.config.stream_landing import KafkaSource, Readers, holds_secrets
from polynya.model.error_catalogue.stream_sources import (
    KAFKA_FILES_UNUSABLE,
    KAFKA_PROPERTY_REFUSED,
)
from polynya.model.errors import OperationError
from polynya.model.names import shown
from polynya.store.node_folders import SECRETS
from polynya.store.vault import Vault, vault
from polynya.streams.kafka.errors import chain_of, explained
from polynya.streams.kafka.plan import Partition, ReadRecords, Reads, budgets

#: How long an answer may take, in milliseconds, unless the task's properties say otherwise.
_PATIENCE: Final[Mapping[str, str]] = {
    "default.api.timeout.ms": "20000",
    "request.timeout.ms": "10000",
}
_COMMITTED: Final[Mapping[str, str]] = {"isolation.level": "read_committed"}
#: To register the hundreds of metrics of a client with the JVM, and to take them out again, costs
#: more than to read a few thousand records.
_UNSEEN: Final[Mapping[str, str]] = {"auto.include.jmx.reporter": "false"}


@dataclass(frozen=True, slots=True)
class ClientProperties:
    """What a client is made with, and what of it no message may show."""

    values: Mapping[str, str] = field(repr=False)
    secrets: tuple[str, ...] = field(repr=False)


def client_properties(source: KafkaSource, secrets: Vault | None = None) -> ClientProperties:
    """The properties as they are now: a secret that was exchanged is taken at the next use.

    Raises:
        DependencyError: a secret cannot be read.
        OperationError: a property is not one that a task may set (POLYNYA-STR-002), or names a
            file that is not among the secrets of the node (POLYNYA-STR-082).
    """
    known = secrets or vault()
    found = {
        name: known.open(_checked(name, value), quoted=holds_secrets(name))
        for name, value in source.plain_properties().items()
    }
    return ClientProperties(
        {
            **_PATIENCE,
            **_COMMITTED,
            **_UNSEEN,
            **{name: one.text for name, one in found.items()},
            "bootstrap.servers": source.bootstrap_servers,
        },
        (*source.secrets(), *(secret for one in found.values() for secret in one.secrets)),
    )


def _checked(name: str, value: str) -> str:
    """A property as the client may have it; the login is written again from its fields.

    Settings are checked when they are loaded, too. This holds for those that came another way.
    """
    if wrong := property_problem(name, value):
        problem, fix = wrong
        where = f"source.kafka.properties.{shown(name)}"
        raise KAFKA_PROPERTY_REFUSED(problem, where=where, fix=fix)
    if name == JAAS:
        read = login(value)
        if read.key_tab is not None:
            _among_secrets(name, read.key_tab)
        return read.text()
    if name in FILES:
        return str(_among_secrets(name, value))
    return value


def _among_secrets(name: str, place: str) -> Path:
    found = SECRETS.below(place)
    if found is None:
        raise KAFKA_FILES_UNUSABLE.raising(OperationError)(
            f"`{name}` names a file that a task may not read",
            where=place,
            why=SECRETS.outside(),
            fix=f"put the file there, or start the process with another `{SECRETS.variable}`",
        )
    return found


#: A client reads what it is told to, and says nothing to any group.
_READING: Final[Mapping[str, str]] = {
    "auto.offset.reset": "none",
    "enable.auto.commit": "false",
    "allow.auto.create.topics": "false",
}
#: Unless the task sets it: what a broker sends at a time is in memory beside what is taken of it.
_FETCHED: Final[Mapping[str, str]] = {"fetch.max.bytes": str(16 * 2**20)}
#: How long brokers may give nothing of what they say that they have, in milliseconds.
_PATIENCE_MS: Final = 30_000
#: Clients that are kept while nobody reads: each has connections.
_MOST_IDLE: Final = 8

#: Clients that nobody uses now, with their JVM and properties, the one that was used last at the
#: end.
_idle: list[tuple[Any, Mapping[str, str], Any]] = []
_lock = threading.Lock()


def read_ranges(
    jvm: Any, source: KafkaSource, reads: Reads, *, max_bytes: int, readers: Readers, where: str
) -> ReadRecords:
    """The records of the ranges, those of each partition in order.

    Args:
        jvm: of Spark, with the jars for Kafka.
        source: the brokers, and how they are reached.
        reads: the ranges.
        max_bytes: of key, headers and value of all records. A partition may use its part of it
            (`budgets`) and takes one record more, so that one is always taken.
        readers: most partitions that are read side by side; `auto`: all of them.
        where: task and brokers, for errors.

    Raises:
        DependencyError: the brokers did not give them.
    """
    if not reads.ranges:
        return ReadRecords(SCHEMAS["kafka"].empty_table(), {})
    properties = client_properties(source)
    side_by_side = len(reads.ranges) if readers == "auto" else readers
    lines = _lines(reads, max_bytes)
    try:
        with _client(jvm, properties.values) as client, _scratch() as (file, name):
            cuts = client.read(lines, side_by_side, _PATIENCE_MS, name)
            return ReadRecords(_landed(file), _cuts(cuts))
    except Py4JJavaError as error:
        found = explained(chain_of(error), where, properties.secrets)
        if found is None:
            raise
        raise found from error


def _lines(reads: Reads, max_bytes: int) -> str:
    """The ranges as `RangeReader` takes them."""
    most = budgets(reads, max_bytes)
    return "\n".join(
        f"{topic} {number} {one.begin} {one.end} {most[topic, number]}"
        for (topic, number), one in sorted(reads.ranges.items())
    )


def _cuts(lines: str) -> dict[Partition, int]:
    words = [line.split(" ") for line in lines.splitlines()]
    return {(topic, int(number)): int(offset) for topic, number, offset in words}


@contextmanager
def _scratch() -> Iterator[tuple[int, str]]:
    """A file that is open, and its name."""
    file, name = tempfile.mkstemp(prefix="polynya-kafka-")
    try:
        yield file, name
    finally:
        os.close(file)
        Path(name).unlink(missing_ok=True)


def _landed(file: int) -> pa.Table:
    """The columns of a landed batch. The file may be closed: its content stays mapped."""
    content = pa.py_buffer(mmap.mmap(file, 0, access=mmap.ACCESS_READ))
    with pa.ipc.open_stream(content) as stream:
        found = stream.read_all()
    schema = SCHEMAS["kafka"]
    return found.rename_columns(schema.names).cast(schema)


@contextmanager
def _client(jvm: Any, properties: Mapping[str, str]) -> Iterator[Any]:
    """A client that nobody else uses meanwhile. It is kept for later, or closed where it failed."""
    client = _unused(jvm, properties)
    if client is None:
        settings = jvm.java.util.HashMap()
        for name, value in {**_FETCHED, **properties, **_READING}.items():
            settings.put(name, value)
        client = _reader_class(jvm).newInstance()
        client.open(settings)
    try:
        yield client
    except BaseException:
        _close(client)
        raise
    with _lock:
        _idle.append((jvm, properties, client))
        surplus = [_idle.pop(0)[2] for _ in range(len(_idle) - _MOST_IDLE)]
    for one in surplus:
        _close(one)


def _unused(jvm: Any, properties: Mapping[str, str]) -> Any:
    """A client with these properties that nobody uses, None where there is none."""
    with _lock:
        for at, (own, made_with, client) in enumerate(_idle):
            if own is jvm and made_with == properties:
                del _idle[at]
                return client
    return None


def _close(client: Any) -> None:
    # Its JVM may have ended.
    with suppress(Py4JError, OSError):
        client.close()


def _reader_class(jvm: Any) -> Any:
    """`RangeReader` as a class of this JVM.

    It is compiled once: py4j takes the methods of a class for those of any other of its name.
    """
    with _lock:
        return _compiled(jvm)


@lru_cache(maxsize=1)
def _compiled(jvm: Any) -> Any:
    source = Path(__file__).with_name("RangeReader.java")
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(jvm.org.apache.spark.util.Utils.getContextOrSparkClassLoader())
    compiler.cook(source.name, source.read_text(encoding="utf-8"))
    return compiler.getClassLoader().loadClass(source.stem)
