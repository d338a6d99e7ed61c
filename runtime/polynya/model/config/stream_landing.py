"""A streaming landing as written in `tasks/*.yml`: Kafka, Kinesis, files or a REST API."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Final, Literal, Self, TypeAlias

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PlainSerializer,
    SecretStr,
    SerializeAsAny,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import CoreSchema, PydanticCustomError

from polynya.model.config.aws import S3Store
from polynya.model.config.evolution import WrittenPolicy
from polynya.model.config.fields import (
    ClusterName,
    Duration,
    Frozen,
    Name,
    Pattern,
    RelativePath,
    Retention,
    Size,
)
from polynya.model.config.http_source import HttpSource
from polynya.model.config.stream_content import JSON_CONTENT, ContentSetting
from polynya.model.config.task import StorageTask
from polynya.model.patterns import any_text, file_pattern

#: Stands for any text in the name of a topic.
WILDCARD: Final = "%"

#: Properties of the client that Polynya sets itself, with the reason.
OWN_PROPERTIES: Final[Mapping[str, str]] = {
    "auto.offset.reset": "the landed batches hold the position; `start_from` says where to begin",
    "bootstrap.servers": "the setting `bootstrap_servers` names the brokers",
    "enable.auto.commit": "the position is in the landed batches and nowhere else",
    "group.id": "the position is in the landed batches and nowhere else",
    "group.instance.id": "partitions are shared out by Polynya",
    "group.protocol": "partitions are shared out by Polynya",
    "interceptor.classes": "records are landed as they came",
    "key.deserializer": "records are landed as they came; `content` says what they are",
    "partition.assignment.strategy": "partitions are shared out by Polynya",
    "value.deserializer": "records are landed as they came; `content` says what they are",
}
_MECHANISM: Final = "sasl.mechanism"
_IAM: Final = "AWS_MSK_IAM"
#: What a client needs beside the mechanism, unless the task says otherwise.
_IAM_PROPERTIES: Final[Mapping[str, str]] = {
    "security.protocol": "SASL_SSL",
    "sasl.jaas.config": "software.amazon.msk.auth.iam.IAMLoginModule required;",
    "sasl.client.callback.handler.class": "software.amazon.msk.auth.iam.IAMClientCallbackHandler",
}
_SECRET: Final = re.compile(r"(?:password|secret|\.key)$", re.IGNORECASE)
_JAAS: Final = "sasl.jaas.config"
_IN_WORDS: Final = re.compile(
    r"(?:password|secret|token)\s*=\s*(?:\"([^\"]+)\"|'([^']+)'|([^\s\"';]+))", re.IGNORECASE
)


def _text(value: object) -> object:
    """`true` and `1000` are texts to a client of Kafka."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else value


#: The value of a property, which may be a secret: no message, log or dump shows it.
PropertyValue: TypeAlias = Annotated[
    SecretStr,
    BeforeValidator(_text),
    WithJsonSchema({"type": ["string", "number", "boolean"]}),
]


class KafkaServer(Frozen):
    """How an Apache Kafka cluster is reached, or one that speaks its protocol."""

    bootstrap_servers: str = Field(
        min_length=1, description="Bootstrap brokers: `HOST:PORT`, separated by commas."
    )
    allow_unencrypted: bool = Field(
        default=False,
        description="Log in to brokers on other machines without TLS (`SASL_PLAINTEXT`). "
        "Default: false.",
    )
    properties: dict[str, PropertyValue] = Field(
        default_factory=dict,
        description="Properties of the Kafka client for limits, timeouts, TLS and the login, such"
        " as `security.protocol`. Properties that name a class or a command are "
        "refused. Secrets always as `${env:NAME}`, `${file:PATH}` or "
        "`${secret:NAME}`.",
    )

    @property
    def asks_iam(self) -> bool:
        """Whether the brokers are those of Amazon MSK and let in by IAM."""
        mechanism = self.properties.get(_MECHANISM)
        return mechanism is not None and mechanism.get_secret_value() == _IAM

    def plain_properties(self) -> dict[str, str]:
        """The properties with their secrets, for the client alone."""
        written = {name: value.get_secret_value() for name, value in self.properties.items()}
        return {**_IAM_PROPERTIES, **written} if self.asks_iam else written

    def secrets(self) -> tuple[str, ...]:
        """The secrets among the properties, for those who have to leave them out of a text."""
        values = []
        for name, value in self.plain_properties().items():
            if is_secret(name):
                values.append(value)
            elif holds_secrets(name):
                values += ["".join(parts) for parts in _IN_WORDS.findall(value)]
        return tuple(secret for secret in values if secret)


