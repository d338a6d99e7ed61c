"""The parts of a storage task: landing, datasets, extracts, apply policy."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Final, Literal, Self, TypeAlias
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    SecretStr,
    StringConstraints,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import PydanticCustomError, PydanticKnownError

from polynya.model.config.aws import is_loopback
from polynya.model.config.evolution import SchemaEvolution
from polynya.model.config.fields import (
    DELETING,
    Column,
    Duration,
    Expression,
    FileName,
    Frozen,
    Name,
    NameTime,
    NumberType,
    Pattern,
    RelativePath,
    ReloadMode,
    Retention,
    Size,
    SourceColumn,
    Suffix,
)
from polynya.model.config.layout import PartitionBy, RowRetention, SortBy
from polynya.model.config.maintenance import Maintenance
from polynya.model.config.mapping import ColumnSettings, Nested
from polynya.model.config.schedule import Schedule
from polynya.model.formats import BUILT_IN, all_rules, is_landed
from polynya.model.names import shown

DEFAULT_DELIMITER: Final = ","
DEFAULT_QUOTE: Final = '"'
DEFAULT_DECIMAL: Final = "."

Encoding: TypeAlias = Literal[
    "utf-8", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "iso-8859-1", "windows-1252"
]

#: One character that cannot be part of a line end or a quote.
Delimiter: TypeAlias = Annotated[str, StringConstraints(pattern=r'^[^"\r\n\x00]$')]
#: One character that cannot be part of a line end; a quote may also be none.
Character: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[^\r\n\x00]$")]
Quote: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[^\r\n\x00]?$")]
#: `add.fields` of Debezium's transform: `[struct.]field[:new name]`.
AddedField: TypeAlias = Annotated[
    str, StringConstraints(max_length=255, pattern=r"^([A-Za-z]\w*\.)?[A-Za-z]\w*(:[^:,\s]+)?$")
]
#: What a field holds instead of a value.
Marker: TypeAlias = Annotated[str, StringConstraints(max_length=64, pattern=r'^[^"\r\n\x00]*$')]


#: A key of a record path.
RECORD_KEY: Final = r"""[^.\[\]*"'\x00-\x20](?:[^.\[\]*"'\x00-\x1f]*[^.\[\]*"'\x00-\x20])?"""
#: `$` for the document, `$.data.items` for a value inside its objects.
RecordPath: TypeAlias = Annotated[
    str, StringConstraints(max_length=500, pattern=rf"^\$(\.{RECORD_KEY}){{0,20}}$")
]
#: As Excel allows it.
SheetName: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=100)]
#: One character that cannot be part of a number or a line end.
Separator: TypeAlias = Annotated[str, StringConstraints(pattern=r'^[^0-9A-Za-z+\-"\r\n\t\x00]$')]


def _refuse(message: str, fix: str) -> PydanticCustomError:
    return PydanticCustomError("polynya_value", "{message}", {"message": message, "fix": fix})


def _url(text: str) -> str:
    try:
        parts = urlsplit(text)
        right = parts.scheme in {"http", "https"} and bool(parts.hostname)
        secret = parts.username is not None or parts.password is not None
    except ValueError:
        right = secret = False
    if secret:
        raise _refuse("an address holds no secrets", "set `user` and `password` beside `url`")
    if not right or any(ord(character) <= 32 for character in text):
        raise _refuse(
            f"{shown(text)} is not an address", "write for example `https://registry:8081`"
        )
    return text.rstrip("/")


Url: TypeAlias = Annotated[str, Field(min_length=1, max_length=2000), AfterValidator(_url)]


class RegistryServer(Frozen):
    """How a schema registry with the interface of Confluent's is reached."""

    url: Url = Field(description="Address of the registry, such as `https://registry:8081`.")
    allow_unencrypted: bool = Field(
        default=False,
        description="Send `user` and `password` to an `http://` address on another machine. "
        "Default: false.",
    )
    user: str | None = Field(
        default=None,
        min_length=1,
        description="User that logs in, as `${env:NAME}`, `${file:PATH}` or "
        "`${secret:NAME#FIELD}`.",
    )
    password: SecretStr | None = Field(
        default=None,
        description="Its password, always as `${env:NAME}`, `${file:PATH}` or `${secret:NAME}`, "
        "never in the file.",
    )

    @model_validator(mode="after")
    def _login_is_encrypted(self) -> Self:
        has_login = self.user is not None or self.password is not None
        plain = self.url.startswith("http://") and not is_loopback(self.url)
        if has_login and plain and not self.allow_unencrypted:
            host = urlsplit(self.url).hostname or ""
            message = f"{shown(host)} is on another machine, and the login would go without TLS"
            fix = "write `https://…`, or `allow_unencrypted: true` beside `url`"
            raise PydanticCustomError(
                "polynya_unsecured", "{message}", {"message": message, "fix": fix}
            )
        return self


