"""Bring a derived table up to date: compare what its query returns with Current, commit the rest.

The differences are the events of a reload (`reload.py`), and one commit of the ordinary apply takes
them in, next to the snapshots of the inputs that the query has read. So history, soft deletes, live
views, the fence and maintenance are those of every table, and a killed step is done again.

Each step has a place of its own in the order of events: its number.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import TypeAlias

import pyarrow as pa

from polynya.lake.apply.apply import Applier, ApplyResult
from polynya.lake.apply.run import ApplyRun, CopyParts
from polynya.lake.copy.affected import AffectedKeys
from polynya.lake.copy.compared_rows import ComparedRows, CountedKeys, FewRows, few_rows, in_spark
from polynya.lake.copy.derived_result import result_schema
from polynya.lake.copy.first_rows import first_rows, forget_columns, holds_nothing, refuse
from polynya.lake.copy.put_aside import DividedRows, QuarantineChange, quarantine_change
from polynya.lake.copy.reload import ChangeCriteria, current_rows, differences
from polynya.lake.copy.stored_search import StoredSearch, next_step
from polynya.lake.fold.shape import Shape
from polynya.lake.iceberg.layout import columns_in_use
from polynya.lake.iceberg.writing import stage
from polynya.lake.spark.api import DataFrame
from polynya.lake.table.books import with_inserted
from polynya.lake.table.dataset import DatasetTable, change_columns
from polynya.lake.table.ownership import enter
from polynya.lake.table.state import CopyState, Derivation, Reloading
from polynya.model.config.dataset import recorded
from polynya.model.error_catalogue.derived import RESULT_KEYS_WRONG
from polynya.model.error_catalogue.lake import KEYS_CHANGED
from polynya.model.errors import OperationError
from polynya.model.names import literal, quote
from polynya.model.types import DataType

#: Judges a result by its expectations before it is committed: rows that the step has computed
#: (None: it computed none), what makes all rows of the table after the step (None: these are all),
#: and their columns. Returns by what the result fails each expectation that only warns, None where
#: it passes. Raises OperationError for a result that must not be committed.
Judge: TypeAlias = Callable[
    [DataFrame | None, Callable[[], DataFrame] | None, Mapping[str, DataType]],
    Mapping[str, str | None],
]


#: Divides settled rows, with their columns, into those that the table shows and those that go to
#: its quarantine. Raises OperationError for an expectation that cannot be judged.
Divide: TypeAlias = Callable[[DataFrame, Mapping[str, DataType]], DividedRows]


@dataclass(frozen=True, slots=True)
class Recomputed:
    """What one step did.

    `rows` is how many the query returned, but for `quarantined` ones; `applied` is the apply, None
    without differences, and `failed` says by what the rows fail expectations that do not stop.
    `by_spark` says why Spark has compared the rows; None: they were in memory.
    """

    rows: int
    applied: ApplyResult | None
    failed: Mapping[str, str]
    quarantined: int = 0
    by_spark: str | None = None


def recompute(
    target: DatasetTable,
    applier: Applier,
    result: DataFrame | pa.Table,
    derivation: Callable[[], Derivation],
    *,
    now: datetime,
    search: StoredSearch,
    affected: AffectedKeys | None = None,
    judge: Judge | None = None,
    divide: Divide | None = None,
) -> Recomputed:
    """Commit what differs between `result` and Current, and what it was derived from.

    `result` has the rows of the query that have `affected` keys; None: all of them. Where it is in
    memory already it has columns and types of the table. `derivation` names query and snapshots; it
    is asked for once the result is computed and compared. `search` is that of this table and time;
    where it looks, these few rows are compared in memory.

    Raises OperationError, and leaves the table as it is: a column has a type that the table cannot
    hold or take, the keys do not tell the rows apart, or `judge` refuses the rows. Raises what a
    commit raises.
    """
    keys = target.dataset.events.keys
    is_first = affected is None and divide is None and holds_nothing(target)
    if is_first and not isinstance(result, pa.Table):
        return _begin(target, result, derivation, now=now, judge=judge)
    schema = _result_schema(target, result)
    search.enter()
    _refuse_other_keys(target, keys)
    rows = _typed(result, schema)
    with ApplyRun.of(target, target.shape(schema, keys)) as run:
        step = next_step(target, now)
        few = few_rows(run, search, rows, schema)
        held: FewRows | DataFrame = (
            run.settle(in_spark(target.spark, rows)) if isinstance(few, str) else few
        )
        divided = None
        if divide is not None:
            divided = divide(_frame(held, target), schema)
            held = divided.passing
        # Nothing of the table changes before it is known that the result is not refused.
        counted = held.counted if isinstance(held, FewRows) else _counted(held, keys)
        count = _refuse_wrong_keys(target, counted, keys)
        verdicts: dict[str, str | None] = {}
        if judge is not None:
            computed = _frame(held, target)
            whole = None if affected is None else partial(_whole, run, computed, affected)
            verdicts |= judge(computed, whole, schema)
        if divided is not None:
            verdicts |= divided.verdicts
        empty = _follow_columns(target, schema)
        target.grow(schema)
        shape = target.shape(schema | empty, keys)
        nulls = [f"CAST(NULL AS {kind}) AS {quote(name)}" for name, kind in empty.items()]
        by_query = partial(_by_query, run, held, nulls, shape, step, affected)
        changes, by_spark = _compared(replace(run, shape=shape), few, step, by_query)
        following = _state_after(target, schema | empty, keys, derivation())
        following = following.with_verdicts(verdicts, now)
        aside = None if divided is None else divided.aside
        aside = None if aside is None else aside.selectExpr("*", *nulls)
        quarantine = quarantine_change(run, shape, aside, affected)
        if quarantine is not None:
            following = quarantine.booked(following)
        failing = 0 if quarantine is None else quarantine.failing
        if not (found := changes.count()):
            _commit_unchanged(target, following, quarantine)
            return Recomputed(count, None, _failed(verdicts), failing, by_spark)
        parts = _parts(changes, found, following, quarantine, rows=count)
        applied = applier.apply(target, shape, reason="its inputs changed", now=now, fresh=parts)
    return Recomputed(count, applied, _failed(verdicts), failing, by_spark)


def _typed(result: DataFrame | pa.Table, schema: Mapping[str, DataType]) -> DataFrame | pa.Table:
    """A result in the types of its table; one in memory is."""
    if isinstance(result, pa.Table):
        return result
    return result.selectExpr(
        *(f"CAST({quote(name)} AS {kind}) AS {quote(name)}" for name, kind in schema.items())
    )


def _begin(
    target: DatasetTable,
    result: DataFrame,
    derivation: Callable[[], Derivation],
    *,
    now: datetime,
    judge: Judge | None,
) -> Recomputed:
    """Commit the first rows of a table."""
    keys, began = target.dataset.events.keys, time.monotonic()
    enter(target)
    forget_columns(target)
    schema = _result_schema(target, result)
    target.grow(schema)
    shape = target.shape(schema, keys)
    with first_rows(target, shape, _typed(result, schema), next_step(target, now), now) as first:
        try:
            _refuse_wrong_keys(target, _counted(first.rows, keys), keys)
            verdicts = {} if judge is None else judge(first.rows, None, schema)
        except OperationError:
            refuse(target, first)
            raise
        figures = first.figures
        following = _state_after(target, schema, keys, derivation()).with_verdicts(verdicts, now)
        if not figures.current:
            target.commit_copy_state(following, "derive")
            return Recomputed(0, None, _failed(verdicts))
        following = with_inserted(target, following, figures.current, now)
        rows_derived = str(figures.current)
        summary = {"polynya.step": "derive", "polynya.rows-derived": rows_derived}
        snapshot = target.commit(copy=following, add=first.files, summary=summary)
    seconds = round(time.monotonic() - began, 3)
    applied = ApplyResult(snapshot, "it had no rows yet", seconds, figures)
    return Recomputed(figures.current, applied, _failed(verdicts))


def _compared(
    run: ApplyRun,
    few: FewRows | str,
    step: Reloading,
    by_query: Callable[[], DataFrame],
) -> tuple[ComparedRows | DataFrame, str | None]:
    """The events of a step, and why Spark has found them; `by_query` lets it do so."""
    found = few if isinstance(few, str) else few.compared(run, step)
    return (by_query(), found) if isinstance(found, str) else (found, None)


def _by_query(  # noqa: PLR0917 - all of them are bound at once
    run: ApplyRun,
    held: FewRows | DataFrame,
    nulls: Sequence[str],
    shape: Shape,
    step: Reloading,
    affected: AffectedKeys | None,
) -> DataFrame:
    rows = _frame(held, run.target).selectExpr("*", *nulls)
    return _differences(run, rows, shape, step, affected)


def _parts(
    changes: ComparedRows | DataFrame,
    found: int,
    following: CopyState,
    quarantine: QuarantineChange | None,
    *,
    rows: int,
) -> CopyParts:
    """What the apply of a step takes in: `found` events of a result of so many rows."""
    return CopyParts(
        changes.events if isinstance(changes, ComparedRows) else changes,
        None if quarantine is None else quarantine.entered,
        following,
        {"polynya.step": "derive", "polynya.rows-derived": str(rows)},
        replayed=None if quarantine is None else quarantine.left,
        count=found,
        found=changes.found if isinstance(changes, ComparedRows) else None,
    )


def _frame(rows: FewRows | DataFrame, target: DatasetTable) -> DataFrame:
    """The rows of a step in Spark."""
    return rows.frame(target.spark) if isinstance(rows, FewRows) else rows


def _commit_unchanged(
    target: DatasetTable, following: CopyState, quarantine: QuarantineChange | None
) -> None:
    """Commit a step that leaves the rows of the table as they are."""
    if quarantine is None or not quarantine:
        target.commit_copy_state(following, "derive")
        return
    left = quarantine.left.places
    target.commit(
        copy=following,
        add=stage(target.table, quarantine.entered, laid_out=False) if quarantine.new else (),
        removed=left if left.num_rows else None,
        summary={"polynya.step": "derive"},
    )


def confirm(
    target: DatasetTable,
    derivation: Derivation,
    *,
    now: datetime,
    judge: Judge | None = None,
) -> Recomputed:
    """Commit that Current is what the query returns over these snapshots.

    Raises what a commit raises, and OperationError where `judge` refuses the rows of Current: they
    may depend on a table that the query does not read, or on the time.
    """
    enter(target)
    schema, keys = target.known_schema(), target.known_keys()
    verdicts: Mapping[str, str | None] = {}
    if judge is not None:
        with ApplyRun.of(target, target.shape(schema, keys)) as run:
            verdicts = judge(None, partial(_unchanged, run), schema)
    following = _state_after(target, schema, keys, derivation).with_verdicts(verdicts, now)
    target.commit_copy_state(following, "derive")
    return Recomputed(0, None, _failed(verdicts))


def _failed(verdicts: Mapping[str, str | None]) -> dict[str, str]:
    return {name: says for name, says in verdicts.items() if says is not None}


def _whole(run: ApplyRun, rows: DataFrame, affected: AffectedKeys) -> DataFrame:
    """All rows of the table after a step that has computed those with affected keys."""
    return _unchanged(run, affected).unionByName(rows)


def _unchanged(run: ApplyRun, affected: AffectedKeys | None = None) -> DataFrame:
    """The rows of Current that a step leaves as they are."""
    names = ", ".join(f"c.{quote(name)}" for name in run.shape.data)
    others = ""
    if affected is not None:
        others = f"LEFT ANTI JOIN {affected.relation} k ON {affected.match('c')} "
    current = current_rows(run.shape, run.table)
    return run.sql(f"SELECT {names} FROM ({current}) c {others}WHERE c.__live")


def stored_rows(target: DatasetTable, columns: Sequence[str]) -> str:
    """Query of some columns of the rows that a table shows at its newest snapshot."""
    assert target.state.snapshot is not None, "it has been derived before"
    names = ", ".join(map(quote, columns))
    current = current_rows(target.shape(), target.table.at(target.state.snapshot))
    return f"SELECT {names} FROM ({current}) WHERE __live"


def _result_schema(target: DatasetTable, result: DataFrame | pa.Table) -> dict[str, DataType]:
    """Columns of an answer in the types of the table. Raises OperationError as `result_schema`."""
    if isinstance(result, pa.Table):
        known = target.known_schema()
        return {name: known[name] for name in result.column_names}
    columns = [(column.name, column.dataType.simpleString()) for column in result.schema.fields]
    dataset = target.dataset
    return result_schema(
        dataset.relations.current, columns, target.known_schema(), dataset.events.keys
    )


def _refuse_other_keys(target: DatasetTable, keys: tuple[str, ...]) -> None:
    """Raise OperationError for keys that are not those of the rows that the table has."""
    before = target.known_keys()
    if target.state.copy.derivation is not None and before != keys:
        raise KEYS_CHANGED(
            where=target.table.name,
            dataset=target.dataset.name,
            old=list(before),
            new=list(keys),
        )


def _follow_columns(target: DatasetTable, schema: Mapping[str, DataType]) -> dict[str, DataType]:
    """Drop columns that the query no longer has; return those that a layout needs, as NULL."""
    known = target.known_schema()
    gone = [name for name in known if name not in schema]
    used = columns_in_use(target.table)
    if drops := [name for name in gone if name not in used]:
        change_columns(target, {}, drops)
    return {name: known[name] for name in gone if name in used}


def _counted(rows: DataFrame, keys: Sequence[str]) -> CountedKeys:
    fields = ", ".join(f"{literal(key)}, {quote(key)}" for key in keys)
    no_key = " OR ".join(f"{quote(key)} IS NULL" for key in keys)
    counted = rows.selectExpr(
        "count(*) AS rows",
        f"count_if({no_key}) AS lacking",
        f"count(DISTINCT named_struct({fields})) AS distinct",
    ).first()
    assert counted is not None, "an aggregate has a row"
    return CountedKeys(counted["rows"], counted["lacking"], counted["distinct"])


def _refuse_wrong_keys(target: DatasetTable, counted: CountedKeys, keys: Sequence[str]) -> int:
    """The number of rows. Raises OperationError unless the keys tell them apart."""
    named = ", ".join(map(quote, keys))
    where = target.dataset.relations.current
    if counted.lacking:
        problem = f"{counted.lacking:,} of {counted.rows:,} rows have no value in ({named})"
        raise RESULT_KEYS_WRONG(where=where, problem=problem)
    if counted.distinct != counted.rows:
        more = counted.rows - counted.distinct
        problem = f"{more:,} of {counted.rows:,} rows repeat the values of another in ({named})"
        raise RESULT_KEYS_WRONG(where=where, problem=problem)
    return counted.rows


def _state_after(
    target: DatasetTable,
    schema: Mapping[str, DataType],
    keys: tuple[str, ...],
    derivation: Derivation,
) -> CopyState:
    """The state after a step: its number, its columns, and what it was derived from."""
    before = target.state.copy
    settings = recorded(target.dataset, before.settings, has_rows=before.derivation is not None)
    return replace(
        before.with_settings(settings),
        columns=replace(
            before.columns,
            schema={name: str(kind) for name, kind in schema.items()},
            keys=list(keys),
        ),
        position=replace(before.position, copied_at=derivation.until),
        membership=replace(before.membership, task=target.dataset.task),
        reloads=before.reloads + 1,
        derivation=derivation,
    )


def _differences(
    run: ApplyRun, rows: DataFrame, shape: Shape, step: Reloading, affected: AffectedKeys | None
) -> DataFrame:
    """The events of one step, settled."""
    target = run.target
    names = ", ".join(map(quote, shape.data))
    loaded = (
        f"SELECT {names}, CAST(NULL AS TIMESTAMP) AS __ts, true AS __live FROM {run.view(rows)}"
    )
    assert target.state.snapshot is not None, "a takeover has made one"
    table, current = target.table.at(target.state.snapshot), None
    if affected is not None:
        _refuse_taken_keys(run, loaded, shape, affected)
        current = f"SELECT c.* FROM ({current_rows(shape, table)}) c {affected.join('c')}"
    criteria = ChangeCriteria.of(target.dataset, shape, step)
    events = differences(shape, table, step, criteria, loaded=loaded, current=current)
    return run.settle(run.sql(events))


def _refuse_taken_keys(run: ApplyRun, loaded: str, shape: Shape, affected: AffectedKeys) -> None:
    """Raise OperationError for a row whose keys another row has that is not affected."""
    if set(affected.columns) <= set(shape.keys):
        return
    current = current_rows(shape, run.table)
    others = run.sql(
        f"SELECT count(*) AS n FROM ({current}) c LEFT ANTI JOIN {affected.relation} k "
        f"ON {affected.match('c')} LEFT SEMI JOIN ({loaded}) l ON {shape.key_match('l', 'c')} "
        "WHERE c.__live"
    ).first()
    assert others is not None, "an aggregate has a row"
    if others["n"]:
        named = ", ".join(map(quote, shape.keys))
        problem = f"{others['n']:,} of its rows repeat the values of another in ({named})"
        raise RESULT_KEYS_WRONG(where=run.target.dataset.relations.current, problem=problem)
