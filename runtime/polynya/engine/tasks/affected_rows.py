"""Which rows of a query the changes of its inputs concern, and the query over these rows alone.

`derived/affected.py` has the analysis and why it is right. Here its queries run in Spark over the
live views of the inputs in two states: at the snapshots that the last step has read, and at those
that this one reads.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Self
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc

from polynya.derived.affected import affected_keys_sql, restrictable_inputs
from polynya.derived.plans import IncrementalPlan, TotalPart, TotalsPlan
from polynya.derived.tables import NarrowedText, ParsedQuery
from polynya.derived.totals import UnknownTotalError, merged
from polynya.engine.tasks.embedded_rows import embedded_rows
from polynya.engine.tasks.few_inputs import FewInputRows
from polynya.lake.copy.affected import AffectedKeys
from polynya.lake.errors import machine_error
from polynya.lake.spark.api import (
    DataFrame,
    Py4JError,
    PySparkException,
    SparkSession,
    functions,
)
from polynya.lake.spark.arrow import collected_rows, spark_schema
from polynya.model.names import quote
from polynya.model.types import DataType

log = logging.getLogger(__name__)

#: More affected keys than this do not go through the memory of the driver: all is computed.
MOST_KEYS: Final = 2_000_000
#: Up to so many keys every task gets all of them, so that rows are found without a shuffle.
_MOST_BROADCAST: Final = 1_000_000


class InputViews(Mapping[str, str]):
    """The quoted view of each input, by its name in the query: each is made when it is needed."""

    def __init__(self, views: TemporaryViews, relations: Mapping[str, str | DataFrame]) -> None:
        self._views, self._relations = views, relations
        self._made: dict[str, str] = {}

    def __getitem__(self, name: str) -> str:
        if name not in self._made:
            self._made[name] = self._views.of(self._relations[name])
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._relations)

    def __len__(self) -> int:
        return len(self._relations)


class TemporaryViews:
    """Names for relations in SQL, which are gone at the end of the block."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        self.plain_names: list[str] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        for name in self.plain_names:
            self.spark.catalog.dropTempView(name)

    def of(self, relation: str | DataFrame) -> str:
        """The quoted name of a query or a frame."""
        frame = self.spark.sql(relation) if isinstance(relation, str) else relation
        name = f"input_{uuid4().hex}"
        frame.createTempView(name)
        self.plain_names.append(name)
        return quote(name)

    def of_keys(self, keys: pa.Table) -> AffectedKeys:
        """The same of keys; they go to Spark once a query names them."""
        ranges = {name: _range(keys.column(name)) for name in keys.column_names}
        known = {name: condition for name, condition in ranges.items() if condition is not None}
        nullable = (name for name in keys.column_names if keys.column(name).null_count)
        columns = tuple(keys.column_names)
        return AffectedKeys(columns, lambda: self._of_keys(keys), known, frozenset(nullable))

    def _of_keys(self, keys: pa.Table) -> str:
        frame = self.spark.createDataFrame(keys, schema=spark_schema(keys.schema))
        return self.of(functions.broadcast(frame) if keys.num_rows <= _MOST_BROADCAST else frame)


def _range(column: pa.ChunkedArray) -> str | None:
    """Condition on `{}` that all values of a column meet; None where it would tell nothing."""
    if column.null_count or not len(column):
        return None
    if not (pa.types.is_integer(column.type) or pa.types.is_date32(column.type)):
        return None
    low, high = pc.min_max(column).values()
    if pa.types.is_integer(column.type):
        return f"{{}} BETWEEN {low} AND {high}"
    return f"{{}} BETWEEN DATE '{low}' AND DATE '{high}'"


@dataclass(frozen=True, slots=True)
class InputStates:
    """The inputs of a step: their views before and now, and the keys that changed of each.

    `changed` has the columns of the key; the rows of other keys are the same in both states.
    `differing` has views of all rows that differ before and now, where they are known apart.
    """

    before: Mapping[str, str]
    now: Mapping[str, str]
    changed: Mapping[str, pa.Table]
    differing: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    def state_before(self, name: str) -> str:
        """The view of an input before: that of now where nothing changed."""
        known = self.changed[name].num_rows and name in self.before
        return self.before[name] if known else self.now[name]


@dataclass(frozen=True, slots=True)
class RestrictedStep:
    """What one step computes, and how: all rows, or those of the `affected` keys.

    `text` is SQL over views of the inputs; None: no key is affected, or `rows` has its rows
    already. `share` is that of the rows of the inputs that changed. `how` is for people. `by_spark`
    says why Spark finds the keys or the rows; None: they were found in memory.
    """

    text: str | None
    how: str
    affected: AffectedKeys | None = None
    share: float = 0.0
    by_spark: str | None = None
    rows: pa.Table | None = None


