"""What a preview says of one dataset: values for text and for JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from polynya.model.config.evolution import SchemaChange
from polynya.model.errors import ConfigError

#: Where the type of a column comes from: the setting `columns`, the table, the schema that the
#: files or the source declare, the values, or the expression of a mapped column. `nothing`: only
#: NULL was met.
Origin: TypeAlias = Literal["declared", "table", "schema", "inferred", "expression", "nothing"]


@dataclass(frozen=True, slots=True)
class SeenColumn:
    """A column of the table. `was` is its type in the table where that changes."""

    name: str
    type: str
    origin: Origin
    is_key: bool = False
    was: str | None = None


@dataclass(frozen=True, slots=True)
class SeenRecord:
    """A record as an event; `number` counts from 1 in its file."""

    file: str
    number: int
    operation: str
    sequence: Mapping[str, Any]
    key: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class SeenRow:
    """A row of the live view. `stored` names columns that keep what the table holds."""

    values: Mapping[str, Any]
    stored: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Refused:
    """A record that would go to quarantine; `number` is None for a whole file."""

    file: str
    number: int | None
    rule: str
    error: str


@dataclass(frozen=True, slots=True)
class SeenMessages:
    """Messages of a source that the next landed batch would hold.

    `count` were read of `streams`; `content` is what they are taken for. `behind` them is so much
    at most, in the `unit` that the source counts: `records`, `shards` or `files`.
    """

    source: str
    content: str
    streams: tuple[str, ...]
    count: int
    behind: int
    unit: str


@dataclass(frozen=True, slots=True)
class DatasetPreview:
    """What the next records of a dataset would become.

    Attributes:
        dataset: `schema.view`; of records without a table the name of the task.
        is_new: it has no table yet.
        is_rest: these are records that belong to no dataset.
        load: the files are those of a full load, or of a full extract.
        files: those that were read, in order; `files_waiting` are there in all.
        looked_at: records that were read; `is_cut` says that there are more.
        filtered: records that are left out, by the reason.
        keys: key columns, empty where records are appended.
        excluded: columns that the table does not get.
        changes: changes of the source's shape, each with the policy that decides.
        halted: why nothing of it would be copied.
        unknown: the error for settings that name a column which is not there.
        records: the first of them; `rows`: the first rows of the live view, of `row_count`.
        quarantined: how many records go there; `refused` are the first of them.
        notes: what else there is to know.
        messages: of a landing, what was read; its rows are the records of these messages.
    """

    dataset: str
    task: str
    format: str
    is_new: bool
    is_rest: bool = False
    load: bool = False
    files: tuple[str, ...] = ()
    files_waiting: int = 0
    looked_at: int = 0
    is_cut: bool = False
    filtered: Mapping[str, int] | None = None
    keys: tuple[str, ...] = ()
    sequence_by: tuple[str, ...] = ()
    columns: tuple[SeenColumn, ...] = ()
    excluded: tuple[str, ...] = ()
    changes: tuple[SchemaChange, ...] = ()
    halted: str | None = None
    unknown: ConfigError | None = None
    records: tuple[SeenRecord, ...] = ()
    rows: tuple[SeenRow, ...] = ()
    row_count: int = 0
    quarantined: Mapping[str, int] | None = None
    refused: tuple[Refused, ...] = ()
    notes: tuple[str, ...] = ()
    messages: SeenMessages | None = None

    @property
    def is_refused(self) -> bool:
        """Whether a run would copy nothing of it."""
        return self.halted is not None or self.unknown is not None
