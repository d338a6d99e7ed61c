"""Errors of streams (STR): landing tasks, landed batches, transforms and reloads.

`stream_sources` has those of Kafka, Kinesis, files and schema registries.
"""

from __future__ import annotations

from typing import Final

from polynya.model.error_catalogue.entry import ErrorEntry
from polynya.model.errors import ConfigError, OperationError

_BATCH_NOT_COPIED: Final = "nothing of the landed batch was copied; the next run reads it again"
_NOTHING_LANDED: Final = "nothing was landed; the landed batches are unchanged"
_TABLE_UNCHANGED: Final = "nothing was read; the table is unchanged"
_NOTHING_CHANGED: Final = "nothing was changed"
_LOAD_KEPT: Final = "the loaded rows are kept beside Current, which is unchanged"

# Landing tasks.

LANDING_INCOMPLETE = ErrorEntry(
    ConfigError,
    "POLYNYA-STR-001",
    title="a streaming landing does not name one source and one destination",
    page="`source` has exactly one key, such as `kafka`, and `into` is either `{each: topic}` or "
    "`{table: NAME}`. `bootstrap_servers` of Kafka names at least one broker.",
)
FOLDER_OVERLAPS = ErrorEntry(
    ConfigError,
    "POLYNYA-STR-004",
    title="two landings write to one folder",
    message="the folder {folder} overlaps that of the landing in {file}",
    fix="give one of the tasks another `folder`",
    page="A landed table belongs to one task, because its newest batch holds the position in the "
    "stream. The folder of a landing lies neither inside nor around that of another one.",
)
TOPICS_SHARE_TABLE = ErrorEntry(
    ConfigError,
    "POLYNYA-STR-012",
    title="two topics have the same landed table",
    message="{landed} and {refused} both have the landed table `{table}`",
    state="{refused} is not landed, {landed} is; the source keeps the records for its retention",
    fix="land one of them in a task with another `folder`, or both in one table: "
    "`into: {{table: NAME}}`",
    page="A landed table has the name of its topic in lower case, with `_` instead of `-` and `.`, "
    "so `a-b` and `a.b` have the same name. The first in name order is landed.",
)
NEW_TOPICS_SUSPENDED = ErrorEntry(
    OperationError,
    "POLYNYA-STR-016",
    title="a new topic waits for a decision",
    message="there are new topics, and `on_new_topic` is `{policy}`: {topics}",
    state="they are not landed; the source keeps their records for its retention",
    fix="name them in `topics`, remove the wildcard, or change `on_new_topic`",
    page="A wildcard in `topics` matches a topic that did not exist before, and `on_new_topic` is "
    "`suspend` or `stop`. A topic that `topics` names is landed from its first record.",
)
START_TIME_NEEDS_DATES = ErrorEntry(
    ConfigError,
    "POLYNYA-STR-043",
    title="`start_from` is a time, but the paths of the files have no dates",
    message="a time is compared with the dates in the paths of files, and `pattern` has none",
    fix="write `earliest` or `now`, or placeholders such as `<yyyy>` in `pattern`",
    page="Files begin at a time by the dates in their paths, not by the time of their change.",
)
CONTENT_NOT_IN_FILES = ErrorEntry(
    ConfigError,
    "POLYNYA-STR-044",
    title="files do not have this content",
    message="a file is not a single message of a schema registry",
    fix="write `avro`: Avro files contain their schema",
    page="`avro_with_schema` is one message that begins with the number of its schema in a "
    "registry, as streams carry it.",
)
READERS_NOT_FOR_FILES = ErrorEntry(
    ConfigError,
    "POLYNYA-STR-056",
    title="`readers` is not a setting of files",
    message="files are read one after the other, so that they land in order",
    fix="remove `readers`",
    page="Partitions of Kafka and shards of Kinesis can be read in parallel, because each has its "
    "own order. Files land in the order of their dates and names.",
)

# Landed batches.

LANDED_TABLE_TAKEN = ErrorEntry(
    OperationError,
    "POLYNYA-STR-013",
    title="a landed table belongs to another task or topic",
    message="the landed table {table} belongs to {owner}",
    state=_NOTHING_LANDED,
    fix="give this task another `folder`; if the task was renamed, restore its name",
    page="The newest landed batch names the task and the topics that it was read from. Its "
    "position means nothing to others. This happens after a task was renamed, or after `topics` "
    "changed to a topic with the same table name.",
)
NEWEST_BATCH_UNUSABLE = ErrorEntry(
    OperationError,
    "POLYNYA-STR-014",
    title="the newest landed batch cannot be used",
    message="the newest landed batch cannot be used: {reason}",
    state="nothing was landed after it; the source keeps its records for its retention",
    fix="restore the object as it was written. If it is lost, delete the batches from this one on: "
    "the landing continues after the last readable batch",
    page="The footer of the newest landed batch holds the position in the stream. If it cannot be "
    "read, nobody knows how far the stream was read. If it does not begin where the batch before "
    "it ends, somebody else wrote it, and its end is not a position to continue from. Records of "
    "deleted batches are read again, if the source still has them; tables that have copied these "
    "batches get the records twice.",
)
LANDED_BATCH_TOO_NEW = ErrorEntry(
    OperationError,
    "POLYNYA-STR-020",
    title="a newer version wrote a landed batch",
    message="the landed batch has version {version!r}, and this Polynya reads version {supported}",
    state=_BATCH_NOT_COPIED,
    fix="upgrade this node: a newer one landed the batch",
    page="The footer of a landed batch names the version of its layout. Upgrade the nodes that "
    "copy before the nodes that land.",
)
CONTENT_UNUSABLE = ErrorEntry(
    OperationError,
    "POLYNYA-STR-021",
    title="the content of a stream cannot be used",
    message="the {part} of a stream cannot be used: {error}",
    state=_BATCH_NOT_COPIED,
    fix="correct `{part}` in `content` of the task that lands the stream",
    page="Each landed batch contains the `content` of its landing task, and its pattern or its "
    "Avro schema cannot decode messages. An Avro schema is that of a record, is not recursive, "
    "and has no arrays of items without bytes. After the task is corrected, new batches have the "
    "new content. Landed batches keep the old one: move them out of the folder, or land into "
    "another `folder`.",
)

