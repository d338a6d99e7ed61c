"""A capture as written in `tasks/*.yml`: tables, masks, large values, failures."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import timedelta
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import BeforeValidator, Field, model_validator
from pydantic_core import CoreSchema, PydanticCustomError

from polynya.model.config.dataset import DELETING, ReloadMode
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
from polynya.model.config.masks import MaskSetting
from polynya.model.config.schedule import (
    Cron,
    EitherSchedule,
    ReadingTimes,
    Recurrence,
    Schedule,
    TimeWindow,
    parse_window,
)
from polynya.model.config.stream_landing import FolderRetention, RetentionOrKeep
from polynya.model.patterns import any_text

LobPolicy: TypeAlias = Literal["truncate", "null", "stop"]


class Lobs(Frozen):
    """A limit for values of text and binary columns, of whatever type."""

    limit: Size = Field(
        ge=1024,
        description="Maximum bytes of a value, in UTF-8 for text.",
    )
    then: LobPolicy = Field(
        default="truncate",
        description="What happens to a longer value: `truncate` keeps its beginning, `null` "
        "replaces it by NULL, `stop` ends the load of its table, or the capture if "
        "the value is in a change. Default: `truncate`.",
    )


#: Both stand for any text.
_WILDCARDS: Final = re.compile(r"[%*]")


def matches(pattern: str, table: str) -> bool:
    """Tell whether a pattern takes a table, such as `public.orders`. Case matters."""
    return any_text(pattern, "%*").fullmatch(table) is not None


def takes(include: Iterable[str], exclude: Iterable[str], table: str) -> bool:
    """Tell whether a table is included and not excluded."""
    wanted = any(matches(pattern, table) for pattern in include)
    return wanted and not any(matches(pattern, table) for pattern in exclude)


def has_wildcard(pattern: str) -> bool:
    """Tell whether a pattern may take tables that come later."""
    return _WILDCARDS.search(pattern) is not None


TableFault: TypeAlias = Literal["suspend", "stop"]


class EnvironmentErrors(Frozen):
    """The database, the network or the landing zone does not answer: what may pass by itself."""

    retry: Annotated[int, Field(ge=0)] | Literal["forever"] = Field(
        default="forever",
        description="Number of consecutive retries, or `forever`. Default: `forever`.",
    )
    from_: Duration = Field(
        default=timedelta(seconds=5),
        alias="from",
        description="Pause before the first retry; each following pause is twice as long. "
        "Default: `5s`.",
    )
    to: Duration = Field(
        default=timedelta(minutes=30), description="The longest pause. Default: `30m`."
    )


class TableErrors(Frozen):
    """One table cannot be read, while others can."""

    retry: int = Field(default=3, ge=0, description="Number of retries.")
    then: TableFault = Field(
        default="suspend",
        description="`suspend` leaves the table out until an operator resumes it, and the others "
        "continue; `stop` ends the task. Default: `suspend`.",
    )


class Faults(Frozen):
    """Failures, and what follows from each."""

    environment: EnvironmentErrors = Field(
        default_factory=EnvironmentErrors,
        description="The database, the network or the landing zone does not answer.",
    )
    table: TableErrors = Field(default_factory=TableErrors, description="One table cannot be read.")


def pause_seconds(policy: EnvironmentErrors, failures: int) -> float | None:
    """Seconds to wait after so many failures in a row, at least one; None: not tried again."""
    if policy.retry != "forever" and failures > policy.retry:
        return None
    first, longest = policy.from_.total_seconds(), policy.to.total_seconds()
    # The exponent is bounded: a float ends somewhere, and a retry forever does not.
    return float(min(longest, first * 2.0 ** min(failures - 1, 60)))


_MEBIBYTE: Final = 2**20

UpdateMethod: TypeAlias = Literal["cdc", "reload", "incremental"]
Priority: TypeAlias = Literal["highest", "high", "normal", "low", "lowest"]
#: As PostgreSQL allows it for a slot.
SlotName: TypeAlias = Annotated[str, Field(pattern=r"^[a-z0-9_]{1,63}$")]
_LONGEST_SLOT_NAME: Final = 63


def slot_name_of(task: str) -> str:
    """The name of slot and publication of a task that names none."""
    return ("polynya_" + re.sub(r"[^a-z0-9_]", "_", task.lower()))[:_LONGEST_SLOT_NAME]


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


class Window(Frozen):
    """A recurring span of time, such as each night from 22:00 for eight hours."""

    rrule: Annotated[str, Field(min_length=1, max_length=1000)] = Field(
        description="When it begins: an iCalendar rule (RFC 5545), such as "
        "`FREQ=DAILY;BYHOUR=22;BYMINUTE=0`, by the clock of `time_zone`.",
    )
    duration: Duration = Field(description="How long it lasts, at most `366d`.")
    time_zone: Annotated[str, Field(pattern=r"^[A-Za-z0-9_+/-]{1,64}$")] = Field(
        default="UTC", description="Time zone of `rrule`, such as `Europe/Berlin`. Default: `UTC`."
    )

    @model_validator(mode="after")
    def _is_a_window(self) -> Window:
        try:
            _ = self.parsed
        except ValueError as error:
            raise PydanticCustomError(
                "polynya_value",
                "{message}",
                {
                    "message": str(error),
                    "fix": "write `{rrule: FREQ=DAILY;BYHOUR=22;BYMINUTE=0, duration: 8h}`",
                },
            ) from None
        return self

    @property
    def parsed(self) -> TimeWindow:
        """The window. Raises ValueError, which reading the file has ruled out."""
        return parse_window(self.rrule, self.duration, self.time_zone)


def _windows(value: object) -> object:
    return (value,) if isinstance(value, dict | Window) else value


class _OneOrMore:
    """The JSON Schema of a list whose only item may stand alone."""

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: Any) -> dict[str, Any]:
        many: dict[str, Any] = handler(core)
        return {"anyOf": [many["items"], many]}


#: One window or several.
Windows: TypeAlias = Annotated[tuple[Window, ...], BeforeValidator(_windows), _OneOrMore()]


class TableReload(Frozen):
    """A new load of the tables on a schedule, which is compared with what the tables hold."""

    schedule: Schedule = Field(
        description="When it is due: a cron expression in UTC, or an iCalendar rule (RFC 5545). A "
        "moment that passed while nothing ran is caught up once.",
    )
    mode: ReloadMode = Field(
        default=DELETING,
        description="What the load does to the tables, as `--mode` of `polynya reload`. Default: "
        "`compare_and_apply_with_deleted_rows`.",
    )
    tables: tuple[Pattern, ...] = Field(
        default=("*",),
        description="Which of the captured tables, as patterns like those of `tables.include`. "
        "Default: all.",
    )

    def takes(self, table: str) -> bool:
        """Whether a captured table is loaded again."""
        return takes(self.tables, (), table)


#: A span of time for a column of times, a difference for one of numbers.
Overlap: TypeAlias = Annotated[int, Field(ge=0)] | Duration


class IncrementalTable(Frozen):
    """How the new and changed rows of one table are found."""

    column: Column | None = Field(
        default=None,
        description="Column that grows with each insert and update. Default: that of the task.",
    )
    overlap: Overlap | None = Field(
        default=None,
        description="How far before the last value each extraction begins. Default: that of the "
        "task.",
    )
    keys: tuple[Column, ...] = Field(
        default=(),
        description="Columns that identify a row, for a view or a table without a key. Default: "
        "the key of the table.",
    )


class IncrementalExtraction(Frozen):
    """How new and changed rows are found by a column that grows."""

    column: Column | None = Field(
        default=None,
        description="Column of numbers or times that grows with each insert and update. `tables` "
        "names another one for single tables.",
    )
    overlap: Overlap | None = Field(
        default=None,
        description="How far before the last value the next extraction begins, for rows that were "
        "committed late: a duration for a column of times (default: `10m`), a number for a column "
        "of numbers (default: 1000). Rows that are read again and did not change write nothing.",
    )
    tables: dict[Pattern, IncrementalTable] = Field(
        default_factory=dict, description="Settings of single tables, by their whole name."
    )


class LandedBatchLimits(Frozen):
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
    roll: LandedBatchLimits = Field(
        default_factory=LandedBatchLimits, description="When to finish a landed batch."
    )
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
        "at each moment of `schedule`; `incremental` reads at each moment the rows whose "
        "`incremental.column` has grown. Default: `cdc`.",
    )
    schedule: Schedule | None = Field(
        default=None,
        description="For `update_method: reload` and `incremental`: a cron expression in UTC, such "
        "as `30 2 * * *`,"
        " or an iCalendar rule (RFC 5545), such as "
        "`FREQ=WEEKLY;BYDAY=MO,TH;BYHOUR=2`, in UTC or after a "
        "`DTSTART;TZID=Europe/Berlin:20260101T023000`.",
    )
    reload_mode: ReloadMode = Field(
        default=DELETING,
        description="For `update_method: reload`: what a load does to the tables, as `--mode` of "
        "`polynya reload`. Default: `compare_and_apply_with_deleted_rows`.",
    )
    incremental: IncrementalExtraction | None = Field(
        default=None,
        description="For `update_method: incremental`: the columns by which new rows are found.",
    )
    reload: TableReload | None = Field(
        default=None,
        description="For `update_method: cdc` and `incremental`: a new load of the tables on a "
        "schedule, which repairs what differs. With `incremental` it finds deleted rows.",
    )
    active: Windows = Field(
        default=(),
        description="When the task may read from the database: one window or a list. Default: "
        "always. Outside it waits, and the database keeps its log.",
    )
    maintenance: Windows = Field(
        default=(),
        description="When the task may not read from the database, whatever `active` says: one "
        "window or a list.",
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

    @property
    def follows(self) -> bool:
        """Whether it captures changes from the log of the database."""
        return self.update_method == "cdc"

    @property
    def loads(self) -> Cron | Recurrence | EitherSchedule | None:
        """When it loads on a schedule; None: never, or it does so while it follows changes."""
        if self.follows or self.schedule is None:
            return None
        if self.reload is None:
            return self.schedule
        return EitherSchedule((self.schedule, self.reload.schedule))

    @property
    def reading_times(self) -> ReadingTimes:
        """When it may read from the database."""
        return ReadingTimes(
            tuple(window.parsed for window in self.active),
            tuple(window.parsed for window in self.maintenance),
        )
