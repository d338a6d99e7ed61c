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
        "`orc`, `debezium` (change events as JSON lines or Avro), `dms` (AWS DMS on S3), "
        "`replicate` (Qlik Replicate on S3) or `stream` (what a task of kind `streaming_landing` "
        "lands). Files may be compressed: gzip, Zstandard, bzip2, Snappy."
    )


class Landing(Delivery, _Landed):
    """Where the files of a task land, and how they are written."""


class DatasetSettings(Frozen):
    """What may be set for one dataset, or for all of them under `defaults`. The dataset wins."""

    keys: Columns | None = Field(
        default=None,
        description="Columns that identify a record. Needed for native formats unless `mode` is "
        "`append_only`; `debezium` and `replicate` bring their own, `dms` does not.",
    )
    sequence_by: tuple[SourceColumn, ...] | None = Field(
        default=None,
        description="Columns whose values order the events of a record. Needed in merge mode for "
        "native formats; `debezium`, `dms` and `stream` bring an order of their own, which this "
        "overrides; "
        "`replicate` brings its own, and this is an error.",
    )
    timestamp: SourceColumn | None = Field(
        default=None,
        description="Column that holds the time of the event in the source; becomes "
        "`hdr__timestamp`. Without it: the sequence if that is a timestamp, for `stream` the time "
        "of the message, otherwise the time of the copy.",
    )
    apply_as_deletes: Expression | None = Field(
        default=None,
        description="Spark SQL condition; an event for which it is true deletes its record.",
    )
    apply_as_truncates: Expression | None = Field(
        default=None,
        description="Spark SQL condition; an event for which it is true deletes all records.",
    )
    ignore_null_updates: SomeColumns | None = Field(
        default=None,
        description="A NULL in an update means that the column was not sent: it keeps the value "
        "valid just before. `true` for all columns, or a list of columns. In an insert NULL is "
        "NULL. Default: false.",
    )
    except_columns: Columns | None = Field(
        default=None,
        description="Source columns that expressions may use but that are not in the tables. Not "
        "for keys.",
    )
    columns: ColumnSettings | None = Field(
        default=None,
        description="A map has declared types by column; others are inferred and added as they "
        "appear. A list is a mapping: columns that are made of each record by expressions.",
    )
    nested: Nested | None = Field(
        default=None,
        description="What becomes of structs that no mapping takes: `keep`, or `expand` into a "
        "column for each field, `address_city`. Default: `keep`.",
    )
    where: Expression | None = Field(
        default=None,
        description="Spark SQL condition over the columns of the source; an event for which it is "
        "false or NULL is left out, and counted as filtered. Deletes of records and truncates "
        "stay.",
    )
    numbers: NumberType | None = Field(
        default=None,
        description="For `json` and `csv`: the type of columns that are inferred from numbers, but "
        "for `keys`, `sequence_by` and `timestamp`. `decimal` is `decimal(38,10)`, exact and right "
        "for money; `decimal(p,s)` or `double`. Default: `bigint` where the first numbers are "
        "whole, else `double`.",
    )
    optional_columns: Columns | None = Field(
        default=None,
        description="Columns that other settings name and that may come later. A named column that "
        "no record of the first batch has stops the dataset; one of these is only a warning.",
    )
    history: bool | None = Field(
        default=None, description="Keep every version of every record. Default: false."
    )
    mode: Mode | None = Field(
        default=None,
        description="`merge` folds events by key; `append_only` keeps each event as a row. "
        "Default: `merge`; for `debezium` and `replicate`, `append_only` where the source names no "
        "key.",
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
        description="What happens when the source changes shape: a policy by kind of change. A "
        "dataset's policies win one by one over those of `defaults`.",
    )
    tombstone_retention: Duration | None = Field(
        default=None,
        description="How long a delete is remembered without history, so that late events are "
        "placed correctly. Default: `30d`.",
    )
    on_bad_record: BadRecordPolicy | None = Field(
        default=None,
        description="What happens on a record or file that cannot be read. `quarantine` sets it "
        "aside and goes on; `suspend` copies the files before its file and lets this dataset wait "
        "for `polynya dataset resume`; `stop` ends the whole task there. Default: `quarantine`.",
    )
    format_version: FormatVersion | None = Field(
        default=None,
        description="Version of Iceberg's table format. `3` keeps deleted rows in deletion "
        "vectors, for readers that know them; a table of version 2 is upgraded, and none goes "
        "back. Default: `2`, which every engine reads.",
    )
    partition_by: tuple[PartitionBy, ...] | None = Field(
        default=None,
        max_length=8,
        description="What the files of Current and Prior are parted by, so that a query that asks "
        "for some values reads only their files: columns, or `year(c)`, `month(c)`, `day(c)`, "
        "`hour(c)`, `bucket(N, c)`, `truncate(W, c)`. A changed list holds for files that are "
        "written from then on. Default: not at all.",
    )
    sort_by: tuple[SortBy, ...] | None = Field(
        default=None,
        max_length=8,
        description="Columns by which the rows of Current and Prior are sorted inside of their "
        "files, each with `desc` if wanted, or `zorder(a, b)` alone: so that a range of values is "
        "in few files. Holds for full loads and for what maintenance writes again. Default: not "
        "sorted.",
    )
    target_file_size: Size | None = Field(
        default=None,
        ge=MEBIBYTE,
        description="Size that data files of the table should have, at least `1MB`. Default: "
        "`128MB`.",
    )
    retention: RowRetention | None = Field(
        default=None,
        description="Rows of Current and history whose `column` is older than `keep` leave the "
        "table, and do not come back by a late event. Default: none do.",
    )
    changes_retention: Retention | None = Field(
        default=None,
        description="How long events are kept after they were applied: `keep` forever, or this "
        "long. They stay in the Changes view, `polynya rebuild` derives the tables from them, "
        "and `polynya verify` checks that the tables equal their fold. Default: not at all.",
    )
    maintenance: Maintenance | None = Field(
        default=None,
        description="What keeps the tables in shape, and what it may cost. A dataset's settings "
        "win one by one over those of `defaults`. Default: all actions, when they pay.",
    )