class SchemaRegistry(RegistryServer):
    """A schema registry with the interface of Confluent's."""

    connection: Name | None = Field(
        default=None,
        description="Name of a file in `connections/` of type `schema_registry`, which says all "
        "other settings.",
    )
    url: Url = Field(
        default="",
        description="Address of the registry, such as `https://registry:8081`. Default: that of "
        "`connection`.",
    )

    @model_validator(mode="after")
    def _is_somewhere(self) -> Self:
        if not self.url:
            raise _refuse(
                "a registry needs an address", "write `url: ADDRESS`, or `connection: NAME`"
            )
        return self


class Delivery(Frozen):
    """How the files are written. None means the format's default."""

    header: bool | None = Field(
        default=None,
        description="For `csv`, `dms` and `replicate`: whether CSV files begin with a header "
        "line. Without one, `columns` of a `csv` or `dms` dataset names the columns "
        "in order; `replicate` has them in its `.dfm` files. Default: `true`.",
    )
    delimiter: Delimiter | None = Field(
        default=None,
        description="For `csv`, `dms` and `replicate`: the character between fields. A `.dfm` "
        "file overrides it. Default: `,`.",
    )
    null_value: Marker | None = Field(
        default=None,
        description="For `csv`, `dms` and `replicate`: the text of an unquoted CSV field that "
        "means NULL; a quoted field is always text. Write it in quotes. A `.dfm` file"
        ' overrides it. Default: empty, so that an empty field is NULL and `""` the '
        'empty text; for `csv`, `""` is NULL too unless this is set. For `dms`, the '
        "word NULL (the default of `CsvNullValue`) is NULL as well unless this is "
        "set.",
    )
    quote: Quote | None = Field(
        default=None,
        description="For `csv`: the quote character around fields that contain a delimiter, a "
        "quote or a line break; doubled inside a field. `''` for none. Default: `\"`.",
    )
    escape: Character | None = Field(
        default=None,
        description="For `csv`: the escape character, such as `\\`, which makes the next one "
        "literal. Default: none.",
    )
    comment: Character | None = Field(
        default=None,
        description="For `csv`: skip lines that begin with this character. Default: none.",
    )
    skip_lines: int | None = Field(
        default=None,
        ge=0,
        le=1000,
        description="For `csv`: lines to skip at the start of every file; for `excel`: rows at the "
        "start of the sheet. Default: 0.",
    )
    encoding: Encoding | None = Field(
        default=None,
        description="For `csv` and `json`: `utf-8`, `utf-16` or `utf-32` (with a byte order mark), "
        "`utf-16-le` or `utf-16-be` (without one), `iso-8859-1` or `windows-1252`. Default: "
        "`utf-8`.",
    )
    zip_member: Pattern | None = Field(
        default=None,
        description="For native formats: the files in a ZIP archive that hold the data, as a glob "
        "such as `*.csv`, in which `*` crosses folders. Several are read in name order as one. "
        "Default: all files in it, which must be of one kind.",
    )
    sheet: SheetName | None = Field(
        default=None,
        description="For `excel`: the name of the sheet. Default: the only visible one.",
    )
    record_path: RecordPath | None = Field(
        default=None,
        description="For `json`: each file is a JSON document, or several in sequence, and this "
        "is the path of its records: `$` for the document itself, `$.results` or `$.data.items` "
        "for a value inside its objects. An array there holds many records, an object is one. "
        "Default: one object per line.",
    )
    decimal_separator: Separator | None = Field(
        default=None,
        description="For `csv`, and for `json` text in columns that are declared as numbers: the "
        'character before the decimal places, such as `","`. Default: `.`.',
    )
    thousands_separator: Separator | None = Field(
        default=None,
        description="For `csv`, and for `json` text in columns that are declared as numbers: the "
        'character between groups of three digits, such as `"."` in `1.234.567,89`. Numbers '
        "without it are read too. Default: none.",
    )
    timestamp_column: Column | None = Field(
        default=None,
        description="For `dms`: the column with the commit time (`TimestampColumnName`). It "
        "orders the changes, followed by file name and row, and becomes "
        "`hdr__timestamp`.",
    )
    cdc_path: RelativePath | None = Field(
        default=None,
        description="For `dms`: folder below `path` with the change files (`CdcPath`). Default: "
        "next to the files of the full load.",
    )
    unsent_value: Marker | None = Field(
        default=None,
        description="For `dms`: the CSV value of a column that the source did not log "
        "(`CsvNoSupValue`); the column keeps its value.",
    )
    flattened: bool | None = Field(
        default=None,
        description="For `debezium`: the events went through the transform "
        "`ExtractNewRecordState`: each record is a row, with fields that the transform added. "
        "Default: `false`.",
    )
    add_fields: tuple[AddedField, ...] | None = Field(
        default=None,
        description="For `debezium`: the transform's `add.fields` and `add.headers`, such as "
        "`op`, `source.lsn`, `table:origin`; they are not columns. Default: every name that "
        "Debezium uses, after the prefix.",
    )
    add_fields_prefix: Marker | None = Field(
        default=None,
        description="For `debezium`: the transform's `add.fields.prefix`. Default: `__`.",
    )

    wrapped: bool | None = Field(
        default=None,
        description="For `debezium`, flattened: whether each record has its row under `value`, "
        "next to `key` or `headers`. `false`: records are rows, even if a table has "
        "columns with these names. Default: decided for each record; an ambiguous one"
        " goes to quarantine as `ambiguous_record`.",
    )
    schema_registry: SchemaRegistry | None = Field(
        default=None,
        description="For `stream` and `debezium`: the registry with the schemas of "
        "`avro_with_schema`, and its login. Default: the registry of the landing task"
        " in this project whose folder is `path`. The address in a landed batch is "
        "never used.",
    )

    @property
    def has_header(self) -> bool:
        """Whether CSV files begin with a line of column names."""
        return self.header is not False

    @property
    def delimiter_character(self) -> str:
        """The character between the fields."""
        return DEFAULT_DELIMITER if self.delimiter is None else self.delimiter

    @property
    def quote_character(self) -> str:
        """The character around fields, "" for none."""
        return DEFAULT_QUOTE if self.quote is None else self.quote

    @property
    def decimal_character(self) -> str:
        """The character before the decimal places."""
        return DEFAULT_DECIMAL if self.decimal_separator is None else self.decimal_separator

    @property
    def record_keys(self) -> tuple[str, ...] | None:
        """The keys down to the records of a document, None where each line is a record."""
        return None if self.record_path is None else tuple(self.record_path.split(".")[1:])


