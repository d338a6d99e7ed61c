"""One dataset with every setting final, and the settings that its table remembers.

The settings are grouped into parts that each answer one question. Empty tuples and None mean "not
set". Expressions are as the user wrote them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, Final, Literal, TypeAlias

from polynya.model.config import fields
from polynya.model.config.evolution import SchemaEvolution
from polynya.model.config.fields import format_duration
from polynya.model.config.layout import PartitionTerm, RowRetention, SortTerm
from polynya.model.config.maintenance import Maintenance
from polynya.model.config.mapping import ColumnMapping
from polynya.model.config.settings import (
    DEFAULT_DECIMAL,
    DEFAULT_TOMBSTONE_RETENTION,
    BadRecordPolicy,
    DeleteMode,
    Delivery,
    Extracts,
    FileReload,
    FormatName,
    FormatVersion,
    Mode,
    SomeColumns,
)
from polynya.model.formats import is_known, rules_of
from polynya.model.types import DataType, Decimal, Primitive


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
        """`schema.view`, the public name of the dataset."""
        return f"{self.schema}.{self.view}"

    @property
    def internal(self) -> str:
        """`schema.table` of the internal table."""
        return f"{self.internal_schema}.{self.internal_table}"

    @property
    def current_stored_view(self) -> str:
        """The view of Current without pending changes."""
        return f"{self.view}__current_stored"

    @property
    def history_stored_view(self) -> str:
        """The view of all versions without pending changes."""
        return f"{self.view}__history_stored"

    @property
    def views(self) -> tuple[str, ...]:
        """The names of all views that the dataset may have."""
        with_headers = () if self.headers_view is None else (self.headers_view,)
        live = (self.view, self.history_view, self.changes_view, *with_headers)
        return (*live, self.current_stored_view, self.history_stored_view)

    @property
    def taken(self) -> tuple[str, ...]:
        """All names that the dataset takes in the catalog, in lower case as catalogs may do."""
        names = [self.internal, *(f"{self.schema}.{view}" for view in self.views)]
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
    reload: FileReload | None = None
    source: str | None = None
    delivery: Delivery = field(default_factory=Delivery)


@dataclass(frozen=True, slots=True)
class Events:
    """How a record becomes an event: its key, order, time, operation and columns.

    `optional` are columns that the settings name and that may come later, `numbers` the type of
    columns that are inferred from numbers, `formats` how declared columns of dates and times are
    written. Where columns are mapped, `keys` and `columns` are those
    of the table, and the others are of the source (`of_source`).
    """

    keys: tuple[str, ...] = ()
    sequence_by: tuple[str, ...] = ()
    timestamp: str | None = None
    apply_as_deletes: str | None = None
    apply_as_truncates: str | None = None
    ignore_null_updates: SomeColumns = False
    columns: Mapping[str, DataType] = field(default_factory=dict)
    formats: Mapping[str, str] = field(default_factory=dict)
    except_columns: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    numbers: DataType | None = None


@dataclass(frozen=True, slots=True)
class Kept:
    """What the table keeps of the events, for how long, and in which version of Iceberg's format.

    `mode` None means that the data decides (debezium, replicate): merge when the source names keys.
    `replaced_within` are the key columns of the record whose elements are rows, where a newer one
    deletes the elements that it lacks (`replace_elements`); empty elsewhere.
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
    replaced_within: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TableLayout:
    """Partitioning of Current and Prior, the order of rows in their files, and the size of files.

    `file_bytes` None means that no size is set.
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

    `inherited` are the settings that it takes from the `defaults` of its task. `withholds`: records
    have values that a mask hides, so quarantine keeps their place and not their text.
    """

    task: str
    name: str
    relations: Relations
    landing: Landed
    events: Events = field(default_factory=Events)
    mapping: ColumnMapping = field(default_factory=ColumnMapping)
    kept: Kept = field(default_factory=Kept)
    layout: TableLayout = field(default_factory=TableLayout)
    policies: Policies = field(default_factory=Policies)
    maintenance: Maintenance = field(default_factory=Maintenance)
    inherited: frozenset[str] = frozenset()
    withholds: bool = False

    @property
    def is_spelled_as_usual(self) -> bool:
        """Whether texts spell numbers as in JSON, and times in ISO 8601."""
        said = self.landing.delivery
        separators = said.decimal_separator not in {None, DEFAULT_DECIMAL} or (
            said.thousands_separator is not None
        )
        return not separators and not self.events.formats

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


_Places: TypeAlias = Mapping[str, tuple[str, str]]


def _places(part: str, *settings: str, **renamed: str) -> dict[str, tuple[str, str]]:
    """Where settings stand in a dataset: its part and the part's field."""
    return {name: (part, renamed.get(name, name)) for name in (*settings, *renamed)}