class Dataset(DatasetSettings):
    """One source table or stream; becomes one internal table and its views."""

    name: Name = Field(description="Name of the view; also names the internal table.")
    source: Pattern | None = Field(
        default=None,
        description="For `debezium`, `dms` and `replicate`: the source table as `schema.table` or "
        "`database.table`. Default: every included source table called like the dataset.",
    )
    path: RelativePath | None = Field(
        default=None,
        description="For native formats: glob of the files below `landing.path`, taken in name "
        "order. Default: `*`; `*/*` where a folder is an extract. For `stream`: the folder of a "
        "landed table, `FOLDER/*`; default: that of the dataset's name.",
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
        default=50_000, gt=0, description="Apply at this many pending rows."
    )
    max_pending_bytes: Size = Field(
        default=64 * MEBIBYTE, description="Apply at this size of pending changes. Default: `64MB`."
    )
    max_pending_files: int = Field(
        default=30, gt=0, description="Apply at this many files of changes."
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
        description="Copies of a dataset wait for its apply once the pending rows, bytes or files "
        "are so many times as many as the limit at which it applies. Default: 20.",
    )


class BatchSettings(Frozen):
    """How much one copy reads before it commits, and how often. Reading stops between records."""

    max_rows: int = Field(default=200_000, gt=0, description="Most rows in one copy.")
    max_bytes: Size = Field(
        default=64 * MEBIBYTE,
        description="Most bytes of records in one copy: of their text, or of their columns in "
        "memory where a Parquet file is read as columns. Default: `64MB`.",
    )
    freshness: Duration = Field(
        default=timedelta(seconds=5),
        description="While data keeps coming, time from one copy of a dataset to the next, unless "
        "there is enough for a whole batch. What comes after a pause is copied at once. Default: "
        "`5s`.",
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
        description="Show `hdr__from_timestamp` in the Current view: the time since when the "
        "version of a record is valid.",
    )