#: What becomes of the records that an extract lacks.
Absent: TypeAlias = Literal["delete", "keep"]


class Extracts(Frozen):
    """Each landed file or folder is a full extract of the table; the engine finds the changes."""

    each: Literal["file", "folder"] = Field(
        default="file", description="One extract is a file, or all files of a folder."
    )
    marker: FileName = Field(
        default="_SUCCESS",
        description="For `each: folder`: the file that marks a folder as complete. Default: "
        "`_SUCCESS`.",
    )
    time_in_name: NameTime | None = Field(
        default=None,
        description="Format of the time (UTC) in the path of an extract, such as `%Y-%m-%d`, with"
        " the directives %Y %m %d %H %M %S %f %j. It orders the extracts and is the "
        "time of their changes. Without it: the order of the names, and the time at "
        "which reading began.",
    )
    absent: Absent = Field(
        default="delete",
        description="What happens to records that are missing from an extract: `delete` or `keep`. "
        "Default: `delete`.",
    )
    incomplete: Literal["keep", "accept"] = Field(
        default="keep",
        description="An extract that is empty, or with records in quarantine: `keep` the records "
        "that are missing from it, or `accept` it as complete. Default: `keep`.",
    )
    check_columns: tuple[Column, ...] | None = Field(
        default=None,
        min_length=1,
        description="A record has changed when one of these columns differs. Default: all.",
    )
    updated_at: Column | None = Field(
        default=None,
        description="A record has changed when this column is greater than before. It is also the "
        "time of the change, unless `timestamp` names another column. Not together with "
        "`check_columns`.",
    )


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
    if is_landed(value):
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
        description="`json` (one object per line, or documents with `record_path`), `csv` (in "
        "many dialects), `parquet`, `avro`, `orc`, `debezium` (change events as JSON lines or "
        "Avro), `dms` (AWS DMS on S3), `replicate` (Qlik Replicate on S3) or `stream` (landed "
        "batches of a task of kind `streaming_landing`). Files may be compressed: gzip, "
        "Zstandard, bzip2, Snappy."
    )


