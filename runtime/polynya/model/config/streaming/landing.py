"""A streaming landing as written in `tasks/*.yml`: what a stream is landed from, where and when."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field, PlainSerializer, WithJsonSchema
from pydantic_core import CoreSchema, PydanticCustomError

from polynya.model.config.evolution import WrittenPolicy
from polynya.model.config.fields import (
    ClusterName,
    Duration,
    Frozen,
    Name,
    RelativePath,
    Retention,
    Size,
)
from polynya.model.config.streaming.content import JSON_CONTENT, ContentSetting
from polynya.model.config.streaming.files import FilesSource
from polynya.model.config.streaming.kafka import KafkaSource
from polynya.model.config.streaming.kinesis import KinesisSource

_MEBIBYTE: Final = 2**20
_DEFAULT_KEEP: Final = timedelta(days=7)
_DEFAULT_UNCOPIED: Final = 100 * 2**30
_DEFAULT_KEEP_UNREAD: Final = timedelta(days=30)


def _refuse(message: str, fix: str) -> PydanticCustomError:
    return PydanticCustomError("polynya_value", "{message}", {"message": message, "fix": fix})


def _start(value: object) -> object:
    if value in ("earliest", "now"):
        return value
    fix = "write `earliest`, `now`, or a time with its offset such as `2026-01-31T00:00:00Z`"
    try:
        moment = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
    except ValueError:
        raise _refuse(f"`{str(value)[:40]}` is no start of a stream", fix) from None
    if moment.tzinfo is None:
        raise _refuse(f"`{str(value)[:40]}` has no offset from UTC", fix)
    return moment.astimezone(UTC)


def _start_text(value: datetime | str) -> str:
    return value if isinstance(value, str) else value.isoformat()


#: Where a stream that was never landed begins.
StartFrom: TypeAlias = Annotated[
    datetime | Literal["earliest", "now"],
    BeforeValidator(_start),
    PlainSerializer(_start_text),
    WithJsonSchema({"type": "string", "examples": ["earliest", "now", "2026-01-31T00:00:00Z"]}),
]


def _interval(value: timedelta) -> timedelta:
    if value < timedelta(seconds=1):
        raise _refuse("an `interval` is at least one second", "write for example `1s`")
    return value


Interval: TypeAlias = Annotated[Duration, AfterValidator(_interval)]


#: How many partitions or shards are read side by side.
Readers: TypeAlias = Annotated[int, Field(ge=1, le=64)] | Literal["auto"]


def _kept(value: Any) -> Any:
    """`keep` is short for `{keep: keep}`."""
    return {"keep": "keep"} if value == "keep" else value


class _RetentionSchema:
    """The JSON Schema of a retention with its short form."""

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: Any) -> dict[str, Any]:
        return {"anyOf": [{"const": "keep"}, handler(core)]}


class Source(Frozen):
    """What a stream is read from: exactly one of these keys."""

    kafka: KafkaSource | None = Field(default=None, description="Topics of Apache Kafka.")
    kinesis: KinesisSource | None = Field(
        default=None, description="Streams of Amazon Kinesis Data Streams."
    )
    files: FilesSource | None = Field(
        default=None, description="Files that another system delivers to a folder or a bucket."
    )

    @property
    def chosen(self) -> tuple[str, ...]:
        """The keys that are written; a right source has one."""
        return tuple(name for name, value in self if value is not None)


class Into(Frozen):
    """Which tables the records are landed in: one of these keys."""

    each: Literal["topic"] | None = Field(
        default=None,
        description="A landed table for each topic, named like the topic in lower case, with `_` "
        "for `-` and `.`.",
    )
    table: Name | None = Field(default=None, description="Name of one landed table for all.")


class FolderRetention(Frozen):
    """How long landed batches stay in the landing zone."""

    keep: Retention = Field(
        default=_DEFAULT_KEEP,
        description="How long batches stay after they were written, or `keep` forever. The newest"
        " batch of a table always stays: it holds the position. Default: `7d`.",
    )


class StreamRetention(FolderRetention):
    """How long landed batches of a stream stay, copied or not."""

    keep_unread: Retention = Field(
        default=_DEFAULT_KEEP_UNREAD,
        description="How long batches stay that a table of this project has not copied, or "
        "`keep`: until it has. At least as long as `keep`. Default: `30d`.",
    )


RetentionOrKeep: TypeAlias = Annotated[FolderRetention, BeforeValidator(_kept), _RetentionSchema]
StreamRetentionOrKeep: TypeAlias = Annotated[
    StreamRetention, BeforeValidator(_kept), _RetentionSchema
]


class LandingBatch(Frozen):
    """How much one landed batch holds at most."""

    max_records: int = Field(default=500_000, gt=0, description="Maximum records in one batch.")
    max_bytes: Size = Field(
        default=64 * _MEBIBYTE,
        description="Maximum bytes of records in one batch, as received; a batch takes at least "
        "one record. Default: `64MB`.",
    )


class StreamingLanding(Frozen):
    """Lands a stream as it came: files of the landing zone that storage tasks read."""

    apiVersion: Literal["polynya/v1"] = Field(  # noqa: N815 - the key in the file
        description="Version of this file's format."
    )
    kind: Literal["streaming_landing"] = Field(description="Kind of the task.")
    name: Name = Field(description="Name of the task, unique in the project.")
    source: Source = Field(description="Source of the stream.")
    content: ContentSetting = Field(
        default=JSON_CONTENT, description="How messages are decoded. Default: `json`."
    )
    start_from: StartFrom = Field(
        default="earliest",
        description="Where landing of a new stream begins: `earliest`, `now`, or a time with its "
        "offset from UTC.",
    )
    interval: Interval = Field(
        default=timedelta(seconds=60),
        description="Time from one landed batch to the next, at least `1s`. Default: `60s`.",
    )
    direct: bool = Field(
        default=False,
        description="Land nothing: the `streaming_transform` that names this task reads the source "
        "itself, and its table holds the position. Default: false.",
    )
    folder: RelativePath | None = Field(
        default=None,
        description="Folder below the target's landing folder. Default: the task's name.",
    )
    into: Into = Field(
        default_factory=lambda: Into(each="topic"),
        description="Landed tables of the records. Default: `{each: topic}`.",
    )
    folder_retention: StreamRetentionOrKeep = Field(
        default_factory=StreamRetention,
        description="How long landed batches stay; `keep` is short for `{keep: keep}`.",
    )
    readers: Readers = Field(
        default="auto",
        description="Number of partitions or shards of a landed table that are read in parallel, "
        "1 to 64. `auto`: all partitions of Kafka, as far as Spark has threads for "
        "them, and 8 shards of Kinesis. Default: `auto`.",
    )
    batch: LandingBatch = Field(
        default_factory=LandingBatch, description="Limits of a landed batch."
    )
    cluster: ClusterName | None = Field(
        default=None,
        description="Cluster whose agents run this task. Default: `cluster` of the project.",
    )
    max_uncopied: Size | Literal["any"] = Field(
        default=_DEFAULT_UNCOPIED,
        description="Landing waits while a table of this project has this much of the stream left"
        " to copy; `any`: it never waits. Default: `100GB`.",
    )
    on_new_topic: WrittenPolicy = Field(
        default="apply",
        description="A topic that matches a wildcard appears after the first run. `propagate` "
        "lands it from its earliest record on, `ignore` leaves it out, `suspend` "
        "leaves it out with an error until `topics` names it, `stop` ends the task. "
        "Default: `propagate`.",
    )

    @property
    def streams(self) -> tuple[str, ...]:
        """The topics or streams that it takes; `%` in one stands for any text."""
        if self.source.kafka is not None:
            return self.source.kafka.topics
        return () if self.source.kinesis is None else self.source.kinesis.streams

    @property
    def place(self) -> str:
        """The folder of the task in the landing zone."""
        return self.folder or self.name


def landed_table(stream: str) -> str:
    """The name of the landed table of a topic: lower case, without spaces, `_` for `-` and `.`."""
    return stream.lower().replace(" ", "").replace("-", "_").replace(".", "_")
