"""Transforms: tables that follow a query over the tables of other tasks.

A step reads each input at one snapshot. A table that the query reads both itself and through
another transform is read as that transform has read it, so that the result is the query over one
state of the inputs.

A step rereads an input after a commit that may have changed its rows. Applies and maintenance do
not change the rows of a live view, so they do not trigger a step.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Final

import pyarrow as pa

from polynya.derived.affected import plan_of
from polynya.derived.expectations import referenced
from polynya.derived.inputs import QueryInput, dataset_named
from polynya.derived.plans import OF_REGISTERED, FullPlan, Plan, TotalsPlan
from polynya.derived.schema import DerivedInput
from polynya.derived.tables import ParsedQuery
from polynya.engine.context import EngineContext
from polynya.engine.dataset import OpenTables, WorkingDataset
from polynya.engine.derivation import (
    InputTable,
    described,
    names_read,
    parsed_over,
    read_through,
    shows_inputs,
    snapshots_to_read,
)
from polynya.engine.ledger import datasets_of
from polynya.engine.maintenance import MaintenanceUnit
from polynya.engine.tasks.affected_rows import (
    AffectedRows,
    ChangedTotals,
    InputStates,
    InputViews,
    RestrictedStep,
    TemporaryViews,
    affected_keys,
    keys_of_totals,
    keys_with_other_values,
)
from polynya.engine.tasks.expectations import ResultJudge
from polynya.engine.tasks.few_inputs import FewInputRows
from polynya.engine.tasks.registered_inputs import RegisteredInputs
from polynya.engine.unit import IDLE, TOO_LONG, StepResult, TimeSlice
from polynya.lake.copy.derived_result import result_digest
from polynya.lake.copy.recompute import confirm, recompute, stored_rows
from polynya.lake.copy.stored_search import StoredSearch
from polynya.lake.errors import machine_error
from polynya.lake.read.changed_keys import changed_keys
from polynya.lake.read.plans import why_refused
from polynya.lake.read.registered import task_error
from polynya.lake.spark.api import DataFrame, Py4JError, PySparkException, SparkSession
from polynya.lake.spark.catalog import internal_path
from polynya.lake.table.dataset import DatasetTable
from polynya.lake.table.state import Derivation, DerivationCosts
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.derived import DerivedTask
from polynya.model.config.registered import RegisteredDataset
from polynya.model.config.task import StorageTask
from polynya.model.documents.yaml import dotted
from polynya.model.error_catalogue.derived import (
    QUERY_NOT_INCREMENTAL,
    QUERY_REFUSED,
)
from polynya.model.errors import PolynyaError
from polynya.observe.engine import DerivedTableWaits, ExpectationFailed, RowsDerived

log = logging.getLogger(__name__)

#: Seconds between two looks at the inputs.
_PAUSE_SECONDS: Final = 1.0


def answer_of(spark: SparkSession, name: str, text: str, views: Sequence[str]) -> DataFrame:
    """What a query of the table `name` over some views returns.

    Raises OperationError for one that does not only read these.
    """
    refused = why_refused(spark, text, views)
    if refused is not None:
        raise QUERY_REFUSED(
            where=name,
            reason=refused,
            fix="a query only computes from the tables of its transform",
        )
    return spark.sql(text)


def refused_by_spark(name: str, error: PySparkException | Py4JError) -> PolynyaError:
    """What Spark has against the query of a table, or what the machine did."""
    fault = task_error(error) or machine_error(error)
    if fault is not None:
        return fault
    reason = str(error).strip().splitlines()[0][:500]
    return QUERY_REFUSED(
        where=name,
        reason=reason,
        fix="correct the query; `polynya query` answers the same SQL",
    )


class DerivedUnit:
    """Keeps one table up to date with its query."""

    def __init__(self, context: EngineContext, task: DerivedTask, dataset: ResolvedDataset) -> None:
        self._context, self._task, self._dataset = context, task, dataset
        self._tables = OpenTables(context, task)
        self._maintenance = MaintenanceUnit(dataset)
        self._query = task.query_of(dataset.name)
        self._name = dataset.relations.current
        #: The tables that the query reads, and with them those that relationships name; None before
        #: they are known.
        self._read: tuple[str, ...] = ()
        self._named: tuple[str, ...] | None = None
        self._inputs: dict[str, DatasetTable] = {}
        self._registered = RegisteredInputs(context)
        #: Snapshots of inputs that show the rows of the last step.
        self._same: dict[str, int] = {}

    def step(self, time_slice: TimeSlice) -> StepResult:
        """Derive the table again if its inputs or its query changed."""
        with self._tables.in_use(), self._inputs_in_use():
            table = self._tables.of(self._dataset)
            result = table.copy_if_allowed(lambda: self._follow(table, time_slice))
            return self._maintenance.request_if_due(table, result)

    @contextmanager
    def _inputs_in_use(self) -> Iterator[None]:
        """Open the inputs anew after a failure."""
        try:
            yield
        except BaseException:
            self._named, self._inputs, self._same = None, {}, {}
            self._registered = RegisteredInputs(self._context)
            raise

    def _follow(self, table: WorkingDataset, time_slice: TimeSlice) -> StepResult:
        pause = IDLE if time_slice.at_once else StepResult(wait_seconds=_PAUSE_SECONDS)
        waits_for = self._open_inputs()
        if waits_for is not None:
            if self._context.is_news(f"{table.name} waits", waits_for):
                table.tell(DerivedTableWaits(subject=table.name, table=waits_for))
            return pause
        before = table.table.state.copy.derivation
        snapshots = self._snapshots()
        # A query that reads no table may have been edited, too.
        seen = bool(snapshots) and snapshots == self._same
        if snapshots is None or (before is not None and seen):
            return pause
        now = self._context.clock.now()
        derivation = Derivation(self._digest(), snapshots, now.isoformat())
        if before is not None and self._is_current(before, derivation):
            return pause
        if not time_slice.long:
            return TOO_LONG
        self._derive(table, derivation, before)
        self._same = dict(snapshots)
        return time_slice.more

    def _derive(
        self, table: WorkingDataset, derivation: Derivation, before: Derivation | None
    ) -> None:
        """Commit the result over the snapshots of `derivation`; `before` is that of the last step.

        Raises OperationError for a query that does not only read its inputs, or that Spark refuses.
        """
        clock = self._context.clock
        began = clock.monotonic()
        costs = DerivationCosts() if before is None else before.costs
        now = clock.now()
        try:
            with (
                TemporaryViews(self._context.spark) as views,
                StoredSearch(table.table, self._context.applier, now) as search,
            ):
                inputs = self._input_views(views, derivation, before)
                judge = ResultJudge(
                    self._context.spark,
                    self._dataset,
                    self._query,
                    inputs,
                    now,
                    self._place_of_expectation,
                )
                affected = self._affected(views, inputs, derivation, before, table.table)
                if isinstance(affected, AffectedRows) and not judge.puts_rows_aside:
                    search.start(affected.keys)
                step = self._step(views, inputs, affected)

                def derived() -> Derivation:
                    seconds = round(clock.monotonic() - began, 3)
                    known = replace(costs, whole=seconds)
                    if step.affected is not None:
                        known = replace(costs, keyed=seconds, share=step.share)
                    return replace(derivation, costs=known)

                judged = judge.judge if self._query.expect else None
                result = step.rows if step.text is None else self._result(views, step.text)
                if result is None:
                    done = confirm(table.table, derived(), now=now, judge=judged)
                else:
                    done = recompute(
                        table.table,
                        self._context.applier,
                        result,
                        derived,
                        now=now,
                        search=search,
                        affected=step.affected,
                        judge=judged,
                        divide=judge.divide if judge.puts_rows_aside else None,
                    )
        except (PySparkException, Py4JError) as error:
            raise refused_by_spark(self._name, error) from error
        how = step.how
        if step.affected is not None and step.affected.columns:
            by_spark = step.by_spark or done.by_spark
            log.debug("%s: %s", table.name, by_spark or "all rows were found in memory")
            computed = step.rows is not None and judged is None
            if by_spark is None:
                how += ", computed in memory" if computed else ", in memory"
        table.publish(settle=True)
        for name, says in done.failed.items():
            table.tell(ExpectationFailed(subject=table.name, expectation=name, reason=says))
        changed = {} if done.applied is None else done.applied.figures.counts()
        table.tell(
            RowsDerived(
                subject=table.name,
                rows=done.rows,
                rows_quarantined=done.quarantined,
                changes=changed,
                seconds=round(clock.monotonic() - began, 3),
                how=how,
            )
        )

    def _input_views(
        self, views: TemporaryViews, derivation: Derivation, before: Derivation | None
    ) -> InputViews:
        """The quoted view of each input over its snapshot or version, by its name in the query."""
        checked = before is not None and before.query == derivation.query
        known = before.inputs if before is not None and checked else {}
        self._registered.find_changes(known)
        frames = self._registered.frames(views, known)
        return InputViews(views, {**self._views(derivation.inputs), **frames})

    def _step(
        self,
        views: TemporaryViews,
        inputs: Mapping[str, str],
        affected: AffectedRows | ChangedTotals | str,
    ) -> RestrictedStep:
        """What is computed: the rows with affected keys, or all."""
        query = self._parsed()
        if isinstance(affected, str):
            return RestrictedStep(query.over(inputs), affected)
        return affected.step(views, query, inputs)

    def _affected(
        self,
        views: TemporaryViews,
        now: Mapping[str, str],
        derivation: Derivation,
        before: Derivation | None,
        target: DatasetTable,
    ) -> AffectedRows | ChangedTotals | str:
        """The keys that are affected since the last step, or why all is computed."""
        # One that has to be incremental is refused before its first step.
        plan = self._plan()
        if before is None:
            return "it has no rows yet"
        edited = before.query != derivation.query
        if edited or before.inputs.keys() != derivation.inputs.keys():
            return "its query or a setting of an input changed"
        if isinstance(plan, FullPlan):
            return plan.reason
        changed: dict[str, pa.Table] = {}
        share = 0.0
        for name in self._read:
            table = self._inputs.get(name)
            if table is None:
                keys = self._registered.changed_keys(name)
            else:
                internal = table.dataset.relations.internal
                versions = before.inputs[internal], derivation.inputs[internal]
                keys = changed_keys(table.table, table.shape(), *versions)
            if isinstance(keys, str):
                return f"{name}: {keys}"
            changed[name] = keys
            of_table = (
                self._registered.share(name)
                if table is None
                else keys.num_rows / max(1, table.table.rows())
            )
            share = max(share, of_table)
        why = before.costs.why_whole(share) if self._query.incremental == "auto" else None
        if why is not None:
            return why
        states = self._states(views, now, before, changed)
        if isinstance(states, str):
            return states
        if isinstance(plan, TotalsPlan):
            return self._changed_totals(views, plan, states, share, target)
        few = FewInputRows(self._inputs, before.inputs, derivation.inputs)
        keys, by_spark = few.affected_keys(plan, states.changed), None
        if isinstance(keys, str):
            by_spark, keys = keys, affected_keys(views, plan, states)
        known = target.known_schema()
        return (
            keys if isinstance(keys, str) else AffectedRows(plan, keys, share, few, known, by_spark)
        )

    def _states(
        self,
        views: TemporaryViews,
        now: Mapping[str, str],
        before: Derivation,
        changed: Mapping[str, pa.Table],
    ) -> InputStates | str:
        """The inputs before and now, with the keys that changed; or why these are not known."""
        registered = {name: one for name, one in changed.items() if name in self._registered}
        views_before = self._views(before.inputs) | self._registered.frames_before(before.inputs)
        rows = {name: self._registered.changed_rows(views, name) for name in registered}
        differing = {name: both for name, both in rows.items() if both is not None}
        states = InputStates(InputViews(views, views_before), now, changed, differing)
        fewer: dict[str, pa.Table] = {}
        for name, keys in registered.items():
            column = self._registered.changed_by(name)
            if column is None or not keys.num_rows:
                continue
            found = keys_with_other_values(views, states, name, column)
            if isinstance(found, str):
                return f"{name}: {found}"
            fewer[name] = found
        return replace(states, changed={**changed, **fewer})

    def _changed_totals(
        self,
        views: TemporaryViews,
        plan: TotalsPlan,
        states: InputStates,
        share: float,
        target: DatasetTable,
    ) -> ChangedTotals | str:
        """What changed rows add to the totals of one row, or why all is computed."""
        keys = keys_of_totals(views, plan, states)
        if isinstance(keys, str):
            return keys
        before = {name: states.state_before(name) for name in states.changed}
        stored = f"SELECT * FROM {views.of(stored_rows(target, plan.statement.columns))}"
        run = partial(self._result, views)
        return ChangedTotals(plan, keys, before, stored, run, share)

    def _plan(self) -> Plan:
        """By which columns a step is restricted, or why it is not."""
        if self._query.incremental == "full":
            return FullPlan("`incremental: full`")
        inputs = self._derived_inputs()
        plan: Plan = plan_of(self._parsed(), inputs, self._dataset.events.keys)
        keyless = any(name in self._registered and not one.keys for name, one in inputs.items())
        if keyless and self._query.incremental == "strict":
            plan = OF_REGISTERED
        if isinstance(plan, FullPlan) and self._query.incremental == "strict":
            raise QUERY_NOT_INCREMENTAL(where=self._name, reason=plan.reason)
        return plan

    def _open_inputs(self) -> str | None:
        """Open the tables that the query names; the first one that has no columns yet, if any.

        Raises OperationError for a table that the transform does not have.
        """
        if self._named is None:
            self._read = self._names()
            self._named = tuple(dict.fromkeys([*self._read, *referenced(self._query.expect)]))
        for name in self._named:
            opened = self._inputs.get(name)
            if name in self._registered:
                continue
            if opened is None:
                dataset = self._dataset_of(name)
                if isinstance(dataset, RegisteredDataset):
                    self._registered.add(name, dataset)
                    continue
                if dataset is None or not self._exists(dataset):
                    return name
                opened = DatasetTable.existing(self._context.spark, dataset)
                self._inputs[name] = opened
            else:
                self._look_again(opened)
            if opened.state.snapshot is None or not opened.shape().data:
                return name
        self._registered.look()
        return None

    def _names(self) -> tuple[str, ...]:
        """The tables that the query reads, as it names them."""

        def datasets() -> list[QueryInput]:
            found: list[QueryInput] = [*self._registered_datasets()]
            return found + [one for task in self._task.reads for one in self._datasets(task)[0]]

        return names_read(self._query, datasets, self._name)

    def _parsed(self) -> ParsedQuery:
        """The query over its inputs, which are open."""
        return parsed_over(self._query, self._derived_inputs(), self._name)

    def _derived_inputs(self) -> dict[str, DerivedInput]:
        """What the query may read, by its name in the query; the inputs are open."""
        inputs = described(self._tables_read()) | self._registered.described()
        return {name: one for name, one in inputs.items() if name in self._read}

    def _tables_read(self) -> dict[str, InputTable]:
        """The inputs by their names in the query, as they were seen last; each has a commit."""
        return {
            name: InputTable(
                table.dataset,
                table.state.snapshot,
                table.state.copy,
                table.shape,
                table.table.kept_metadata,
            )
            for name, table in self._inputs.items()
            if table.state.snapshot is not None
        }

    def _place_of_expectation(self, number: int) -> str:
        return f"{self._name}: {dotted(self._query.path_of_expectation(number))}"

    def _look_again(self, table: DatasetTable) -> None:
        """See the commits of others; the state is read only if there is one."""
        before = table.state.snapshot
        table.table.refresh()
        if table.table.snapshot_id() != before:
            table.reload()

    def _exists(self, dataset: ResolvedDataset) -> bool:
        spark = self._context.spark
        return bool(spark.catalog.tableExists(internal_path(spark, dataset)))

    def _registered_datasets(self) -> Iterator[RegisteredDataset]:
        for task in self._task.registered:
            yield from task.datasets()

    def _dataset_of(self, name: str) -> QueryInput | None:
        """The dataset of a name in the query; None for one that its task has not found yet.

        Raises OperationError for an unknown or ambiguous name.
        """
        datasets: list[QueryInput] = [*self._registered_datasets()]
        finds_more = False
        for task in self._task.reads:
            of_task, may_grow = self._datasets(task)
            datasets += of_task
            finds_more = finds_more or may_grow
        return dataset_named(
            name,
            datasets,
            where=self._name,
            may_grow=finds_more,
            in_flow=bool(self._query.flow),
        )

    def _datasets(self, task: StorageTask) -> tuple[list[ResolvedDataset], bool]:
        """The datasets of a task, and whether its first run may still find others."""
        return datasets_of(self._context.spark, task)

    def _snapshots(self) -> dict[str, int] | None:
        """The snapshot at which each input is read, by the name of its internal table.

        Likewise the version of a registered table, by `input_name`.

        None while two transforms that the query reads have read a table at two snapshots: the one
        that is behind has not followed yet.
        """
        tables = list(self._tables_read().values())
        read = read_through(tables)
        chosen = snapshots_to_read(tables, read)
        registered = None if chosen is None else self._registered.choose(read)
        return None if chosen is None or registered is None else chosen | registered

    def _is_current(self, before: Derivation, now: Derivation) -> bool:
        """Whether the table shows what the query returns over these snapshots."""
        if not shows_inputs(before, now, self._tables_read().values(), self._same):
            return False
        if self._registered.changed(before.inputs, now.inputs) is not None:
            return False
        self._same = dict(now.inputs)
        return True

    def _views(self, snapshots: Mapping[str, int]) -> dict[str, str]:
        """The view of each input, by its name in the query, over its snapshot."""
        return {
            name: table.view(name, self._inputs[name].table.at(snapshots[table.internal]))
            for name, table in self._tables_read().items()
        }

    def _digest(self) -> str:
        """What the result depends on besides rows."""
        texts = {name: table.view(name) for name, table in self._tables_read().items()}
        texts |= self._registered.texts()
        keys = self._dataset.events.keys
        return result_digest(self._parsed().text, keys, texts, self._query.expect)

    def _result(self, views: TemporaryViews, text: str) -> DataFrame:
        """What a query over some views returns. Raises OperationError as `answer_of`."""
        return answer_of(self._context.spark, self._name, text, views.plain_names)