class KafkaSource(KafkaServer):
    """Topics of an Apache Kafka cluster, or of one that speaks its protocol."""

    connection: Name | None = Field(
        default=None,
        description="Name of a file in `connections/` of type `kafka`, which says how the brokers "
        "are reached. Beside it, `properties` may add what the connection does not set.",
    )
    bootstrap_servers: str = Field(
        default="",
        description="Bootstrap brokers: `HOST:PORT`, separated by commas. Default: those of "
        "`connection`.",
    )
    topics: tuple[Pattern, ...] = Field(
        min_length=1,
        description="Topics to land. `%` stands for any text, so `orders-%` also matches later "
        "topics. Case matters.",
    )


def is_secret(name: str) -> bool:
    """Tell whether a property of the client holds nothing but a secret."""
    return name != _JAAS and _SECRET.search(name) is not None


def holds_secrets(name: str) -> bool:
    """Tell whether a property of the client holds secrets among other words."""
    return name == _JAAS


def matches(pattern: str, topic: str) -> bool:
    """Tell whether a pattern of `topics` takes a topic."""
    return any_text(pattern, WILDCARD).fullmatch(topic) is not None


def is_named(topics: tuple[str, ...], topic: str) -> bool:
    """Tell whether a topic is listed by its own name, not only met by a wildcard."""
    return topic in topics


class KinesisServer(Frozen):
    """How Amazon Kinesis Data Streams is reached."""

    region: str | None = Field(
        default=None,
        min_length=1,
        description="Region of the streams. Default: `aws.region` of the target.",
    )
    endpoint: str | None = Field(
        default=None,
        min_length=1,
        description="Another address of Kinesis, such as an interface endpoint of a VPC.",
    )


class KinesisSource(KinesisServer):
    """Streams of one AWS account and region."""

    connection: Name | None = Field(
        default=None,
        description="Name of a file in `connections/` of type `kinesis`, which says `region` and "
        "`endpoint`.",
    )
    streams: tuple[Pattern, ...] = Field(
        min_length=1,
        description="Names of the streams to land. `%` stands for any text, so `orders-%` also "
        "matches later streams. Case matters.",
    )


_LOOK_BACK: Final = timedelta(days=1)


def _refuse_files(message: str, fix: str | None = None) -> PydanticCustomError:
    return PydanticCustomError("polynya_value", "{message}", {"message": message, "fix": fix})


def _pattern(text: str) -> str:
    try:
        file_pattern(text)
    except ValueError as error:
        fix = "write for example `<yyyy>/<MM>/<dd>/part-*.json.gz`, from the year to the minute"
        raise _refuse_files(str(error), fix) from None
    return text


FilePatternText: TypeAlias = Annotated[
    str,
    AfterValidator(_pattern),
    WithJsonSchema(
        {
            "type": "string",
            "minLength": 1,
            "maxLength": 1024,
            "examples": ["<yyyy>/<MM>/<dd>/part-*.json.gz"],
        }
    ),
]


