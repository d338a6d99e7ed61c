"""Header columns of records that came over a stream, by the kind of source.

Settings may name them where source columns are named. They are never columns of a table by
themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

from polynya.model.datatypes import BIGINT, STRING, TIMESTAMP, DataType

StreamSource: TypeAlias = Literal["kafka", "kinesis", "files"]

#: Header columns of each source with their types, in the order of a landed batch.
STREAM_HEADERS: Final[Mapping[StreamSource, Mapping[str, DataType]]] = {
    "kafka": {
        "hdr__kafka_topic": STRING,
        "hdr__kafka_partition": BIGINT,
        "hdr__kafka_offset": BIGINT,
        "hdr__kafka_key": STRING,
        "hdr__kafka_headers": STRING,
        "hdr__kafka_timestamp": TIMESTAMP,
    },
    "kinesis": {
        "hdr__kinesis_stream": STRING,
        "hdr__kinesis_shard": STRING,
        "hdr__kinesis_offset": STRING,
        "hdr__kinesis_key": STRING,
        "hdr__kinesis_timestamp": TIMESTAMP,
    },
    "files": {
        "hdr__file_name": STRING,
        "hdr__file_size": BIGINT,
        "hdr__file_record": BIGINT,
    },
}

#: The header column of every message that has landed: when its landed batch was made. A batch that
#: is read again says the same.
LANDED_AT: Final = "hdr__landed_at"

STREAM_HEADER_NAMES: Final = frozenset(
    {LANDED_AT, *(name for headers in STREAM_HEADERS.values() for name in headers)}
)

#: The header columns that tell a message from all others of its source.
PLACE_HEADERS: Final[Mapping[StreamSource, tuple[str, ...]]] = {
    "kafka": ("hdr__kafka_topic", "hdr__kafka_partition", "hdr__kafka_offset"),
    "kinesis": ("hdr__kinesis_stream", "hdr__kinesis_shard", "hdr__kinesis_offset"),
    "files": ("hdr__file_name", "hdr__file_record"),
}

#: The header column that holds the time at which the source took a record.
TIME_HEADERS: Final[Mapping[StreamSource, str]] = {
    "kafka": "hdr__kafka_timestamp",
    "kinesis": "hdr__kinesis_timestamp",
}