# Transforms.

TRANSFORM_SOURCE_UNKNOWN = ErrorEntry(
    ConfigError,
    "POLYNYA-STR-049",
    title="`from` of a transform does not name a landing",
    message="there is no task {task} of kind `streaming_landing`",
    page="`from` of a `streaming_transform` names a task of kind `streaming_landing` of the same "
    "project. Other files are read by tasks of kind `storage`, which take the same `columns`, "
    "`nested` and `where`.",
)
SETTING_NOT_FOR_APPENDS = ErrorEntry(
    ConfigError,
    "POLYNYA-STR-050",
    title="a setting has no meaning in an append-only table",
    fix="remove it, or write `mode: merge`",
    page="With `mode: append_only` each message is a row that never changes: there is no key, and "
    "nothing is deleted.",
)
MERGE_NEEDS_KEY = ErrorEntry(
    ConfigError,
    "POLYNYA-STR-051",
    title="`mode: merge` without a key",
    message="messages cannot be merged without a key",
    fix="number the columns of the key, such as `{{name: id, expression: id, key: 1}}`, or write "
    "`mode: append_only`",
    page="`mode: merge` folds messages by the key of their record.",
)
TRANSFORM_STREAM_UNCLEAR = ErrorEntry(
    ConfigError,
    "POLYNYA-STR-052",
    title="the stream of a transform is unclear",
    page="A landing of several topics or streams has one landed table for each. Name one as "
    "`stream`, or land all of them in one table: `into: {table: NAME}`.",
)
NO_INGESTION_DATE = ErrorEntry(
    ConfigError,
    "POLYNYA-STR-053",
    title="these messages have no ingestion date",
    message="files that do not land have no fixed ingestion time, so there is no `{column}`",
    fix="add a column `{column}` with an expression, or name another column",
    page="`ingestion_date` is the day on which Kafka or Kinesis took a message, or on which a file "
    "was landed. Files that are read with `direct: true` do not land, and a reload would not find "
    "the same time again.",
)

# Streams that a table reads itself, with `direct: true`.

SETTING_NEEDS_LANDING = ErrorEntry(
    ConfigError,
    "POLYNYA-STR-060",
    title="a setting of landed batches together with `direct: true`",
    message="with `direct: true` nothing is landed, so `{setting}` has no meaning",
    fix="remove `{setting}` or `direct`",
    page="If the transform reads the source itself, there are no landed batches, no folder and no "
    "retention.",
)
DIRECT_STREAM_UNREAD = ErrorEntry(
    ConfigError,
    "POLYNYA-STR-061",
    title="no task reads a source that does not land",
    message="{task} lands nothing, and no `streaming_transform` reads it",
    fix="add a `streaming_transform` with `from: {task}`, or remove `direct`",
    page="A landing with `direct: true` only names the source; a `streaming_transform` with this "
    "task as `from` reads it. Without one the source would delete unread records.",
)
DIRECT_STREAM_HAS_NO_FILES = ErrorEntry(
    ConfigError,
    "POLYNYA-STR-062",
    title="a task reads files of a folder in which nothing lands",
    message="the task {landing} has `direct: true`, so nothing is landed in {folder}",
    fix="make this task a `streaming_transform`, or remove `direct` from the landing",
    page="A `storage` task needs landed batches. Only a `streaming_transform` can read a landing "
    "with `direct: true`.",
)
DIRECT_STREAM_SHARED = ErrorEntry(
    ConfigError,
    "POLYNYA-STR-063",
    title="two transforms read one stream that does not land",
    message="the transform in {file} already reads {table} of {landing}, and with `direct: true` "
    "only one transform can read it",
    fix="remove `direct`: any number of transforms can read what has landed",
    page="With `direct: true` each table would read the source by itself, and pay for it.",
)
DIRECT_STREAM_MISSING = ErrorEntry(
    OperationError,
    "POLYNYA-STR-064",
    title="the source has no stream for a table",
    message="the source has no topic or stream for {table}",
    state="nothing was read; a position that the table has stays",
    fix="create the topic or stream, or correct `stream` of the transform; the task continues by "
    "itself",
    page="No topic or stream of the landing goes to this table. The task looks for it every half "
    "minute.",
)
OTHER_STREAM_READ = ErrorEntry(
    OperationError,
    "POLYNYA-STR-065",
    title="the table has read another stream",
    message="the table has read {table} of {source}, and is now set to read {new_table} of "
    "{new_source}",
    state=_TABLE_UNCHANGED,
    fix="give the transform another `table`, or restore the source of its landing",
    page="The table holds a position of another type of source or of another landed table, after "
    "`source`, `into`, `from` or `stream` changed. It means nothing in the new stream.",
)
FILLED_FROM_BATCHES = ErrorEntry(
    OperationError,
    "POLYNYA-STR-068",
    title="a table of landed batches cannot read its stream itself",
    message="{table} was filled from landed batches, and is now set to read its stream itself",
    state=_TABLE_UNCHANGED,
    fix="remove `direct` from the landing, or give the transform another `table`",
    page="The table knows its newest landed batch, but not where that ends in the source, so "
    "records would be read twice or not at all.",
)
FILLED_DIRECTLY = ErrorEntry(
    OperationError,
    "POLYNYA-STR-069",
    title="a table that read its stream itself cannot read landed batches",
    message="{table} has read its stream itself, and is now set to read files",
    state="nothing was copied; the table is unchanged",
    fix="set `direct: true` again, or give the transform another `table`",
    page="The table knows its position in the source, and landed batches begin somewhere else, so "
    "records would be read twice or not at all.",
)