class FilesSource(Frozen):
    """Files below a folder or a place in a bucket, found by the dates in their paths."""

    connection: Name | None = Field(
        default=None,
        description="Name of a file in `connections/` of type `s3`, which says how the store of "
        "`url` is reached. Default: `store`.",
    )
    store: S3Store | None = Field(
        default=None,
        description="How the store of `url` is reached. Default: as the target reaches AWS.",
    )
    url: str = Field(
        min_length=1,
        max_length=2000,
        description="Location of the files: `s3://BUCKET/PREFIX`, or a folder, relative to the "
        "project or absolute.",
    )
    pattern: FilePatternText = Field(
        description="Paths of the files below `url`. `<yyyy>`, `<MM>`, `<dd>`, `<HH>` and `<mm>` "
        "are the parts of a date in UTC, also inside names; `*` is any text within "
        "one folder or name. Only prefixes that the dates predict are listed."
    )
    look_back: Duration = Field(
        default=_LOOK_BACK,
        description="How long after its date a file may still arrive. The files of this period "
        "are listed each time. Default: `1d`.",
    )
    initial_load: FilePatternText | None = Field(
        default=None,
        description="Paths of files that are read once, before all others and whatever their "
        "dates, such as `full/part-*.json.gz`. Later files of this pattern are "
        "ignored.",
    )
    delete_after_load: bool = Field(
        default=False,
        description="Delete a file once all its records have landed. Default: false.",
    )

    @model_validator(mode="after")
    def _has_a_bucket(self) -> Self:
        if self.store is not None and not self.url.startswith("s3:"):
            raise _refuse_files(
                "a store is for buckets, and `url` is a folder",
                "write `url: s3://BUCKET/PREFIX`, or remove the store",
            )
        return self

    @model_validator(mode="after")
    def _is_not_the_same_twice(self) -> Self:
        if self.initial_load == self.pattern:
            raise _refuse_files(
                "`initial_load` names the same files as `pattern`",
                "leave it out: with `start_from: earliest` all files are read",
            )
        return self

    @property
    def has_dates(self) -> bool:
        """Whether the paths of the files hold dates."""
        return file_pattern(self.pattern).unit is not None


_MEBIBYTE: Final = 2**20
_DEFAULT_KEEP: Final = timedelta(days=7)
_DEFAULT_UNCOPIED: Final = 100 * 2**30
_DEFAULT_KEEP_UNREAD: Final = timedelta(days=30)


def _refuse_landing(message: str, fix: str) -> PydanticCustomError:
    return PydanticCustomError("polynya_value", "{message}", {"message": message, "fix": fix})


def _start(value: object) -> object:
    if value in ("earliest", "now"):
        return value
    fix = "write `earliest`, `now`, or a time with its offset such as `2026-01-31T00:00:00Z`"
    try:
        moment = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
    except ValueError:
        raise _refuse_landing(f"`{str(value)[:40]}` is not a start of a stream", fix) from None
    if moment.tzinfo is None:
        raise _refuse_landing(f"`{str(value)[:40]}` has no offset from UTC", fix)
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
        raise _refuse_landing("an `interval` is at least one second", "write for example `1s`")
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
    # A run has it together with its connection, which counts when tasks are compared.
    http: SerializeAsAny[HttpSource] | None = Field(
        default=None, description="Resources of a REST API."
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
        "1 to 64. `auto`: all partitions of Kafka, and 8 shards of Kinesis. Default: `auto`.",
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
        """The topics, streams or resources that it takes; `%` in one stands for any text."""
        if self.source.kafka is not None:
            return self.source.kafka.topics
        if self.source.http is not None:
            return tuple(self.source.http.resources)
        return () if self.source.kinesis is None else self.source.kinesis.streams

    @property
    def place(self) -> str:
        """The folder of the task in the landing zone."""
        return self.folder or self.name

    def dependents(self, table: str) -> tuple[str, ...]:
        """The landed tables that are read for the records of another one."""
        if self.source.http is None:
            return ()
        resources = self.source.http.resources.items()
        return tuple(
            landed_table(name)
            for name, resource in resources
            if resource.parent is not None and landed_table(resource.parent) == table
        )


def landed_table(stream: str) -> str:
    """The name of the landed table of a topic: lower case, without spaces, `_` for `-` and `.`."""
    return stream.lower().replace(" ", "").replace("-", "_").replace(".", "_")


class DirectTask(StorageTask):
    """A storage task over a landing with `direct: true`.

    No file says this: it is made of a streaming transform and its landing.
    """

    reads: StreamingLanding = Field(description="Source of the stream.")
    reads_table: Name = Field(description="The landed table that its streams would have.")

    def landed(self) -> StorageTask:
        """The same over landed batches, for those who have messages and no source."""
        said = {name for name in self.model_fields_set if name in StorageTask.model_fields}
        return StorageTask(**{name: getattr(self, name) for name in said})


def reading(task: StorageTask, landing: StreamingLanding, table: str) -> DirectTask:
    """A task that reads itself what a landing would have in a landed table."""
    # As a file would say it: what is set tells what the project's defaults may say.
    said = {name: getattr(task, name) for name in task.model_fields_set}
    return DirectTask(**said, reads=landing, reads_table=table)
