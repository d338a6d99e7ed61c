"""Reading ranges of offsets through Spark's own source for Kafka, as a batch of bounded bytes.

The tasks of Spark stop when the bytes that they may take are used up, each for its partition. What
they took says how far they came.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, Literal

import pyarrow as pa
import pyarrow.compute as pc

from polynya.formats.stream.landed import SCHEMAS, VALUE
from polynya.lake.spark.api import DataFrame, Py4JJavaError, PySparkException, SparkSession
from polynya.lake.spark.tasks.python import mapped_rows
from polynya.model.config.streaming.kafka import KafkaSource
from polynya.streaming.kafka.errors import chain_of, explained
from polynya.streaming.kafka.plan import Partition, Reads
from polynya.streaming.kafka.properties import client_properties

TOPIC, PARTITION, OFFSET = "hdr__kafka_topic", "hdr__kafka_partition", "hdr__kafka_offset"
KEY, HEADERS, TIMESTAMP = "hdr__kafka_key", "hdr__kafka_headers", "hdr__kafka_timestamp"
#: True in a row that is no record: the first that was not taken of a partition.
CUT: Final = "cut"

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

    It is one of its own, because the size of pieces is no matter of other queries.
    """
    session = spark.newSession()
    for name, value in _PIECES.items():
        session.conf.set(name, value)
    return session


def read_ranges(
    session: SparkSession, source: KafkaSource, reads: Reads, max_bytes: int, where: str
) -> pa.Table:
    """The records of the ranges, each partition in order, with the column `cut`; see `bounded`.

    Args:
        session: see `session_of_pieces`.
        source: the brokers, and how they are reached.
        reads: the ranges.
        max_bytes: most bytes of all; one record of each partition is always taken.
        where: task and brokers, for errors.

    Raises:
        DependencyError: the brokers did not give them.
    """
    properties = client_properties(source)
    try:
        return _rows(session, properties.values, reads, max_bytes).toArrow()
    except (PySparkException, Py4JJavaError) as error:
        found = explained(chain_of(error), where, properties.secrets)
        if found is None:
            raise
        raise found from error


def cuts(rows: pa.Table) -> dict[Partition, int]:
    """The first offset that was not taken, of each partition that was not read to its end."""
    marks = rows.filter(rows[CUT])
    places = zip(marks[TOPIC].to_pylist(), marks[PARTITION].to_pylist(), strict=True)
    return dict(zip(places, marks[OFFSET].to_pylist(), strict=True))


def records(rows: pa.Table) -> pa.Table:
    """The records that were taken, in the columns of a landed batch."""
    taken = rows.filter(pc.invert(rows[CUT]))
    return taken.drop_columns([CUT]).cast(SCHEMAS["kafka"])


def sizes(rows: pa.Table | pa.RecordBatch) -> Any:
    """Bytes of key, headers and value of each record, as they are landed."""
    parts = [pc.binary_length(rows.column(name)) for name in (KEY, HEADERS, VALUE)]
    filled = [pc.fill_null(part, 0).cast(pa.int64()) for part in parts]
    return pc.add(pc.add(filled[0], filled[1]), filled[2])


def bounded(
    pieces: Iterable[pa.RecordBatch], most: Mapping[Partition, int]
) -> Iterator[pa.RecordBatch]:
    """The records of one partition until their bytes reach its limit, at least one.

    A record without content follows when it was cut: the first that was not taken, marked in the
    column `cut`.
    """
    used = 0
    for piece in pieces:
        if not piece.num_rows:
            continue
        limit = most[piece.column(TOPIC)[0].as_py(), piece.column(PARTITION)[0].as_py()]
        after = pc.add(pc.cumulative_sum(sizes(piece)), used)
        before = pc.subtract(after, sizes(piece))
        count = int(pc.sum(pc.less(before, max(1, limit))).as_py())
        if count:
            yield _marked(piece.slice(0, count), cut=False)
            used = int(after[count - 1].as_py())
        if count < piece.num_rows:
            yield _marked(_without_content(piece.slice(count, 1)), cut=True)
            return


def budgets(reads: Reads, max_bytes: int) -> dict[Partition, int]:
    """How many bytes each partition may have: in proportion to what it has to give."""
    all_of_them = max(1, reads.offsets)
    return {
        place: max(1, max_bytes * (one.end - one.begin) // all_of_them)
        for place, one in reads.ranges.items()
    }


def _rows(
    session: SparkSession, properties: Mapping[str, str], reads: Reads, max_bytes: int
) -> DataFrame:
    most = budgets(reads, max_bytes)

    def cut(pieces: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from bounded(pieces, most)

    landed = session.read.format("kafka").options(**_options(properties, reads)).load()
    marked = SCHEMAS["kafka"].append(pa.field(CUT, pa.bool_()))
    return mapped_rows(landed.selectExpr(*_COLUMNS), cut, marked)


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


def _marked(piece: pa.RecordBatch, *, cut: bool) -> pa.RecordBatch:
    marks = pa.array([cut] * piece.num_rows, pa.bool_())
    return pa.RecordBatch.from_arrays([*piece.columns, marks], [*piece.schema.names, CUT])


def _without_content(piece: pa.RecordBatch) -> pa.RecordBatch:
    """The same records without key, headers and value, which may be large."""
    columns = [
        pa.nulls(piece.num_rows, field.type) if field.name in (KEY, HEADERS, VALUE) else column
        for field, column in zip(piece.schema, piece.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, piece.schema.names)
