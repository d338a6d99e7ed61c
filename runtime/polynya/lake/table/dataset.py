"""One dataset's table in the hands of its owner: opening, takeover, commits, column changes.

Two processes may both believe that they own a dataset. The newer one takes over with a higher epoch
and a commit that replaces both state files; every later commit of the older one is refused
(semantics section 11).

`empty` gives a table the state that it had before its first run, in one commit. Dropping the table
would check no owner: a node that was suspended for minutes could drop the table that its successor
has filled. The commit is fenced like any other.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

import pyarrow as pa

from polynya.lake.fold.shape import Shape
from polynya.lake.fold.sql import after_additions, after_renames
from polynya.lake.iceberg.commit import CommitStep, commit_row_delta
from polynya.lake.iceberg.deletes import stage_deletes
from polynya.lake.iceberg.files import DataFile, DeleteFile
from polynya.lake.iceberg.layout import (
    columns_in_use,
    create_namespaces,
    create_table,
    grow_columns,
    is_stored_as,
    lay_out,
    missing_bounds,
    refuse_age,
    without_columns,
)
from polynya.lake.iceberg.table import IcebergTable
from polynya.lake.spark.catalog import internal_path, view_catalog
from polynya.lake.table.fence import epoch_to_take, refuse_overtaken
from polynya.lake.table.refused import refuse_fenced, refuse_stale
from polynya.lake.table.shaping import data_columns, in_force, shape_of
from polynya.lake.table.state import (
    ApplyState,
    CopyState,
    DecidedChange,
    SourceColumns,
    TableOwnership,
    TableState,
    read_state,
    stage_states,
)
from polynya.model.config.dataset import LAYOUT, ResolvedDataset, TableLayout
from polynya.model.error_catalogue.lake import (
    COLUMN_GONE,
    COLUMN_OF_OTHER_TYPE,
    FOREIGN_DELETES,
)
from polynya.model.errors import ConflictError
from polynya.model.headers import Partition
from polynya.model.names import quote_path, shown
from polynya.model.types import DataType, parse_type

if TYPE_CHECKING:
    from polynya.lake.spark.api import SparkSession


def upgrade(table: IcebergTable, snapshot: int | None, format_version: int) -> None:
    """Raise the table to a version of the format, and bound its metadata.

    `snapshot` is the current one. Raises OperationError where its deletes cannot become those of
    that version.
    """
    lacking = missing_bounds(table.properties())
    if table.format_version() < format_version:
        if snapshot is not None and table.position_deletes(snapshot) is None:
            raise FOREIGN_DELETES(where=table.name, table=table.name)
        lacking["format-version"] = str(format_version)
    if lacking:
        table.set_properties(lacking)


class BeingAppliedError(Exception):
    """An apply of the table is running; the request has to wait for its end."""


@dataclass(slots=True)
class DatasetTable:
    """The internal table of one dataset in the hands of one owner.

    `granted` is the epoch that coordination granted to the owner, None where there is none.
    `views_of` is the shape that the views in the catalog have, None when they were not read yet;
    `views_settled` tells whether they have their settled texts, None where each may.
    `before_pending` is called before a commit that leaves pending changes, with the shape that it
    gives the table: it makes views right that are so only while nothing is pending.
    """

    spark: SparkSession
    dataset: ResolvedDataset
    owner: str
    table: IcebergTable
    state: TableState
    granted: int | None = None
    epoch: int = 0
    #: Held while the state must not change before a commit.
    changing: threading.RLock = field(default_factory=threading.RLock, repr=False, compare=False)
    #: An apply failed: what is known of the table is not to be believed.
    distrusted: bool = False
    _applying: bool = False
    _awaited: bool = False
    views_of: Shape | None = None
    views_settled: bool | None = None
    before_pending: Callable[[Shape], object] = field(
        default=lambda _: None, repr=False, compare=False
    )
    _quiet: threading.Condition = field(init=False, repr=False, compare=False)
    _laid_out: tuple[TableLayout, dict[str, DataType]] | None = None
    _schema: tuple[Mapping[str, str], dict[str, DataType]] = field(default=({}, {}))

    def __post_init__(self) -> None:
        self._quiet = threading.Condition(self.changing)

    @classmethod
    def open(
        cls,
        spark: SparkSession,
        dataset: ResolvedDataset,
        owner: str,
        *,
        granted: int | None = None,
        may_create: Callable[[ResolvedDataset], None] = lambda _: None,
    ) -> DatasetTable:
        """Open the table of a dataset, created when it does not exist. Takes nothing over yet.

        `may_create` raises where it may not be created. Raises FencedError when the epoch that was
        granted does not suffice to take it over.
        """
        quoted = internal_path(spark, dataset)
        views = quote_path(view_catalog(spark), dataset.relations.schema)
        create_namespaces(spark, (quoted.rpartition(".")[0], views))
        create_table(
            spark,
            quoted,
            comment=f"Polynya internal table of {dataset.relations.schema}.{dataset.name}",
            format_version=dataset.kept.format_version,
            allowed=partial(may_create, dataset),
        )
        return cls.existing(spark, dataset, owner, granted=granted)

    @classmethod
    def existing(
        cls,
        spark: SparkSession,
        dataset: ResolvedDataset,
        owner: str = "reader",
        *,
        granted: int | None = None,
    ) -> DatasetTable:
        """Open a table that exists, without a write. Raises FencedError as `open` does."""
        quoted = internal_path(spark, dataset)
        table = IcebergTable(spark, dataset.relations.internal, quoted)
        table.refresh()
        opened = cls(spark, dataset, owner, table, read_state(table), granted)
        opened._epoch_to_take()
        return opened

    @property
    def owned(self) -> bool:
        """Whether this owner has taken the table over."""
        return self.epoch > 0

    def take_over(self) -> None:
        """Make this owner the only one whose commits succeed: the first act of one that writes.

        The table gets the format of its dataset, and the properties that a new table would have.
        Raises FencedError as `open` does.
        """
        with self.changing:
            if self.owned:
                return
            ownership = TableOwnership(self._epoch_to_take(), self.owner, uuid4().hex)
            self._commit(
                ownership,
                copy=self.state.copy,
                apply=self.state.apply,
                summary={
                    "polynya.step": "takeover",
                    "polynya.epoch": str(ownership.epoch),
                    "polynya.owner": ownership.owner,
                },
            )
            upgrade(self.table, self.state.snapshot, self.dataset.kept.format_version)
            self._lay_out(self.known_schema())

    def _epoch_to_take(self) -> int:
        ownership = self.state.ownership
        return epoch_to_take(
            ownership, owner=self.owner, granted=self.granted, table=self.table.name
        )

    def _lay_out(self, schema: Mapping[str, DataType], *, beside: bool = False) -> None:
        """Give the table the layout of its dataset. `beside`: an apply may be at work.

        Raises ConfigError when a column has a type that the layout has no use for.
        """
        layout, settings = self.dataset.layout, self.state.copy.settings
        asked = (layout, dict(schema))
        if asked == self._laid_out:
            return
        remembered = any(settings.get(name) for name in LAYOUT)
        if layout == TableLayout() and not remembered:
            return
        if beside:
            self.refuse_beside_apply()
        lay_out(self.table, layout, schema)
        self._laid_out = asked

    def take_layout_back(self) -> None:
        """Part and sort files by no column of the source, until the table grows again."""
        if self._laid_out is not None:
            lay_out(self.table, TableLayout(), {})
            self._laid_out = None

    @property
    def is_applied(self) -> bool:
        """Whether an apply is at work."""
        return self._applying

    @property
    def is_awaited(self) -> bool:
        """Whether a step that the apply at work keeps off waits for its end."""
        return self._applying and self._awaited

    @contextmanager
    def applying(self) -> Iterator[None]:
        """Be the only apply that is at work. What only appends may be committed meanwhile.

        Raises BeingAppliedError when there is one.
        """
        with self.changing:
            self.refuse_beside_apply()
            self._applying = True
        try:
            yield
        finally:
            with self.changing:
                self._applying = self._awaited = False
                self._quiet.notify_all()

    @contextmanager
    def between_applies(self, patience_seconds: float) -> Iterator[bool]:
        """Hold the table as it is, once no apply is at work: no other step is committed meanwhile.

        An apply that wants to begin waits for the end of the block, so keep it short. False,
        and nothing is held off, when an apply takes longer than the patience.
        """
        with self.changing:
            yield self._quiet.wait_for(lambda: not self._applying, patience_seconds)

    def refuse_beside_apply(self) -> None:
        """Raise BeingAppliedError while an apply is running."""
        if self._applying:
            self._awaited = True
            raise BeingAppliedError

    def commit(
        self,
        *,
        copy: CopyState | None = None,
        apply: ApplyState | None = None,
        add: Sequence[DataFile] = (),
        remove: Sequence[DataFile] = (),
        removed: pa.Table | None = None,
        deletes: Sequence[DeleteFile] = (),
        drop: Sequence[DeleteFile] = (),
        summary: Mapping[str, str],
        since: int | None = None,
        within: Any = None,
    ) -> int:
        """Commit one step with the states that change in it; the id of the new snapshot.

        To replace the file of a state is the compare-and-swap, so one must be given. `add` are
        staged files, `remove` live ones; `removed` are places of single rows that go, with the
        columns `writing.PLACES`, in live files or those of `add`; `deletes` are staged files of
        rows that go, in other data files; `drop` are delete files that nothing needs then. `since`
        is the snapshot that the step was computed from, where appends may have been committed after
        it; for `within` see `CommitStep`. Raises what `commit_row_delta` raises.
        """
        assert self.owned, "take over the table before committing"
        with self.changing:
            staged, replaced = self._staged_deletes(removed, add)
            return self._commit(
                self.ownership(),
                copy=copy,
                apply=apply,
                add=add,
                remove=remove,
                deletes=[*deletes, *staged],
                drop=[*drop, *(file for file in replaced if file not in drop)],
                summary=summary,
                since=since,
                within=within,
            )

    def _staged_deletes(
        self, removed: pa.Table | None, add: Sequence[DataFile]
    ) -> tuple[list[DeleteFile], list[DeleteFile]]:
        """Delete files for rows that go, and live ones that they replace."""
        if removed is None or self.state.snapshot is None:
            return [], []
        return stage_deletes(self.table, self.state.snapshot, removed, add)

    def commit_copy_state(
        self, copy: CopyState, step: str, remove: Sequence[DataFile] = ()
    ) -> None:
        """Commit a new copy state by itself; `remove` are files that go in the same commit."""
        self.commit(copy=copy, remove=remove, summary={"polynya.step": step})

    def _commit(
        self,
        ownership: TableOwnership,
        *,
        copy: CopyState | None,
        apply: ApplyState | None,
        summary: Mapping[str, str],
        add: Sequence[DataFile] = (),
        remove: Sequence[DataFile] = (),
        deletes: Sequence[DeleteFile] = (),
        drop: Sequence[DeleteFile] = (),
        since: int | None = None,
        within: Any = None,
    ) -> int:
        if any(file.partition == Partition.CHANGES for file in add):
            self.before_pending(self.shape(copy=copy))
        before = self.state
        after = stage_states(self.table, before, ownership, copy=copy, apply=apply)
        step = CommitStep(
            commit_id=ownership.commit,
            based_on=before.snapshot,
            add=[*add, *after.new_files(before)],
            remove=[*remove, *before.new_files(after)],
            deletes=deletes,
            drop=drop,
            summary=summary,
            since=since,
            within=within,
        )
        try:
            committed = commit_row_delta(self.table, step)
        except ConflictError as error:
            refuse_fenced(self.table, self.granted)
            refuse_stale(self.table, before, error)
            raise
        # Before the state is read again: an owner that was overtaken since must get the error.
        self.epoch = ownership.epoch
        if committed.is_step_alone:
            self.state = replace(after, snapshot=committed.snapshot)
        else:
            self.reload()
        return committed.snapshot

    def ownership(self) -> TableOwnership:
        """Ownership to write into the next states, with a new commit marker."""
        return TableOwnership(self.epoch, self.owner, uuid4().hex)

    def reload(self) -> None:
        """Read the state again; raises ConflictError when another owner took the table over."""
        self.table.refresh()
        self.state = read_state(self.table)
        self.views_of = None
        if self.owned:
            refuse_overtaken(self.state.ownership, self.epoch, self.table.name)

    @property
    def has_pending(self) -> bool:
        """Whether changes wait for an apply."""
        return bool(self.table.files(Partition.CHANGES, self.state.snapshot))

    @property
    def reading(self) -> ResolvedDataset:
        """The dataset as its next batch is read: with the policies that were accepted for it."""
        return in_force(self.dataset, self.state.copy)

    def known_schema(self) -> dict[str, DataType]:
        """Every source column seen so far and its type, excluded columns too."""
        texts = self.state.copy.columns.schema
        if self._schema[0] != texts:
            self._schema = (texts, {name: parse_type(text) for name, text in texts.items()})
        return dict(self._schema[1])

    def known_keys(self) -> tuple[str, ...]:
        """The key columns that the table was built with, empty before there are any."""
        return tuple(self.state.copy.columns.keys)

    def grow(self, schema: Mapping[str, DataType], decided: Sequence[DecidedChange] = ()) -> None:
        """Make the table hold all data columns of `schema`, and let those that it has follow.

        `decided` are the changes of the source that this carries out.
        """
        refuse_age(self.dataset.kept.retention, schema, self.table.name)
        # Not what the state knows counts but what the table has: a crash between schema change and
        # data leaves columns that the state does not know yet, and a column that was excluded until
        # now is known and not there.
        self.refuse_lost_columns()
        stored = self.table.column_names()
        shown = data_columns(self.dataset, schema)
        after = {name: kind for name, kind in schema.items() if name in shown or name in stored}
        known = self.known_schema()
        self._refuse_added_columns({n: after[n] for n in after if n in stored and n not in known})
        before = {name: known.get(name, kind) for name, kind in after.items() if name in stored}
        if before != after:
            self.refuse_beside_apply()
        if grow_columns(self.spark, self.table, before, after):
            self._record_schema(schema, decided)
        self._lay_out(schema, beside=True)

    def refuse_lost_columns(self) -> None:
        """Raise OperationError when a column with values is gone, which no own step did."""
        stored = self.table.column_names()
        for name in data_columns(self.dataset, self.known_schema()):
            # A column that was excluded until now is known, and the table never had it.
            if name not in stored and self.table.has_had(name):
                raise COLUMN_GONE(where=self.table.name, table=self.table.name, column=shown(name))

    def _refuse_added_columns(self, columns: Mapping[str, DataType]) -> None:
        """Raise OperationError for columns that are there unasked, and of another type."""
        for name, kind in columns.items():
            if not is_stored_as(self.spark, self.table, name, kind):
                raise COLUMN_OF_OTHER_TYPE(
                    where=self.table.name, table=self.table.name, column=shown(name), wanted=kind
                )

    def _record_schema(
        self, schema: Mapping[str, DataType], decided: Sequence[DecidedChange]
    ) -> None:
        """Commit the state with the new schema: a snapshot is read with the columns of its time."""
        columns = self.state.copy.columns
        following = replace(
            columns,
            schema={name: str(datatype) for name, datatype in schema.items()},
            unsent_texts=after_additions(columns.unsent_texts, set(schema) - set(columns.schema)),
        )
        copy = replace(self.state.copy, columns=following).with_shape_changes(decided)
        self.commit_copy_state(copy, "schema")

    def stored_shape(
        self,
        schema: Mapping[str, DataType] | None = None,
        keys: tuple[str, ...] | None = None,
        copy: CopyState | None = None,
    ) -> Shape:
        """The same as `shape`, with the columns that are excluded now but still stored.

        A rewrite of a stored version needs them: what is stored stays stored.
        """
        copy = copy or self.state.copy
        schema = schema if schema is not None else self.known_schema()
        hidden = [
            name
            for name in self.dataset.events.except_columns
            if name in schema and is_stored_as(self.spark, self.table, name, schema[name])
        ]
        keys = keys if keys is not None else tuple(copy.columns.keys)
        return shape_of(self.dataset, copy, schema, keys, hidden=hidden)

    def shape(
        self,
        schema: Mapping[str, DataType] | None = None,
        keys: tuple[str, ...] | None = None,
        copy: CopyState | None = None,
    ) -> Shape:
        """Shape of the dataset, from its state or from a batch that is about to be written."""
        copy = copy or self.state.copy
        return shape_of(
            self.dataset,
            copy,
            schema if schema is not None else self.known_schema(),
            keys if keys is not None else tuple(copy.columns.keys),
        )


#: The state files go with the new state.
_EMPTIED: Final = tuple(
    partition for partition in Partition if partition is not Partition.ASSET_STATE
)


def empty(target: DatasetTable, *, behind: bool = False) -> None:
    """Remove all rows, columns of the source, positions and decisions of a table that was taken.

    What was read is forgotten, so the next step reads all that has landed. Columns by which files
    are, or were, partitioned or sorted keep their types: Iceberg needs them to read those files.
    Earlier snapshots keep what they had until they expire. `behind`: see `SourcePosition`.

    Raises what `DatasetTable.commit` raises, and BeingAppliedError while an apply is at work. Then
    nothing was changed.
    """
    with target.changing:
        target.refuse_beside_apply()
        target.take_layout_back()
        snapshot = target.state.snapshot
        files = [file for part in _EMPTIED for file in target.table.files(part, snapshot)]
        deletes = target.table.position_deletes(snapshot) if snapshot is not None else None
        schema = target.state.copy.columns.schema
        kept = columns_in_use(target.table)
        columns = SourceColumns(
            schema={name: kind for name, kind in schema.items() if name in kept}
        )
        target.commit(
            copy=CopyState(columns=columns).with_behind(behind=behind),
            apply=ApplyState(),
            remove=files,
            drop=list(deletes or ()),
            summary={"polynya.step": "recreate", "polynya.removed-files": str(len(files))},
            within=without_columns(target.table, schema.keys() - kept),
        )
        target.reload()


def change_columns(
    target: DatasetTable,
    renames: Mapping[str, str],
    drops: Collection[str],
    *,
    of_empty: bool = False,
    decided: Sequence[DecidedChange] = (),
) -> None:
    """Rename columns (old name → new name), drop others, and commit the state that knows of it.

    A crash in between leaves columns that the state knows by their old names: done again, the part
    that was done is left out. No file is partitioned or sorted by a column to drop
    (`columns_in_use`), unless the table is empty, which `of_empty` says. `decided` are the changes
    of the source that this carries out.
    """
    target.refuse_beside_apply()
    if of_empty:
        target.take_layout_back()
    stored = target.table.column_names()
    update = target.table.java.updateSchema()
    for old, new in renames.items():
        if old in stored and new not in stored:
            update.renameColumn(old, new)
    for name in drops:
        if name in stored:
            update.deleteColumn(name)
    target.table.commit_change(update)
    before = target.state.copy.columns
    columns = replace(
        before,
        schema={renames.get(n, n): kind for n, kind in before.schema.items() if n not in drops},
        keys=[renames.get(name, name) for name in before.keys],
        unsent=sorted(renames.get(name, name) for name in before.unsent if name not in drops),
        unsent_texts=after_renames(before.unsent_texts, renames),
        declared=[renames.get(name, name) for name in before.declared if name not in drops],
        former={renames.get(n, n): kinds for n, kinds in before.former.items() if n not in drops},
        source=before.source
        and {renames.get(n, n): kind for n, kind in before.source.items() if n not in drops},
    )
    copy = replace(target.state.copy, columns=columns).with_shape_changes(decided)
    target.commit_copy_state(copy, "schema")
