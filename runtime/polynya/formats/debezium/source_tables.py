"""What happens to the source tables of a capture: which dataset they feed, renamed or dropped."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from polynya.formats.batch import DatasetBatch
from polynya.formats.debezium.ddl import TableDdl
from polynya.model.config.evolution import Policy, SchemaChange, SchemaEvolution


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
