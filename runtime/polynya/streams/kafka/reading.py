"""Ranges of Kafka offsets read through Spark, with the client's properties and secrets.

Records usually go from Spark to Arrow directly. Where some are much larger than others, each task
stops once the byte limit of its partition is used up, and the records returned show how far it got.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

import pyarrow as pa

from polynya.formats.landed import SCHEMAS, VALUE
from polynya.lake.spark.api import DataFrame, Py4JJavaError, PySparkException, SparkSession
from polynya.lake.spark.tasks import mapped_rows
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
from polynya.streams.kafka.plan import (
    CONTENT,
    CUT,
    HEADERS,
    KEY,
    MARKED,
    OFFSET,
    PARTITION,
    TIMESTAMP,
    TOPIC,
    Partition,
    Reads,
    all_bounded,
    bounded,
    budgets,
)

#: How long an answer may take, in milliseconds, unless the task's properties say otherwise.
_PATIENCE: Final[Mapping[str, str]] = {
    "default.api.timeout.ms": "20000",
    "request.timeout.ms": "10000",
}
_COMMITTED: Final[Mapping[str, str]] = {"isolation.level": "read_committed"}
#: Each read makes a client for each partition: to register its hundreds of metrics with the JVM,
#: and to take them out again, costs more than to read a few thousand records.
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


#: The bytes of a header may be anything; JSON holds text.
_HEADERS_AS_JSON: Final = (
    "CASE WHEN size(headers) > 0 THEN to_json(transform(headers, "
    "one -> struct(one.key AS key, base64(one.value) AS value)), "
    "map('ignoreNullFields', 'false')) END"
)
#: The columns of a landed batch.
_COLUMNS: Final = (
    f"topic AS {TOPIC}",
    f"CAST(partition AS BIGINT) AS {PARTITION}",
    f"offset AS {OFFSET}",
    f"base64(key) AS {KEY}",
    f"{_HEADERS_AS_JSON} AS {HEADERS}",
    f"timestamp AS {TIMESTAMP}",
    f"value AS {VALUE}",
)
#: What is passed to Python at a time: so much more than the limit may be in memory.
_PIECES: Final[Mapping[str, str]] = {
    "spark.sql.execution.arrow.maxRecordsPerBatch": "2000",
    "spark.sql.execution.arrow.maxBytesPerBatch": "4MB",
}
#: How long a broker may take to give records that it says it has, in milliseconds.
_POLL_MS: Final = "30000"


def session_of_pieces(spark: SparkSession) -> SparkSession:
    """A session over the same tasks that passes small pieces to Python.

    It is one of its own, because the size of pieces does not concern other queries.
    """
    session = spark.newSession()
    for name, value in _PIECES.items():
        session.conf.set(name, value)
    return session


def read_ranges(
    session: SparkSession,
    source: KafkaSource,
    reads: Reads,
    *,
    max_bytes: int,
    record_bytes: int | None,
    readers: Readers,
    where: str,
) -> pa.Table:
    """The records of the ranges, each partition in order, with the column `cut`; see `bounded`.

    Args:
        session: see `session_of_pieces`.
        source: the brokers, and how they are reached.
        reads: the ranges.
        max_bytes: most bytes of all; one record of each partition is always taken, unless...
        record_bytes: ...it is larger than this. All that is read is in memory at once, so the
            offsets times this is how much that may be. None: the tasks count the bytes and stop,
            which takes a process of Python each.
        readers: most partitions that are read side by side; `auto`: all of them.
        where: task and brokers, for errors.

    Raises:
        DependencyError: the brokers did not give them.
    """
    most, properties = budgets(reads, max_bytes), client_properties(source)
    try:
        landed = session.read.format("kafka").options(**_options(properties.values, reads))
        rows = landed.load().selectExpr(*_COLUMNS)
        if record_bytes is None:
            return _side_by_side(_counted(rows, most), readers).toArrow()
        small = _side_by_side(_without_large(rows, record_bytes), readers)
        return all_bounded(small.toArrow(), most)
    except (PySparkException, Py4JJavaError) as error:
        found = explained(chain_of(error), where, properties.secrets)
        if found is None:
            raise
        raise found from error


def _side_by_side(rows: DataFrame, readers: Readers) -> DataFrame:
    """The same rows in the same order, made by so many tasks at most."""
    return rows if readers == "auto" else rows.coalesce(readers)


def _counted(rows: DataFrame, most: Mapping[Partition, int]) -> DataFrame:
    """The records until their bytes reach the limit of their partition, which each task counts."""

    def cut(pieces: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from bounded(pieces, most)

    return mapped_rows(rows, cut, MARKED)


def _without_large(rows: DataFrame, record_bytes: int) -> DataFrame:
    """All records; those that are too large without their content, and with their bytes instead."""
    size = " + ".join(f"coalesce(CAST(octet_length({name}) AS BIGINT), 0)" for name in CONTENT)
    sized = rows.selectExpr("*", f"{size} AS size")
    too_large = f"size > {record_bytes}"
    columns = [
        f"IF({too_large}, NULL, {name}) AS {name}" if name in CONTENT else name
        for name in SCHEMAS["kafka"].names
    ]
    return sized.selectExpr(*columns, f"IF({too_large}, size, NULL) AS {CUT}")


def _options(properties: Mapping[str, str], reads: Reads) -> dict[str, str]:
    return {
        **{f"kafka.{name}": value for name, value in properties.items()},
        "assign": json.dumps(_by_topic({place: place[1] for place in reads.ranges}, as_list=True)),
        "startingOffsets": json.dumps(_by_topic(_ends(reads, "begin"))),
        "endingOffsets": json.dumps(_by_topic(_ends(reads, "end"))),
        "includeHeaders": "true",
        # What is gone was counted before. What goes now stops the read, and the next look counts.
        "failOnDataLoss": "true",
        "kafkaConsumer.pollTimeoutMs": _POLL_MS,
    }


def _ends(reads: Reads, which: Literal["begin", "end"]) -> dict[Partition, int]:
    return {place: getattr(one, which) for place, one in reads.ranges.items()}


def _by_topic(values: Mapping[Partition, int], *, as_list: bool = False) -> dict[str, Any]:
    """Values of partitions as Spark writes them: by topic, then by partition or as a list."""
    found: dict[str, Any] = {}
    for (topic, number), value in sorted(values.items()):
        if as_list:
            found.setdefault(topic, []).append(value)
        else:
            found.setdefault(topic, {})[str(number)] = value
    return found
