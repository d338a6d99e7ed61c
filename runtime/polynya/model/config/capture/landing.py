"""A capture as written in `tasks/*.yml`: which tables of a database are landed, and how."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import Field

from polynya.model.config.capture.faults import Faults
from polynya.model.config.capture.lobs import Lobs
from polynya.model.config.capture.masks import MaskSetting
from polynya.model.config.capture.patterns import takes
from polynya.model.config.capture.schedule import Schedule
from polynya.model.config.fields import (
    ClusterName,
    Column,
    Duration,
    Expression,
    Frozen,
    Name,
    Pattern,
    RelativePath,
    Size,
)
from polynya.model.config.streaming.landing import FolderRetention, RetentionOrKeep

_MEBIBYTE: Final = 2**20

UpdateMethod: TypeAlias = Literal["cdc", "reload"]
Priority: TypeAlias = Literal["highest", "high", "normal", "low", "lowest"]
#: As PostgreSQL allows it for a slot.
SlotName: TypeAlias = Annotated[str, Field(pattern=r"^[a-z0-9_]{1,63}$")]


class TableChoice(Frozen):
    """Choice of tables by their names."""

    include: tuple[Pattern, ...] = Field(
        min_length=1,
        description="Tables as `schema.table` or `database.table`. `%` or `*` stands for any "
        "text, so `public.*` also matches later tables. Case matters.",
    )
    exclude: tuple[Pattern, ...] = Field(
        default=(), description="Tables to leave out, in the same form. Default: none."
    )

    def takes(self, table: str) -> bool:
        """Whether a table is captured."""
        return takes(self.include, self.exclude, table)


class Load(Frozen):
    """The first load of each table."""

    parallel: int = Field(
        default=5, ge=1, le=64, description="Number of tables that are loaded in parallel."
    )
    order: dict[Pattern, Priority] = Field(
        default_factory=dict,
        description="Priority of a table's load, by name: `highest`, `high`, `normal`, `low` or "
        "`lowest`. Default: `normal`.",
    )
    filter: dict[Pattern, Expression] = Field(
        default_factory=dict,
        description="Rows to load, by table: a condition in the SQL of the database. Changes of "
        "other rows are still captured; `rows` leaves those out too.",
    )
    chunk_rows: int = Field(
        default=50_000,
        ge=100,
        le=10_000_000,
        description="Rows of a chunk; after a kill the load continues after the last landed chunk.",
    )


class Roll(Frozen):
    """Limits of a landed batch: it is complete as soon as one is reached.

    Changes that come after a rest of `age` land at once.
    """

    size: Size = Field(
        default=32 * _MEBIBYTE,
        ge=2**16,
        description="Size of a batch's events, before compression. Default: `32MB`.",
    )
    age: Duration = Field(
        default=timedelta(seconds=2),
        description="Interval between batches of a continuous stream. A change after a longer "
        "pause lands immediately. Default: `2s`.",
    )


class Write(Frozen):
    """Form and size of landed batches."""

    format: Literal["json"] = Field(default="json", description="Lines of JSON.")
    roll: Roll = Field(default_factory=Roll, description="When to finish a landed batch.")
    compression: Literal["zstd"] = Field(
        default="zstd", description="Compression of landed batches."
    )


class CaptureLanding(Frozen):
    """Captures tables of a database: their rows, then their changes, into the landing zone."""

    apiVersion: Literal["polynya/v1"] = Field(  # noqa: N815 - the key in the file
        description="Version of this file's format."
    )
    kind: Literal["landing"] = Field(description="Kind of the task.")
    name: Name = Field(description="Name of the task, unique in the project.")
    connection: Name = Field(description="Name of a file in `connections/`.")
    update_method: UpdateMethod = Field(
        default="cdc",
        description="`cdc` loads once and then captures changes; `reload` loads everything again "
        "at each moment of `schedule`. Default: `cdc`.",
    )
    schedule: Schedule | None = Field(
        default=None,
        description="For `update_method: reload`: a cron expression in UTC, such as `30 2 * * *`,"
        " or an iCalendar rule (RFC 5545), such as "
        "`FREQ=WEEKLY;BYDAY=MO,TH;BYHOUR=2`, in UTC or after a "
        "`DTSTART;TZID=Europe/Berlin:20260101T023000`.",
    )
    cluster: ClusterName | None = Field(
        default=None,
        description="Cluster whose agents run this task. Default: `cluster` of the project.",
    )
    tables: TableChoice = Field(description="Tables to capture.")
    load: Load = Field(default_factory=Load, description="How existing rows are loaded.")
    write: Write = Field(
        default_factory=Write, description="Size and compression of landed batches."
    )
    errors: Faults = Field(default_factory=Faults, description="Retries after failures.")
    mask: dict[Pattern, dict[Column, MaskSetting]] = Field(
        default_factory=dict,
        description="Masks of columns, by table, applied before anything is written: `drop`, "
        "`{hash: {key: …}}`, `{truncate: N}` or `{replace: VALUE}`.",
    )
    lobs: Lobs | None = Field(
        default=None,
        description="Maximum length of text and binary values. Default: no limit.",
    )
    rows: dict[Pattern, Expression] = Field(
        default_factory=dict,
        description="Rows to capture, by table: a condition in the SQL of the database, for "
        "PostgreSQL 15 and later.",
    )
    folder: RelativePath | None = Field(
        default=None,
        description="Folder below the target's landing folder. Default: the task's name.",
    )
    folder_retention: RetentionOrKeep = Field(
        default_factory=FolderRetention,
        description="How long landed batches stay, by default `7d`; `keep` is short for `{keep: "
        "keep}`. The newest batch always stays: it holds the position.",
    )
    slot: SlotName | None = Field(
        default=None,
        description="For PostgreSQL: the replication slot. Default: derived from the task's name.",
    )
    publication: SlotName | None = Field(
        default=None,
        description="For PostgreSQL: the publication. Default: derived from the task's name.",
    )

    @property
    def place(self) -> str:
        """The folder of the task in the landing zone."""
        return self.folder or self.name
