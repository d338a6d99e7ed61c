"""Which tables of a capture belong to a task, and the settings of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any

from polynya.formats.base import KnownTable
from polynya.formats.debezium.envelope import PLACEHOLDER
from polynya.formats.debezium.flat import DEFAULT_PREFIX, Flattening
from polynya.formats.errors import RecordError
from polynya.model.config.dataset import ResolvedDataset, of_source
from polynya.model.config.delivery import Delivery, SchemaRegistry
from polynya.model.config.evolution import SchemaEvolution
from polynya.model.config.settings import Dataset
from polynya.model.config.task import StorageTask, resolved
from polynya.model.datatypes import DataType


@dataclass(frozen=True, slots=True)
class TableSettings:
    """What the configuration says about one table; empty means that the data decides."""

    keys: tuple[str, ...] = ()
    sequence_by: tuple[str, ...] = ()
    timestamp: str | None = None
    columns: Mapping[str, DataType] = field(default_factory=dict)
    evolution: SchemaEvolution = field(default_factory=SchemaEvolution)
    excluded: tuple[str, ...] = ()

    @classmethod
    def of(cls, dataset: ResolvedDataset) -> TableSettings:
        """The part of a dataset's settings that reading needs."""
        dataset = of_source(dataset)
        return cls(
            dataset.events.keys,
            dataset.events.sequence_by,
            dataset.events.timestamp,
            dataset.events.columns,
            dataset.policies.schema_evolution,
            dataset.events.except_columns,
        )


@dataclass(frozen=True, slots=True)
class DebeziumScope:
    """The tables of a task.

    Attributes:
        include: globs of `schema.table` (`db.table` where the source has no schemas); case matters.
        exclude: globs that win over `include`.
        tables: settings of single tables, by `schema.table`.
        names: settings by the table's own name, for tables that are not in `tables`.
        default: settings of all others.
        placeholder: text that means that a column was not sent.
        only: read no other table than this one; None for all.
        without: tables to leave out, by `schema.table`.
        called: names that tables have since they were renamed, to the name of their dataset.
        flattening: how events were flattened; None: they are in their envelopes.
        in_force: settings of the tables that are known, with what was accepted since.
        registry: of schemas, to ask instead of the one that a landed batch names.
    """

    include: tuple[str, ...] = ("*",)
    exclude: tuple[str, ...] = ()
    tables: Mapping[str, TableSettings] = field(default_factory=dict)
    names: Mapping[str, TableSettings] = field(default_factory=dict)
    default: TableSettings = field(default_factory=TableSettings)
    placeholder: str = PLACEHOLDER
    only: str | None = None
    without: frozenset[str] = frozenset()
    called: Mapping[str, str] = field(default_factory=dict)
    flattening: Flattening | None = None
    in_force: Mapping[str, TableSettings] = field(default_factory=dict)
    registry: SchemaRegistry | None = None

    def includes(self, table: str) -> bool:
        """Whether the task wants this table."""
        if table in self.without or self.only not in {None, table}:
            return False
        if any(fnmatchcase(table, glob) for glob in self.exclude):
            return False
        return table in self.tables or any(fnmatchcase(table, glob) for glob in self.include)

    def settings(self, table: str) -> TableSettings:
        """The settings of a table."""
        own = self.in_force.get(table, self.tables.get(table))
        return own if own is not None else self.names.get(table.rpartition(".")[2], self.default)


def scope_of(task: StorageTask) -> DebeziumScope:
    """The tables of a task and their settings, by source table or by name."""
    by_source, by_name = {}, {}
    for dataset in task.datasets:
        settings = TableSettings.of(resolved(task, dataset))
        if dataset.source is not None:
            by_source[dataset.source] = settings
        else:
            by_name[dataset.name] = settings
    return DebeziumScope(
        include=task.include,
        exclude=task.exclude,
        tables=by_source,
        names=by_name,
        default=TableSettings.of(resolved(task, Dataset(name="discovered"))),
        flattening=_flattening(task.landing),
        registry=task.landing.schema_registry,
    )


def _flattening(landing: Delivery) -> Flattening | None:
    if not landing.flattened:
        return None
    prefix = landing.add_fields_prefix
    given = DEFAULT_PREFIX if prefix is None else prefix
    return Flattening(given, landing.add_fields, landing.wrapped)


def as_known(scope: DebeziumScope, tables: Mapping[str, KnownTable]) -> DebeziumScope:
    """The scope with the settings that are in force, and with the newer names of tables."""
    # What has become a dataset of its own is no other's new name any more.
    called = {
        table.called: source
        for source, table in tables.items()
        if table.called and table.called not in tables
    }
    in_force = {source: TableSettings.of(table.dataset) for source, table in tables.items()}
    return replace(scope, in_force=in_force, called=called)


def table_of(source: Mapping[str, Any]) -> str:
    """`schema.table`, or `db.table` where the source has no schemas.

    Raises:
        RecordError: no_dataset, when the event does not say which table it belongs to.
    """
    space = source.get("schema") or source.get("db")
    table = source.get("table") or source.get("collection")
    if not isinstance(space, str) or not isinstance(table, str) or not space or not table:
        raise RecordError("no_dataset", "the event does not name its schema (or db) and table")
    return f"{space}.{table}"