# Reloads from the source of a stream.

RELOAD_SOURCE_INCOMPLETE = ErrorEntry(
    OperationError,
    "POLYNYA-STR-066",
    title="the source no longer has everything that the table has read",
    message="the source no longer has everything that {dataset} has read: {missing}",
    state="no rows were moved; Current is unchanged",
    fix="reload with `--mode compare_and_apply_without_deleted_rows`: it takes the rest and keeps "
    "the other records",
    page="A reload that deletes missing records needs all records from the first one on, and the "
    "source has deleted some of them. If you reload often, land the stream with a long "
    "`folder_retention`.",
)
RELOAD_FILES_NOT_LANDED = ErrorEntry(
    OperationError,
    "POLYNYA-STR-067",
    title="a stream that does not land has no files",
    message="a stream that does not land has no files",
    state=_NOTHING_CHANGED,
    fix="leave out `--files`: the reload reads the stream from where the table began",
    page="A reload of a table with `direct: true` reads the source again, from where the table "
    "began to the end of the source.",
)
RELOAD_FROM_SOURCE_IMPOSSIBLE = ErrorEntry(
    OperationError,
    "POLYNYA-STR-070",
    title="a table cannot be reloaded from its source",
    message="{table} cannot be reloaded from its source: {reason}",
    state=_NOTHING_CHANGED,
    fix="reload from the landed batches; `folder_retention` is how long they are kept",
    page="`polynya reload --from source` reads again what a landing of this project has landed "
    "unchanged. It is not possible if expressions use values that only the landing knows: its "
    "time (`get_processing_time`, `hdr__landed_at`), or the position of a record (`random`, "
    "`uuid_generator`); every row would differ. Nor is it possible if an older version landed the "
    "first batch and did not record where it begins.",
)
RELOAD_FILES_MAY_DIFFER = ErrorEntry(
    OperationError,
    "POLYNYA-STR-071",
    title="the source cannot return what landed again",
    message="the files of {table} cannot be read again as they were landed",
    state=_NOTHING_CHANGED,
    fix="reload from the landed batches; `folder_retention` is how long they are kept",
    page="A position names only recent files, so a reload could read files that the table never "
    "had, or other versions of them. A REST API gives the records that it has now.",
)
RELOAD_COUNT_DIFFERS = ErrorEntry(
    OperationError,
    "POLYNYA-STR-072",
    title="the source returned another number of messages than had landed",
    message="the source returned {returned:,} messages of {dataset}, and {landed:,} had landed",
    state=_LOAD_KEPT,
    fix="discard the load with `--abandon`. "
    "`--mode compare_and_apply_without_deleted_rows` accepts fewer messages and keeps the other "
    "records",
    page="Landed batches count messages. There are fewer now if the topic is compacted or its "
    "brokers have lost some, and more if another `isolation.level` shows them. Records of missing "
    "messages would be deleted. A reload from the landed batches does not need the source.",
)
RELOAD_ORDER_UNKNOWN = ErrorEntry(
    OperationError,
    "POLYNYA-STR-073",
    title="the order of messages of one record is unknown",
    message="records of {dataset} have messages in {first} and in {second}, and their order is "
    "unknown",
    state=_LOAD_KEPT,
    fix="discard the load with `--abandon`. Then name a column with the order as `sequence_by`, or "
    "reload from landed batches",
    page="Messages of one record are in several partitions or shards. Only the landing, which read "
    "them in order of arrival, knew their order. This happens if the key of messages is not the "
    "key of the table, or if a topic got more partitions.",
)