#: Settings that make the order or the kind of the rows: a table cannot hold rows of two of them.
LASTING: Final[_Places] = (
    _places("landing", "format")
    | _places("kept", "mode", replace_elements="replaced_within")
    | _places("events", "sequence_by")
)
#: What a table was filled with that remembers no such setting: it is older than the setting.
_WITHOUT: Final[Mapping[str, Any]] = {"replace_elements": []}
#: Settings that decide what the views show, also of rows that are there.
SHOWN: Final[_Places] = (
    _places(
        "relations",
        "schema",
        "view",
        "history_view",
        "changes_view",
        "headers_view",
        "from_timestamp",
    )
    | _places("events", "except_columns")
    | _places(
        "kept",
        "history",
        "delete_mode",
        "coalesce_unchanged",
        "track_history_columns",
        "track_history_except",
    )
)
#: Settings that hold for records that are copied from now on.
LATER: Final[_Places] = (
    _places(
        "landing",
        "initial_load",
        "source",
        "extracts",
        "reload",
        landing_path="folder",
        path="glob",
    )
    | _places(
        "events",
        "timestamp",
        "apply_as_deletes",
        "apply_as_truncates",
        "ignore_null_updates",
        "columns",
        "numbers",
    )
    | _places("kept", "tombstone_retention", "changes_retention", "retention")
    | _places("mapping", "nested", "where", "rules", mapping="columns")
    | _places("policies", "on_bad_record", "schema_evolution")
)


#: Settings that decide how files look that are written from now on; no row depends on them.
LAYOUT: Final = _places("layout", "partition_by", "sort_by", target_file_size="file_bytes")
#: Not among these: without it a table is of the first version that there was.
FORMAT: Final = _places("kept", "format_version")


def recorded(
    dataset: ResolvedDataset, before: Mapping[str, Any], *, has_rows: bool
) -> dict[str, Any]:
    """Settings of a dataset as JSON values, as its table has to remember them.

    `before` is what it remembers. While it has rows the lasting ones stay as they were: the rows
    are of them. The version of the format never goes back.
    """
    now = _values(dataset, {**LASTING, **SHOWN, **LATER, **LAYOUT, **FORMAT})
    known = {**_WITHOUT, **before}
    kept = {name: known[name] for name in LASTING if has_rows and name in known}
    return now | kept | {"format_version": max(now["format_version"], format_before(before))}


def contradicted(dataset: ResolvedDataset, before: Mapping[str, Any]) -> list[str]:
    """Lasting settings that are not those of the rows that a table has.

    Native formats may follow each other: their events have the order of the same columns.
    """
    now, before = _values(dataset, LASTING), {**_WITHOUT, **before}
    changed = [name for name in LASTING if name in before and before[name] != now[name]]
    if "format" in changed and _may_follow(before["format"], dataset.landing.format):
        changed.remove("format")
    return changed


def format_before(before: Mapping[str, Any]) -> int:
    """The version of Iceberg's format that a table was given, by the settings it remembers."""
    return int(before.get("format_version", 2))


def _may_follow(before: str, now: str) -> bool:
    return is_known(before) and rules_of(now).may_follow(rules_of(before))


def shown_before(dataset: ResolvedDataset, before: Mapping[str, Any]) -> ResolvedDataset:
    """The dataset with the settings of its views as its table remembers them."""
    values: dict[str, dict[str, Any]] = {}
    for name, (part, member) in {**SHOWN, "mode": LASTING["mode"]}.items():
        if name in before:
            value = before[name]
            values.setdefault(part, {})[member] = tuple(value) if isinstance(value, list) else value
    parts = {part: replace(getattr(dataset, part), **new) for part, new in values.items()}
    return replace(dataset, **parts)


def _values(dataset: ResolvedDataset, places: _Places) -> dict[str, Any]:
    return {
        name: _plain(getattr(getattr(dataset, part), member))
        for name, (part, member) in places.items()
    }


def _plain(value: object) -> object:
    match value:
        case timedelta():
            return format_duration(value)
        case tuple():
            return [str(one) for one in value]
        case Primitive() | Decimal() | RowRetention():
            return str(value)
        case SchemaEvolution() | Extracts():
            return value.model_dump(exclude_none=True)
        case FileReload():
            return value.model_dump(mode="json", exclude_none=True)
        case Mapping():
            return {name: str(kind) for name, kind in value.items()}
        case _:
            return value


# A dataset's settings name the mode too, so it is defined below them.
ReloadMode: TypeAlias = fields.ReloadMode
KEEPING: Final = fields.KEEPING
DELETING: Final = fields.DELETING
Incomplete: TypeAlias = fields.Incomplete