@dataclass(frozen=True, slots=True)
class AffectedRows:
    """The affected keys of a step: the columns `plan.columns`.

    `few` finds rows of inputs in memory, and `by_spark` says why Spark has found the keys. `known`
    has the columns of the table.
    """

    plan: IncrementalPlan
    keys: pa.Table
    share: float
    few: FewInputRows
    known: Mapping[str, DataType]
    by_spark: str | None = None

    def step(
        self, views: TemporaryViews, query: ParsedQuery, inputs: Mapping[str, str]
    ) -> RestrictedStep:
        """The step over the quoted view of each input as it is now."""
        columns = ", ".join(self.plan.columns)
        how = f"{self.keys.num_rows:,} of {columns}"
        if not self.keys.num_rows:
            nothing = AffectedKeys(self.plan.columns, lambda: "")
            return RestrictedStep(None, how, nothing, self.share, self.by_spark)
        affected = views.of_keys(self.keys)
        found = self.few.restricted(self.plan, self.keys)
        by_spark = self.by_spark or found.by_spark
        rows = embedded_rows(query, found, self.known)
        if isinstance(rows, pa.Table):
            return RestrictedStep(None, how, affected, self.share, by_spark, rows)
        log.debug("Spark computes the rows: %s", rows)
        small = {name: views.of(rows) for name, rows in found.frames(views.spark).items()}
        relations = {**_narrowed(self.plan, inputs, affected, small), **small}
        text = query.over(relations)
        if not found.is_whole:
            text = _with_affected_keys(text, affected)
        return RestrictedStep(text, how, affected, self.share, by_spark)


@dataclass(frozen=True, slots=True)
class ChangedTotals:
    """The affected keys of each total of a result of one row; `derived/totals.py` says why.

    `before` has the quoted view of each input before, `stored` is the query of the table's row, and
    `run` runs a text over views after the check of its plan.
    """

    plan: TotalsPlan
    keys: tuple[pa.Table, ...]
    before: Mapping[str, str]
    stored: str
    run: Callable[[str], DataFrame]
    share: float

    def step(
        self, views: TemporaryViews, query: ParsedQuery, inputs: Mapping[str, str]
    ) -> RestrictedStep:
        """The step over the quoted view of each input as it is now."""
        number = sum(keys.num_rows for keys in self.keys)
        how = f"what {number:,} of {', '.join(self.plan.columns)} add to its totals"
        if not number:
            return RestrictedStep(None, how, AffectedKeys((), lambda: ""), self.share)
        try:
            row = self._row(views, query, inputs)
        except (PySparkException, Py4JError) as error:
            row = _not_found("the totals", error)
        if isinstance(row, str):
            return RestrictedStep(query.over(inputs), row)
        view = views.of(views.spark.createDataFrame(row, schema=spark_schema(row.schema)))
        # All of the table, which has one row.
        every = AffectedKeys((), lambda: view)
        return RestrictedStep(f"SELECT * FROM {view}", how, every, self.share)

    def _row(
        self, views: TemporaryViews, query: ParsedQuery, inputs: Mapping[str, str]
    ) -> pa.Table | str:
        """The row as it is now, or why all is computed."""
        narrowed = []
        for part, keys in zip(self.plan.parts, self.keys, strict=True):
            found = views.of_keys(keys)
            for one in part.relations:
                columns = dict(zip(one.columns, keys.column_names, strict=True))
                match = found.match("v", columns)
                narrowed.append(NarrowedText(one.start, one.end, one.alias, found.relation, match))
        stored, before, now = (
            collected_rows(self.run(text))
            for text in (
                self.stored,
                query.over(self.before, narrowed),
                query.over(inputs, narrowed),
            )
        )
        if stored.num_rows != 1:
            return f"its table has {stored.num_rows} rows in place of one"
        rows = [[column[0].as_py() for column in one.columns] for one in (stored, before, now)]
        try:
            values = merged(self.plan.merges, *rows)
            typed = [
                pa.array([value], column.type)
                for value, column in zip(values, now.columns, strict=True)
            ]
        except UnknownTotalError as reason:
            return str(reason)
        except (pa.ArrowInvalid, OverflowError):
            return "a total is too large for its type"
        return pa.table(typed, schema=now.schema)


def affected_keys(
    views: TemporaryViews, plan: IncrementalPlan, inputs: InputStates
) -> pa.Table | str:
    """The values of `plan.columns` in all rows of the result that may have changed.

    The reason, as a sentence, where there are too many, or where Spark does not find them: all is
    computed then. Raises DependencyError for a fault of the machine.
    """
    try:
        return _keys_of(views, plan, inputs, _all_touched(views, inputs))
    except (PySparkException, Py4JError) as error:
        return _not_found("its affected keys", error, inputs.changed)