class Landing(Delivery, _Landed):
    """Where the files of a task land, and how they are written."""


class FileReload(Frozen):
    """A new full load of the dataset on a schedule, from landed files."""

    schedule: Schedule = Field(
        description="When it is due: a cron expression in UTC, such as `30 2 * * *`, or an "
        "iCalendar rule (RFC 5545). A moment that passed while nothing ran is caught up once.",
    )
    mode: ReloadMode = Field(
        default=DELETING,
        description="What the load does to the table, as `--mode` of `polynya reload`. Default: "
        "`compare_and_apply_with_deleted_rows`.",
    )
    files: RelativePath | None = Field(
        default=None,
        description="Glob of the files of the load below the landing path. Default: "
        "`initial_load`.",
    )
    newest: Literal["file", "folder"] | None = Field(
        default=None,
        description="Which of these files are the load: the last one by name, or those of the last "
        "folder. Default: all.",
    )


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
        description="A map declares types by column, `{type: date, format: dd.MM.yyyy}` also how "
        "dates and times are written; others are inferred and added as they appear. A list is a "
        "mapping: expressions compute the columns of each record.",
    )
    nested: Nested | None = Field(
        default=None,
        description="What happens to structs that no mapping uses: `keep`, or `expand` into a "
        "column for each field, `address_city`. Default: `keep`.",
    )
    replace_elements: bool | None = Field(
        default=None,
        description="For `stream`, where elements of an array are rows in merge mode: a newer "
        "record deletes the elements that it lacks. Default: false.",
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
    reload: FileReload | None = Field(
        default=None,
        description="For native formats: read the full load of the dataset again on a schedule, "
        "and write what differs from the table.",
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
        description="Apply when the oldest pending change is this old; an apply that a copy takes "
        "along comes up to a quarter earlier. Default: `1m`.",
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
        description="Interval between copies of a dataset while data keeps arriving, of which a "
        "copy may come a tenth early, unless there is enough for a whole batch. Records after a "
        "pause are copied immediately. Default: `5s`.",
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
