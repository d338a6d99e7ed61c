"""Which captured tables belong to a task, and what DDL events do to them.

A DDL event can drop, make or rename a table. Only sources with a log of statements write such
events (Debezium documentation, "schema change topic": MySQL, MariaDB, Oracle, SQL Server, Db2). For
a renamed table, the `id` in `tableChanges` has the new name. Some versions of Debezium put the old
name before it; with others only the statement has it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from polynya.formats.base import KnownTable
from polynya.formats.batch import DatasetBatch
from polynya.formats.debezium.envelope import DEFAULT_PREFIX, PLACEHOLDER, Flattening
from polynya.formats.errors import RecordError
from polynya.model.config.dataset import ResolvedDataset, of_source
from polynya.model.config.evolution import Policy, SchemaChange, SchemaEvolution
from polynya.model.config.settings import Dataset, Delivery, SchemaRegistry
from polynya.model.config.task import StorageTask, resolved
from polynya.model.types import DataType

if TYPE_CHECKING:
    from polynya.formats.debezium.ddl import TableDdl


@dataclass(frozen=True, slots=True)
class _News:
    """What the last statement about the table of a dataset said, in which file."""

    file: str
    called: str
    change: SchemaChange | None = None


@dataclass(slots=True)
class SourceTables:
    """The source tables in the course of one read.

    `before` maps names that tables have since they were renamed to the names of their datasets.
    """

    before: Mapping[str, str]
    _called: dict[str, str] = field(default_factory=dict)
    _news: dict[str, _News] = field(default_factory=dict)
    _left: dict[str, str] = field(default_factory=dict)
    _dropped: dict[str, set[tuple[str, int]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._called = dict(self.before)

    @property
    def left(self) -> frozenset[str]:
        """New names that a policy takes for new tables."""
        return frozenset(self._left.values())

    @property
    def in_news(self) -> frozenset[str]:
        """Datasets whose tables something happened to."""
        return frozenset(self._news)

    def dataset(self, table: str) -> str:
        """The dataset that a table feeds."""
        return self._called.get(table, table)

    def follow(
        self,
        place: tuple[str, int],
        ddl: TableDdl,
        policies: SchemaEvolution,
        datasets: Collection[str],
    ) -> bool:
        """Note a statement about the table of a dataset; tell whether its rows are to be deleted.

        Args:
            place: file and offset of the record that told so.
            ddl: the statement.
            policies: of the dataset.
            datasets: all that there are.
        """
        file, name = place[0], self.dataset(ddl.table)
        if ddl.is_made:
            # Whatever it was before, a table has no rows when it is made. Those of a dataset whose
            # table was renamed are not meant.
            return name not in self._called.values()
        if ddl.new is not None:
            self._rename(file, name, ddl.new, policies.policy("rename_dataset"), datasets)
            return False
        policy = policies.policy("drop_dataset")
        if policy != "ignore":
            change = SchemaChange("drop_dataset", ddl.table, policy)
            self._news[name] = _News(file, ddl.table, change)
        if policy == "apply":
            self._dropped.setdefault(name, set()).add(place)
        return policy == "apply"

    def came_back(self, file: str, new: str) -> None:
        """Note that a table of no dataset got the name of one whose table was renamed away."""
        if new in self._news:
            self._is_itself(file, new)

    def _rename(
        self, file: str, name: str, new: str, policy: Policy, datasets: Collection[str]
    ) -> None:
        """Note a new name.

        Tools that change tables online rename a table away and a finished copy into its place: then
        nothing was renamed. The name of another dataset is not taken from it.
        """
        if new in self._news or new == name:
            self._is_itself(file, new)
        elif policy == "ignore":
            self._is_itself(file, name)
            if new not in datasets:
                self._left[name] = new
        elif new in datasets:
            allowed: Policy = "suspend" if policy == "apply" else policy
            change = SchemaChange("rename_dataset", new, allowed, name, new)
            self._news[name] = _News(file, name, change)
        else:
            self._is_itself(file, name)
            self._called[new] = name
            change = SchemaChange("rename_dataset", new, policy, name, new)
            self._news[name] = _News(file, new, change)

    def _is_itself(self, file: str, name: str) -> None:
        """The table of a dataset is the one that has its name."""
        news = self._news.get(name)
        change = None if news is None else news.change
        is_away = change is not None and change.kind == "rename_dataset"
        if is_away or name in self._called.values():
            self._called = {table: one for table, one in self._called.items() if one != name}
            self._news[name] = _News(file, name)
        self._left.pop(name, None)

    def forget(self, file: str) -> None:
        """Drop what a file said."""
        for places in self._dropped.values():
            places -= {place for place in places if place[0] == file}
        for name in [name for name, news in self._news.items() if news.file == file]:
            self._is_itself(file, name)
            del self._news[name]
            self._called |= {table: one for table, one in self.before.items() if one == name}

    def told(self, name: str, batch: DatasetBatch) -> DatasetBatch:
        """The batch of a dataset, with what was said of its table."""
        news = self._news.get(name)
        batch = replace(batch, dropped=frozenset(self._dropped.get(name, ())))
        if news is None:
            return batch
        changes = batch.changes if news.change is None else (*batch.changes, news.change)
        return replace(batch, changes=changes, called=news.called)


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
