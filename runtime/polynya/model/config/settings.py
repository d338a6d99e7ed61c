"""The parts of a storage task: where it reads, how datasets behave, when changes are applied."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import BeforeValidator, Field, WithJsonSchema
from pydantic_core import PydanticKnownError

from polynya.model.config.delivery import Delivery
from polynya.model.config.evolution import SchemaEvolution
from polynya.model.config.extracts import Extracts
from polynya.model.config.fields import (
    Column,
    Duration,
    Expression,
    Frozen,
    Name,
    NumberType,
    Pattern,
    RelativePath,
    Retention,
    Size,
    SourceColumn,
    Suffix,
)
from polynya.model.config.layout.settings import PartitionBy, RowRetention, SortBy
from polynya.model.config.maintenance.settings import Maintenance
from polynya.model.config.mapping.columns import ColumnSettings, Nested
from polynya.model.formats.registry import BUILT_IN, all_rules, is_known

Mode: TypeAlias = Literal["merge", "append_only"]
DeleteMode: TypeAlias = Literal["hard", "soft"]
FormatVersion: TypeAlias = Literal[2, 3]
BadRecordPolicy: TypeAlias = Literal["quarantine", "suspend", "stop"]

DEFAULT_TOMBSTONE_RETENTION: Final = timedelta(days=30)
MEBIBYTE: Final = 2**20

#: An empty list is a choice too: it takes a default back.
Columns: TypeAlias = tuple[Column, ...]
#: All columns or none, or those that are named.
SomeColumns: TypeAlias = bool | Columns


def _known_format(value: object) -> object:
    if is_known(value):
        return value
    *names, last = [repr(rules.name) for rules in all_rules()]
    raise PydanticKnownError("literal_error", {"expected": f"{', '.join(names)} or {last}"})


#: The name of a format. Editors are offered those of Polynya; others can be added.
FormatName: TypeAlias = Annotated[
    str,
    BeforeValidator(_known_format),
    WithJsonSchema({"enum": [rules.name for rules in BUILT_IN], "type": "string"}),
]


class _Landed(Frozen):
    path: RelativePath = Field(description="Folder below the target's landing folder.")
    format: FormatName = Field(
        description="`json` (one object per line), `csv` (in many dialects), `parquet`, `avro`, "
        "`orc`, `debezium` (change events as JSON lines or Avro), `dms` (AWS DMS on "
        "S3), `replicate` (Qlik Replicate on S3) or `stream` (landed batches of a "
        "task of kind `streaming_landing`). Files may be compressed: gzip, Zstandard,"
        " bzip2, Snappy."
    )


class Landing(Delivery, _Landed):
    """Where the files of a task land, and how they are written."""


class DatasetSettings(Frozen):
    """What may be set for one dataset, or for all of them under `defaults`. The dataset wins."""

    keys: Columns | None = Field(
        default=None,
        description="Columns that identify a record. Required for native formats unless `mode` is"
        " `append_only`; `debezium` and `replicate` have their own keys, `dms` does "
        "not.",
    )
    sequence_by: tuple[SourceColumn, ...] | None = Field(
        default=None,
        description="Columns that order the events of a record. Required in merge mode for native"
        " formats; overrides the order of `debezium`, `dms` and `stream`; an error "
        "for `replicate`, whose order is fixed.",
    )
    timestamp: SourceColumn | None = Field(
        default=None,
        description="Column with the time of the event in the source; becomes `hdr__timestamp`. "
        "Default: the sequence if it is a timestamp, for `stream` the time of the "
        "message, otherwise the time of the copy.",
    )
    apply_as_deletes: Expression | None = Field(
        default=None,
        description="Spark SQL condition; matching events delete their record.",
    )
    apply_as_truncates: Expression | None = Field(
        default=None,
        description="Spark SQL condition; matching events delete all records.",
    )
    ignore_null_updates: SomeColumns | None = Field(
        default=None,
        description="A NULL in an update means that the column was not sent: it keeps its "
        "previous value. `true` for all columns, or a list of columns. In an insert "
        "NULL is NULL. Default: false.",
    )
    except_columns: Columns | None = Field(
        default=None,
        description="Source columns that expressions may use but that the tables do not have. Not"
        " for keys.",
    )
    columns: ColumnSettings | None = Field(
        default=None,
        description="A map declares types by column; others are inferred and added as they "
        "appear. A list is a mapping: expressions compute the columns of each record.",
    )
    nested: Nested | None = Field(
        default=None,
        description="What happens to structs that no mapping uses: `keep`, or `expand` into a "
        "column for each field, `address_city`. Default: `keep`.",
    )
    where: Expression | None = Field(
        default=None,
        description="Spark SQL condition over the columns of the source; other events are left "
        "out and counted as filtered. Deletes of records and truncates stay.",
    )
    numbers: NumberType | None = Field(
        default=None,
        description="For `json` and `csv`: the type of columns that are inferred from numbers, "
        "except `keys`, `sequence_by` and `timestamp`. `decimal` is `decimal(38,10)`,"
        " exact and suitable for money; or `decimal(p,s)`, `double`. Default: "
        "`bigint` if the first numbers are whole, else `double`.",
    )
    optional_columns: Columns | None = Field(
        default=None,
        description="Columns that other settings name and that may arrive later. A named column "
        "that no record of the first batch has stops the dataset; for these it is "
        "only a warning.",
    )
    history: bool | None = Field(
        default=None, description="Keep every version of every record. Default: false."
    )
    mode: Mode | None = Field(
        default=None,
        description="`merge` folds events by key; `append_only` keeps each event as a row. "
        "Default: `merge`; for `debezium` and `replicate`, `append_only` if the "
        "source names no key.",
    )
    delete_mode: DeleteMode | None = Field(
        default=None,
        description="`hard` removes a deleted record from Current; `soft` keeps it, marked "
        "`hdr__deleted`. Default: `hard`.",
    )
    coalesce_unchanged: bool | None = Field(
        default=None,
        description="Let the History view merge consecutive versions that are equal in all tracked "
        "columns. Default: false.",
    )
    track_history_columns: Columns | None = Field(
        default=None, description="The tracked columns. Default: all data columns."
    )
    track_history_except: Columns | None = Field(
        default=None,
        description="Track all data columns except these. Not together with "
        "`track_history_columns`.",
    )
    schema_evolution: SchemaEvolution | None = Field(
        default=None,
        description="A policy for each kind of schema change. A dataset's policies override those"
        " of `defaults` one by one.",
    )
    tombstone_retention: Duration | None = Field(
        default=None,
        description="How long deletes are remembered without history, so that late events are "
        "ordered correctly. Default: `30d`.",
    )
    on_bad_record: BadRecordPolicy | None = Field(
        default=None,
        description="What happens when a record or file cannot be read. `quarantine` stores it "
        "and continues; `suspend` copies the files before its file and suspends this "
        "dataset until `polynya dataset resume`; `stop` ends the whole task there. "
        "Default: `quarantine`.",
    )
    format_version: FormatVersion | None = Field(
        default=None,
        description="Version of Iceberg's table format. `3` keeps deleted rows in deletion "
        "vectors, for readers that support them; a table of version 2 is upgraded and"
        " cannot be downgraded. Default: `2`, which every engine reads.",
    )
    partition_by: tuple[PartitionBy, ...] | None = Field(
        default=None,
        max_length=8,
        description="Partition columns or transforms for Current and Prior, so that queries can "
        "skip files: columns, or `year(c)`, `month(c)`, `day(c)`, `hour(c)`, "
        "`bucket(N, c)`, `truncate(W, c)`. A change applies to files that are written"
        " from then on. Default: not partitioned.",
    )
    sort_by: tuple[SortBy, ...] | None = Field(
        default=None,
        max_length=8,
        description="Columns by which the rows of Current and Prior are sorted inside files, each"
        " optionally with `desc`, or `zorder(a, b)` alone, so that a range of values "
        "is in few files. Applies to full loads and to files that maintenance "
        "rewrites. Default: unsorted.",
    )
    target_file_size: Size | None = Field(
        default=None,
        ge=MEBIBYTE,
        description="Target size of data files, at least `1MB`. Default: `128MB`.",
    )
    retention: RowRetention | None = Field(
        default=None,
        description="Remove rows of Current and history whose `column` is older than `keep`; late"
        " events do not bring them back. Default: keep all.",
    )
    changes_retention: Retention | None = Field(
        default=None,
        description="How long events are kept after they were applied, or `keep` forever. They "
        "stay in the Changes view, `polynya rebuild` derives the tables from them, "
        "and `polynya verify` checks the tables against them. Default: not kept.",
    )
    maintenance: Maintenance | None = Field(
        default=None,
        description="Maintenance actions and their budget. A dataset's settings override those of"
        " `defaults` one by one. Default: all actions, when they pay.",
    )


class Dataset(DatasetSettings):
    """One source table or stream; becomes one internal table and its views."""

    name: Name = Field(description="Name of the view; also names the internal table.")
    source: Pattern | None = Field(
        default=None,
        description="For `debezium`, `dms` and `replicate`: the source table as `schema.table` or"
        " `database.table`. Default: every included source table with the name of the"
        " dataset.",
    )
    path: RelativePath | None = Field(
        default=None,
        description="For native formats: glob of the files below `landing.path`, read in name "
        "order. Default: `*`; `*/*` if a folder is an extract. For `stream`: the "
        "folder of a landed table, `FOLDER/*`; default: the folder with the dataset's"
        " name.",
    )
    initial_load: RelativePath | None = Field(
        default=None,
        description="For native formats: glob of the files of the first full load, written "
        "straight to Current.",
    )
    extracts: Extracts | None = Field(
        default=None,
        description="For native formats: the files of `path` are full extracts of the table, not "
        "events. `{}` takes every default.",
    )


class ApplyPolicy(Frozen):
    """When pending changes are folded into Current and Prior: as soon as one limit is reached."""

    max_pending_rows: int = Field(
        default=50_000, gt=0, description="Apply at this number of pending rows."
    )
    max_pending_bytes: Size = Field(
        default=64 * MEBIBYTE, description="Apply at this size of pending changes. Default: `64MB`."
    )
    max_pending_files: int = Field(
        default=30, gt=0, description="Apply at this number of change files."
    )
    max_pending_age: Duration = Field(
        default=timedelta(minutes=1),
        description="Apply when the oldest pending change is this old. Default: `1m`.",
    )
    min_fraction: float = Field(
        default=0.01,
        ge=0,
        le=1,
        description="Pending rows count only once they are this fraction of the rows of Current.",
    )
    copies_wait_at: int = Field(
        default=20,
        ge=1,
        description="Copies of a dataset wait for its apply once pending rows, bytes or files "
        "reach this multiple of the limit at which it applies. Default: 20.",
    )


class BatchSettings(Frozen):
    """How much one copy reads before it commits, and how often. Reading stops between records."""

    max_rows: int = Field(default=200_000, gt=0, description="Maximum rows in one copy.")
    max_bytes: Size = Field(
        default=64 * MEBIBYTE,
        description="Maximum bytes of records in one copy: of their text, or of their columns in "
        "memory if a Parquet file is read as columns. Default: `64MB`.",
    )
    freshness: Duration = Field(
        default=timedelta(seconds=5),
        description="Interval between copies of a dataset while data keeps arriving, unless there"
        " is enough for a whole batch. Records after a pause are copied immediately. "
        "Default: `5s`.",
    )


class ViewSettings(Frozen):
    """What the derived views are called, and what the Current view shows besides data."""

    history: Suffix = Field(default="__history", description="Suffix of the History view.")
    changes: Suffix = Field(default="__changes", description="Suffix of the Changes view.")
    headers: bool = Field(
        default=False,
        description="Create a second Current view with the header columns after the data.",
    )
    headers_suffix: Suffix = Field(default="__whdr", description="Suffix of that view.")
    from_timestamp: bool = Field(
        default=False,
        description="Show `hdr__from_timestamp` in the Current view: the start of a version's "
        "validity.",
    )
