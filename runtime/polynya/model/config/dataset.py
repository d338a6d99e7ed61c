"""One dataset with every setting final: what formats, engine and lake work from.

Its settings stand in parts that answer one question each. Empty tuples and None mean "not set".
Expressions are as the user wrote them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Literal

from polynya.model.config.delivery import Delivery
from polynya.model.config.evolution import SchemaEvolution
from polynya.model.config.extracts import Extracts
from polynya.model.config.layout.settings import RowRetention
from polynya.model.config.layout.terms import PartitionTerm, SortTerm
from polynya.model.config.maintenance.settings import Maintenance
from polynya.model.config.mapping.columns import ColumnMapping
from polynya.model.config.settings import (
    DEFAULT_TOMBSTONE_RETENTION,
    BadRecordPolicy,
    DeleteMode,
    FormatName,
    FormatVersion,
    Mode,
    SomeColumns,
)
from polynya.model.datatypes import DataType


@dataclass(frozen=True, slots=True)
class Relations:
    """What the dataset is called in the catalog, and what its Current view shows besides data.

    Names of views and of the internal table carry the prefix. `headers_view` is None without one.
    """

    schema: str
    view: str
    history_view: str
    changes_view: str
    internal_schema: str
    internal_table: str
    prefix: str = ""
    headers_view: str | None = None
    from_timestamp: bool = False

    @property
    def current(self) -> str:
        """`schema.view`: the dataset as people know it."""
        return f"{self.schema}.{self.view}"

    @property
    def internal(self) -> str:
        """`schema.table` of the internal table."""
        return f"{self.internal_schema}.{self.internal_table}"

    @property
    def taken(self) -> tuple[str, ...]:
        """All names that the dataset takes in the catalog, in lower case as catalogs may do."""
        views = [self.view, self.history_view, self.changes_view]
        if self.headers_view is not None:
            views.append(self.headers_view)
        names = [self.internal, *(f"{self.schema}.{view}" for view in views)]
        return tuple(name.lower() for name in names)


@dataclass(frozen=True, slots=True)
class Landed:
    """Where the data is found, and how it is written.

    `folder` is the task's, below the landing folder; `glob` and `initial_load` are globs below it.
    `source` is the source table as `schema.table`, where tables are found in the data.
    """

    format: FormatName
    folder: str
    glob: str
    initial_load: str | None = None
    extracts: Extracts | None = None
    source: str | None = None
    delivery: Delivery = field(default_factory=Delivery)


@dataclass(frozen=True, slots=True)
class Events:
    """How a record becomes an event: its key, order, time, operation and columns.

    `optional` are columns that the settings name and that may come later, `numbers` the type of
    columns that are inferred from numbers. Where columns are mapped, `keys` and `columns` are those
    of the table, and the others are of the source (`of_source`).
    """

    keys: tuple[str, ...] = ()
    sequence_by: tuple[str, ...] = ()
    timestamp: str | None = None
    apply_as_deletes: str | None = None
    apply_as_truncates: str | None = None
    ignore_null_updates: SomeColumns = False
    columns: Mapping[str, DataType] = field(default_factory=dict)
    except_columns: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    numbers: DataType | None = None


@dataclass(frozen=True, slots=True)
class Kept:
    """What the table keeps of the events, for how long, and in which version of Iceberg's format.

    `mode` None means that the data decides (debezium, replicate): merge when the source names keys.
    """

    mode: Mode | None = None
    history: bool = False
    delete_mode: DeleteMode = "hard"
    coalesce_unchanged: bool = False
    track_history_columns: tuple[str, ...] = ()
    track_history_except: tuple[str, ...] = ()
    tombstone_retention: timedelta = DEFAULT_TOMBSTONE_RETENTION
    changes_retention: timedelta | Literal["keep"] | None = None
    retention: RowRetention | None = None
    format_version: FormatVersion = 2


@dataclass(frozen=True, slots=True)
class Layout:
    """What the files of Current and Prior are parted by, how their rows are sorted, their size.

    `file_bytes` None means that nobody has asked for a size.
    """

    partition_by: tuple[PartitionTerm, ...] = ()
    sort_by: tuple[SortTerm, ...] = ()
    file_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Policies:
    """What happens when the data is not as expected."""

    schema_evolution: SchemaEvolution = field(default_factory=SchemaEvolution)
    on_bad_record: BadRecordPolicy = "quarantine"


@dataclass(frozen=True, slots=True)
class ResolvedDataset:
    """A dataset of a task; `name` is the declared one, without the prefix.

    `inherited` are the settings that it takes from the `defaults` of its task.
    """

    task: str
    name: str
    relations: Relations
    landing: Landed
    events: Events = field(default_factory=Events)
    mapping: ColumnMapping = field(default_factory=ColumnMapping)
    kept: Kept = field(default_factory=Kept)
    layout: Layout = field(default_factory=Layout)
    policies: Policies = field(default_factory=Policies)
    maintenance: Maintenance = field(default_factory=Maintenance)
    inherited: frozenset[str] = frozenset()

    @property
    def deletes(self) -> str | None:
        """`apply_as_deletes` for rows of the table; a mapping has asked it before."""
        return None if self.mapping.is_set else self.events.apply_as_deletes

    @property
    def truncates(self) -> str | None:
        """`apply_as_truncates`, as `deletes`."""
        return None if self.mapping.is_set else self.events.apply_as_truncates


def of_source(dataset: ResolvedDataset) -> ResolvedDataset:
    """The dataset as its files are read: before its columns are mapped."""
    mapping = dataset.mapping
    if not mapping.is_set:
        return dataset
    keys = mapping.of_source(dataset.events.keys)
    events = replace(dataset.events, keys=keys, columns=mapping.declared)
    return replace(dataset, events=events, mapping=ColumnMapping())