def keys_of_totals(
    views: TemporaryViews, plan: TotalsPlan, inputs: InputStates
) -> tuple[pa.Table, ...] | str:
    """The same of each total of a result of one row."""
    try:
        touched = _all_touched(views, inputs)
        found = tuple(_keys_of(views, part, inputs, touched) for part in plan.parts)
    except (PySparkException, Py4JError) as error:
        return _not_found("its affected keys", error, inputs.changed)
    whole = next((keys for keys in found if isinstance(keys, str)), None)
    return whole or tuple(keys for keys in found if isinstance(keys, pa.Table))


def _not_found(what: str, error: Exception, inputs: Mapping[str, object] | None = None) -> str:
    """Why all is computed after an error of Spark. Raises DependencyError for the machine's."""
    fault = machine_error(error)
    if fault is not None:
        raise fault from error
    log.warning("%s of %s: %s", what, ", ".join(inputs or ()), error)
    return f"{what} were not found: {str(error).strip().splitlines()[0][:200]}"


def _keys_of(
    views: TemporaryViews,
    plan: IncrementalPlan | TotalPart,
    inputs: InputStates,
    touched: Mapping[str, tuple[str, str]],
) -> pa.Table | str:
    names = inputs.changed
    text = affected_keys_sql(
        plan,
        {name: inputs.state_before(name) for name in names},
        {name: inputs.now[name] for name in names},
        {name: before for name, (before, _) in touched.items()},
        {name: now for name, (_, now) in touched.items()},
        changed={name: views.of_keys(keys).relation for name, keys in names.items()},
        unchanged=[name for name, keys in names.items() if not keys.num_rows],
    )
    found = collected_rows(views.spark.sql(f"SELECT * FROM ({text}) LIMIT {MOST_KEYS + 1}"))
    if found.num_rows > MOST_KEYS:
        return f"more than {MOST_KEYS:,} rows of the result may have changed"
    return found


def _all_touched(views: TemporaryViews, inputs: InputStates) -> dict[str, tuple[str, str]]:
    """Views of the rows of each input with changed keys, before and now."""
    return {name: _touched(views, inputs, name) for name in inputs.changed}


def _touched(views: TemporaryViews, inputs: InputStates, name: str) -> tuple[str, str]:
    changed = inputs.changed[name]
    if not changed.num_rows:
        nothing = views.of(f"SELECT * FROM {inputs.now[name]} WHERE false")
        return nothing, nothing
    keys = views.of_keys(changed)
    states = inputs.differing.get(name) or (inputs.state_before(name), inputs.now[name])
    before, now = (views.of(f"SELECT v.* FROM {state} v {keys.join('v')}") for state in states)
    return before, now


def keys_with_other_values(
    views: TemporaryViews, inputs: InputStates, name: str, column: str
) -> pa.Table | str:
    """Those of the changed keys of an input whose rows do not keep the value of a column.

    The reason, as a sentence, where Spark does not find them. Raises as `affected_keys` does.
    """
    changed = inputs.changed[name]
    keys = views.of_keys(changed)
    before, now = _touched(views, inputs, name)
    same = " AND ".join(f"b.{quote(one)} = n.{quote(one)}" for one in (*keys.columns, column))
    kept = f"SELECT b.* FROM {before} b LEFT SEMI JOIN {now} n ON {same}"
    text = f"SELECT k.* FROM {keys.relation} k LEFT ANTI JOIN ({kept}) s ON {keys.match('s')}"
    try:
        return collected_rows(views.spark.sql(text)).cast(changed.schema)
    except (PySparkException, Py4JError) as error:
        return _not_found("the rows that changed", error, {name: column})


def _narrowed(
    plan: IncrementalPlan,
    inputs: Mapping[str, str],
    affected: AffectedKeys,
    small: Mapping[str, str],
) -> dict[str, str]:
    """The inputs as they are now that are not `small`, by their quoted views.

    Rows that no row with affected keys can come from are not brought together.
    """
    narrow = restrictable_inputs(plan)
    relations = {name: inputs[name] for name in inputs if name not in small}
    for name, view in relations.items():
        if columns := narrow.get(name):
            same = affected.match("v", columns)
            rows = f"SELECT v.* FROM {view} v LEFT SEMI JOIN {affected.relation} k ON {same}"
            relations[name] = f"({rows})"
    return relations


def _with_affected_keys(text: str, affected: AffectedKeys) -> str:
    """SQL of the rows of a query that have affected keys."""
    return (
        f"SELECT q.* FROM (\n{text}\n) q "
        f"LEFT SEMI JOIN {affected.relation} k ON {affected.match('q')}"
    )
