"""A streaming transform as written in `tasks/*.yml`: the table that landed messages become."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import BeforeValidator, Field, PlainSerializer, WithJsonSchema

from polynya.model.config.engines import EngineSetting
from polynya.model.config.evolution import SchemaEvolution
from polynya.model.config.fields import (
    DURATION_PATTERN,
    ClusterName,
    Column,
    Duration,
    Expression,
    Frozen,
    Name,
    Pattern,
    SourceColumn,
    format_duration,
)
from polynya.model.config.layout import PartitionBy, RowRetention, SortBy
from polynya.model.config.mapping import MappedColumn, Nested
from polynya.model.config.rules import TransformationRule
from polynya.model.config.settings import (
    ApplyPolicy,
    BadRecordPolicy,
    BatchSettings,
    Mode,
    ViewSettings,
)

#: The column with the day on which the source took a message, or on which a file was landed.
INGESTION_DATE: Final = "ingestion_date"


def _retention(value: Any) -> Any:
    """`90d` is short for that long by the day of ingestion."""
    return {"column": INGESTION_DATE, "keep": value} if isinstance(value, str) else value


def _partition_by(value: Any) -> Any:
    return () if value == "none" else value


#: Rows leave by the day of ingestion, or by a column of one's choice.
TransformRetention: TypeAlias = Annotated[
    RowRetention,
    BeforeValidator(_retention),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "pattern": DURATION_PATTERN},
                {
                    "type": "object",
                    "properties": {"column": {"type": "string"}, "keep": {"type": "string"}},
                    "required": ["column", "keep"],
                    "additionalProperties": False,
                },
            ],
            "examples": ["90d"],
        }
    ),
]
SnapshotAge: TypeAlias = Annotated[Duration, PlainSerializer(format_duration)]


class StreamingTransform(Frozen):
    """Makes a table of the messages that a `streaming_landing` lands."""

    apiVersion: Literal["polynya/v1"] = Field(  # noqa: N815 - the key in the file
        description="Version of this file's format."
    )
    kind: Literal["streaming_transform"] = Field(description="Kind of the task.")
    name: Name = Field(description="Name of the task, unique in the project.")
    from_: Name = Field(
        alias="from", description="The task of kind `streaming_landing` that lands the messages."
    )
    stream: Pattern | None = Field(
        default=None,
        description="The topic, stream or landed table to read. Required if the landing may have "
        "several.",
    )
    schema_: Name | None = Field(
        default=None,
        alias="schema",
        description="Schema of the views. Default: the name of `from`.",
    )
    table: Name | None = Field(
        default=None, description="Name of the view. Default: the task's name."
    )
    mode: Mode = Field(
        description="`merge` folds messages by the key of `columns`; `append_only` keeps each "
        "message as a row."
    )
    columns: tuple[MappedColumn, ...] = Field(
        default=(),
        description="Columns of the table that expressions compute. Columns that are not named "
        "here are kept as they are.",
    )
    nested: Nested = Field(
        default="keep",
        description="What happens to structs that no mapping uses: `keep`, or `expand` into a "
        "column for each field. Default: `keep`.",
    )
    replace_elements: bool = Field(
        default=False,
        description="Where elements of an array are rows in merge mode: a newer message deletes "
        "the elements that it lacks. Default: false.",
    )
    rules: tuple[TransformationRule, ...] = Field(
        default=(),
        description="Changes of rows and columns by patterns, in this order, after those of the "
        "project.",
    )
    where: Expression | None = Field(
        default=None, description="Spark SQL condition; other messages are left out and counted "
                      "as filtered."
    )  # fmt: skip
    except_columns: tuple[Column, ...] | None = Field(
        default=None,
        description="Columns of messages that expressions may use but that are not in the table.",
    )
    optional_columns: tuple[Column, ...] | None = Field(
        default=None,
        description="Columns that arrive later although a column with a similar name exists. A "
        "column that no message has had yet is NULL, with a warning; a name that "
        "looks like a misspelling of another stops the task.",
    )
    soft_delete: Expression | None = Field(
        default=None,
        description="Spark SQL condition; a message for which it is true deletes its record, which "
        "stays in Current, marked `hdr__deleted`.",
    )
    history: bool = Field(
        default=False, description="Keep every version of every record. Default: false."
    )
    sequence_by: tuple[SourceColumn, ...] | None = Field(
        default=None,
        description="Columns whose values order the messages of a record. Default: the order in "
        "which they landed.",
    )
    timestamp: SourceColumn | None = Field(
        default=None,
        description="Column that holds the time of the event. Default: the time of the message.",
    )
    schema_evolution: SchemaEvolution | None = Field(
        default=None, description="What happens when messages change shape."
    )
    on_bad_record: BadRecordPolicy | None = Field(
        default=None,
        description="What happens when a message cannot be read. Default: `quarantine`.",
    )
    partition_by: Annotated[tuple[PartitionBy, ...] | None, BeforeValidator(_partition_by)] = Field(
        default=None,
        max_length=8,
        description="Partition columns or transforms: `ingestion_date` (the day on which the "
        "source received the message, or on which the file was landed), other "
        "columns, or transforms of them such as `bucket(16, user_id)`; an empty list "
        "for no partitions. Default: `[ingestion_date]`; for files that are read with"
        " `direct: true`, no partitions.",
    )
    sort_by: tuple[SortBy, ...] | None = Field(
        default=None,
        max_length=8,
        description="Columns by which rows are sorted inside files.",
    )
    retention: TransformRetention | None = Field(
        default=None,
        description="Remove rows that are older: `90d` by the day of ingestion, or `{column: "
        "created_at, keep: 90d}`. Default: keep all.",
    )
    snapshot_expiry: SnapshotAge = Field(
        default=timedelta(hours=2),
        gt=timedelta(0),
        description="How long a snapshot stays after another one followed. Default: `2h`.",
    )
    apply: ApplyPolicy = Field(
        default_factory=ApplyPolicy, description="When pending changes are applied."
    )
    batch: BatchSettings = Field(
        default_factory=BatchSettings, description="Limits of what one copy reads."
    )
    views: ViewSettings = Field(
        default_factory=ViewSettings, description="Names and columns of the views."
    )
    engine: EngineSetting | None = Field(
        default=None, description="Engine on which an agent runs this task, as for `storage`."
    )
    cluster: ClusterName | None = Field(
        default=None,
        description="Cluster whose agents run this task. Default: `cluster` of the project.",
    )
