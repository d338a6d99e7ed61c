"""Header columns of internal tables and of streamed records; values of the partition column.

The names are defined once, for DDL, fold, views and readers. The contract is sections 2 and 3 of
the Semantics. Columns marked *internal* are not part of the published contract: the engine needs
them so that the result does not depend on the order of arrival.

The header columns of streamed records depend on the type of source. Settings may use them like
source columns, but they become columns of a table only if a setting says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Literal, TypeAlias

from polynya.model.types import BIGINT, STRING, DataType
from polynya.model.types import TIMESTAMP as TIMESTAMP_TYPE

StreamSource: TypeAlias = Literal["kafka", "kinesis", "files", "http"]

#: Header columns of each source with their types, in the order of a landed batch.
STREAM_HEADERS: Final[Mapping[StreamSource, Mapping[str, DataType]]] = {
    "kafka": {
        "hdr__kafka_topic": STRING,
        "hdr__kafka_partition": BIGINT,
        "hdr__kafka_offset": BIGINT,
        "hdr__kafka_key": STRING,
        "hdr__kafka_headers": STRING,
        "hdr__kafka_timestamp": TIMESTAMP_TYPE,
    },
    "kinesis": {
        "hdr__kinesis_stream": STRING,
        "hdr__kinesis_shard": STRING,
        "hdr__kinesis_offset": STRING,
        "hdr__kinesis_key": STRING,
        "hdr__kinesis_timestamp": TIMESTAMP_TYPE,
    },
    "files": {
        "hdr__file_name": STRING,
        "hdr__file_size": BIGINT,
        "hdr__file_record": BIGINT,
    },
    "http": {
        "hdr__http_resource": STRING,
        "hdr__http_parent": STRING,
        "hdr__http_read": BIGINT,
        "hdr__http_page": BIGINT,
        "hdr__http_record": BIGINT,
        "hdr__http_timestamp": TIMESTAMP_TYPE,
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
    "http": ("hdr__http_resource", "hdr__http_read", "hdr__http_page", "hdr__http_record"),
}

#: The header column that holds the time at which the source took a record.
TIME_HEADERS: Final[Mapping[StreamSource, str]] = {
    "kafka": "hdr__kafka_timestamp",
    "kinesis": "hdr__kinesis_timestamp",
    "http": "hdr__http_timestamp",
}


class Partition(StrEnum):
    """Values of `hdr__partition`."""

    CHANGES = "changes"
    ASSET_STATE = "asset_state"
    CURRENT = "current"
    PRIOR = "prior"
    RELOAD = "reload"
    #: events that were applied and are kept (`changes_retention`)
    RETAINED = "retained"
    #: rejected records live in the table itself, so that they travel in the commit of their batch
    QUARANTINE = "quarantine"


#: Partitions whose rows have data columns.
WITH_DATA: Final = (
    Partition.CHANGES,
    Partition.CURRENT,
    Partition.PRIOR,
    Partition.RELOAD,
    Partition.RETAINED,
)

PARTITION = "hdr__partition"
KEY_HASH = "hdr__key_hash"
CHANGE_IDENTIFIER = "hdr__change_identifier"
SEQUENCE_TAIL = "hdr__sequence_tail"
SOURCE_POSITION = "hdr__source_position"
OPERATION = "hdr__operation"
TIMESTAMP = "hdr__timestamp"
FROM_TIMESTAMP = "hdr__from_timestamp"
TO_TIMESTAMP = "hdr__to_timestamp"
INSERTED_TIMESTAMP = "hdr__inserted_timestamp"
MODIFIED_TIMESTAMP = "hdr__modified_timestamp"
WAS_CURRENT_FROM = "hdr__was_current_from_timestamp"
WAS_CURRENT_TO = "hdr__was_current_to_timestamp"
UNSENT = "hdr__unsent"
OLD_KEY = "hdr__old_key"
COPY_CHANGE_IDENTIFIER = "hdr__copy_change_identifier"
APPLY_CHANGE_IDENTIFIER = "hdr__apply_change_identifier"
STATE = "hdr__state"
QUARANTINE = "hdr__quarantine"

#: Columns whose names start so belong to Polynya; a source column may not.
RESERVED_PREFIX = "hdr__"
#: In a list of columns that were not sent: all columns but those that the list names.
ALL_BUT = "hdr__all_but"
#: In the same list: the row was read from its table at its place in the log, it is no change.
READ = "hdr__read"
#: In that list of a stored version: the event that made it was `L`, also where the version is `U`.
LOADED = "hdr__loaded"

QUARANTINE_TYPE = "struct<id:string,file:string,offset:bigint,rule:string,error:string,raw:binary>"


@dataclass(frozen=True, slots=True)
class Header:
    """One header column: its name, Spark type and meaning."""

    name: str
    type: str
    meaning: str


HEADERS: tuple[Header, ...] = (
    Header(PARTITION, "string", "logical partition of the row"),
    Header(KEY_HASH, "binary", "SHA-1 of the canonical key, 20 bytes"),
    Header(
        CHANGE_IDENTIFIER, "string", "place in the total order of events, at most 50 characters"
    ),
    Header(SEQUENCE_TAIL, "string", "internal: rest of a sequence that 50 characters cannot hold"),
    Header(SOURCE_POSITION, "string", "internal: source position that breaks ties of sequence_by"),
    Header(OPERATION, "string", "L I U D T, i u d after a reload"),
    Header(TIMESTAMP, "timestamp", "time of the event in the source"),
    Header(FROM_TIMESTAMP, "timestamp", "start of validity of the version"),
    Header(TO_TIMESTAMP, "timestamp", "end of validity of the version; NULL while open"),
    Header(
        INSERTED_TIMESTAMP,
        "timestamp",
        "when the key was first added; in changes: when the event was copied",
    ),
    Header(MODIFIED_TIMESTAMP, "timestamp", "when the row was last changed"),
    Header(
        WAS_CURRENT_FROM,
        "timestamp",
        "engine time at which the version entered Current; in retained: when the event was applied",
    ),
    Header(WAS_CURRENT_TO, "timestamp", "engine time at which the version left Current"),
    Header(UNSENT, "string", "internal: JSON array of columns that the source did not send"),
    Header(OLD_KEY, "string", "internal: key that this record had before a change of key"),
    Header(
        COPY_CHANGE_IDENTIFIER,
        "string",
        "highest change identifier copied; in changes, internal: what the event surely follows",
    ),
    Header(APPLY_CHANGE_IDENTIFIER, "string", "highest change identifier applied"),
    Header(STATE, "string", "internal: JSON of the state row"),
    Header(QUARANTINE, QUARANTINE_TYPE, "rejected record: origin, rule, error and raw bytes"),
)

HEADER_NAMES: tuple[str, ...] = tuple(header.name for header in HEADERS)
