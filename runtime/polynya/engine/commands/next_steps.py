"""What the next step of a derived table has to do, before it runs: all, or at most so many rows.

The snapshots of an input since the one that the last step has read tell by their summaries how many
rows they have changed at most. So a table costs its metadata and its state: no manifest and no data
file is opened. Pending changes are in these snapshots; what has landed and is not copied yet, and
what other transforms have still to compute, is not. No JVM.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any, Final

from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.table import Table

from polynya.engine.derivation import WITHOUT_KEYS, input_name
from polynya.engine.inventory import ProjectTable, tables_of
from polynya.lake.read.changed_keys import may_change, why_unknown
from polynya.lake.read.commits import changes_rows, most_changed_rows, snapshots_since
from polynya.lake.read.committed import CommittedTable
from polynya.lake.read.inspect import shape, states
from polynya.lake.read.registered_folders import folder_of
from polynya.lake.table.state import Derivation
from polynya.model.config.derived import DerivedTask
from polynya.model.config.registered import RegisteredDataset
from polynya.model.errors import PolynyaError
from polynya.model.loader import LoadedProject

#: Why the first step computes the whole query.
FIRST: Final = "it has no rows yet"
#: Why the step after an edit does.
EDITED: Final = "its query or a setting of an input changed"


@dataclass(frozen=True, slots=True)
class NextStep:
    """What is known of the next step of a derived table.

    Attributes:
        whole: why it computes the whole query, whatever changed; None where that is open.
        changed: how many rows of each input have changed at most since the last step, by
            `schema.view`; None: they are others, and their number is not known.
    """

    whole: str | None = None
    changed: Mapping[str, int | None] = field(default_factory=dict)

    @property
    def is_first(self) -> bool:
        """Whether it is the first step."""
        return self.whole == FIRST

    def in_words(self) -> str:
        """The same as a part of a sentence."""
        if self.is_first:
            return "its first step computes the whole query"
        if self.whole is not None:
            return f"its next step computes the whole query: {self.whole}"
        parts = [
            f"an unknown number of rows of {name}"
            if rows is None
            else f"at most {rows:,} row{'' if rows == 1 else 's'} of {name}"
            for name, rows in self.changed.items()
            if rows != 0
        ]
        if not parts:
            return "no row of its inputs has changed since its last step"
        return f"since its last step, {' and '.join(parts)} changed"


@dataclass(frozen=True, slots=True)
class _Input:
    """An input as it is now.

    Attributes:
        name: of its view, and `others` by which a query may read it.
        now: its newest snapshot or version; None where that is not known.
        metadata: of its table; None for a folder, whose changed rows are not counted.
        changes: tells by its summary whether a snapshot counts.
        always: why each step over it computes the whole query.
        if_changed: why one does after it has changed.
    """

    name: str
    now: int | None
    metadata: Mapping[str, Any] | None = None
    changes: Callable[[Mapping[str, Any]], bool] = changes_rows
    always: str | None = None
    if_changed: str | None = None
    others: tuple[str, ...] = ()

    def changed(self, before: int) -> tuple[int | None, str | None]:
        """How many rows have changed since then at most, and why the whole query is computed."""
        if before == self.now:
            return 0, self.always
        if self.metadata is None or self.now is None:
            return None, self.always or self.if_changed
        found = snapshots_since(self.metadata, before, self.now, self.changes)
        if isinstance(found, str):
            return None, self.always or self.if_changed or found
        if not found:
            return 0, self.always
        rows = most_changed_rows(found, of_others=self.changes is may_change)
        return rows, self.always or self.if_changed


class NextSteps:
    """The next steps of the tables of a project; each input is looked at once."""

    def __init__(self, project: LoadedProject, catalog: Catalog | None) -> None:
        self._project, self._catalog = project, catalog
        #: By the names that the state of a derived table has for them.
        self._inputs: dict[str, _Input] = {}

    def of(
        self,
        task: DerivedTask,
        last: Derivation | None,
        reads: AbstractSet[str],
        *,
        is_edited: bool,
    ) -> NextStep:
        """The next step of one table.

        Args:
            task: its transform.
            last: its last step.
            reads: the views that its query reads, by `schema.view`; its expectations may read more.
            is_edited: whether the next step computes another query, or over other columns.
        """
        if last is None:
            return NextStep(FIRST)
        if is_edited:
            return NextStep(EDITED)
        new = last.inputs.keys() - self._inputs.keys()
        self._inputs |= {**dict(self._tables(task, new)), **dict(self._registered(task, new))}
        whole: str | None = None
        changed: dict[str, int | None] = {}
        for name, before in last.inputs.items():
            found = self._inputs.get(name)
            if found is None:
                continue
            changed[found.name], why = found.changed(before)
            if why is not None and not reads.isdisjoint((found.name, *found.others)):
                whole = whole or f"{found.name}: {why}"
        return NextStep(whole, changed)

    def _tables(self, task: DerivedTask, names: Collection[str]) -> Iterator[tuple[str, _Input]]:
        """The tables of the project among some inputs."""
        for read in task.reads:
            for entry in tables_of(
                read, self._catalog, lambda one: one.relations.internal in names
            ):
                if entry.table is not None:
                    yield entry.dataset.relations.internal, _of_table(entry, entry.table)

    def _registered(
        self, task: DerivedTask, names: Collection[str]
    ) -> Iterator[tuple[str, _Input]]:
        """The registered tables among some inputs."""
        for read in task.registered:
            for dataset in read.datasets():
                if input_name(dataset) in names:
                    yield input_name(dataset), self._of_registered(dataset)

    def _of_registered(self, dataset: RegisteredDataset) -> _Input:
        name = dataset.relations.current
        if_changed = None if dataset.table.keys else WITHOUT_KEYS
        try:
            folder = folder_of(dataset, self._project.target.aws)
            if folder is not None:
                return _Input(name, folder.newest().number, if_changed=if_changed)
            assert self._catalog is not None, "a step has read one of its tables"
            table = CommittedTable.of(self._catalog.load_table(dataset.table.source))
        except (PolynyaError, NoSuchTableError):
            # The step says what is wrong with it.
            return _Input(name, None, if_changed=if_changed)
        now = 0 if table.snapshot is None else int(table.snapshot["snapshot-id"])
        return _Input(name, now, table.metadata, may_change, if_changed=if_changed)


def _of_table(entry: ProjectTable, table: Table) -> _Input:
    committed = CommittedTable.of(table)
    now = None if committed.snapshot is None else int(committed.snapshot["snapshot-id"])
    relations = entry.dataset.relations
    why = why_unknown(shape(committed, entry.dataset, states(committed)[0]))
    history = f"{relations.schema}.{relations.history_view}"
    return _Input(entry.name, now, committed.metadata, always=why, others=(history,))
