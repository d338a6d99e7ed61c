"""The values of expressions over the rows of a batch: one query for all that take one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import pyarrow as pa

from polynya.formats.values.arrow_types import arrow_type
from polynya.lake.copy.mapped_values import (
    Typed,
    as_void,
    at_path,
    converted,
    holds_void,
    misfit,
    nulls_of,
    one_array,
    place_of,
)
from polynya.lake.copy.rows import choice_in, chosen
from polynya.lake.spark.api import DataFrame, PySparkException, SparkSession, functions
from polynya.lake.spark.arrow import collected_rows, kind_of, spark_schema
from polynya.model.error_catalogue.expressions import EXPRESSION_NOT_COMPUTABLE
from polynya.model.names import quote
from polynya.model.types import BOOLEAN, DATE, TIMESTAMP, DataType, Void
from polynya.transform.expressions import (
    day_of,
    expression_columns,
    expression_over,
    has_all,
    path_of,
)

#: Gives the session when there is something to ask it.
Session: TypeAlias = Callable[[], SparkSession]
#: Gives the type of a column for that of its expression.
Choose: TypeAlias = Callable[[DataType], DataType]

#: Tells a row of an expression that asks for one: the same on every run.
_ROW: Final = "concat_ws(':', __file, CAST(__offset AS STRING), CAST(`|number` AS STRING))"
_PLACE_COLUMNS: Final = ("__file", "__offset", "|number")
#: Characters of a value that a message shows.
_SHOWN: Final = 60


@dataclass(frozen=True, slots=True)
class WantedValue:
    """An expression, the type that its values get, and what it is called in messages.

    Of a condition it makes no difference whether it is false or NULL.
    """

    text: str
    choose: Choose
    called: str
    is_condition: bool = False


@dataclass(frozen=True, slots=True)
class Made:
    """Its values; `misfits` has the text of those that the type cannot hold, by row."""

    column: Typed
    misfits: Mapping[int, str]


def computed(
    rows: Mapping[str, Typed], places: pa.Table, wanted: Sequence[WantedValue], session: Session
) -> list[Made]:
    """The values of expressions over rows, which `places` tells apart.

    `rows` has the columns that there are. Raises ConfigError POLYNYA-MAP-005 for an expression
    that Spark refuses for the types of its columns, or whose type no table can have.
    """
    made: dict[int, Made] = {}
    for index, value in enumerate(wanted):
        by = _by_choice if value.is_condition else _by_column
        result = by(rows, value.text, places.num_rows)
        if result is not None and value.choose(result.kind) == result.kind:
            made[index] = Made(result, {})
    left = [index for index in range(len(wanted)) if index not in made]
    if left and not places.num_rows:
        made |= {index: Made(nulls_of(wanted[index].choose(Void()), 0), {}) for index in left}
    elif left:
        queried = _queried(rows, places, [wanted[index] for index in left], session())
        made |= dict(zip(left, queried, strict=True))
    return [made[index] for index in range(len(wanted))]


def _by_column(rows: Mapping[str, Typed], text: str, count: int) -> Typed | None:
    """The values of an expression that only names a column, a field of structs, or the day of one.

    The day is that of `ingestion_date`, which most transforms have: no job of Spark for it alone.
    """
    day = day_of(text)
    if day is not None:
        time = rows.get(day)
        if time is None or time.kind != TIMESTAMP:
            return None
        return Typed(time.array.cast(pa.date32()), DATE)
    path = path_of(text)
    if path is None:
        return None
    column = rows.get(path[0])
    return nulls_of(Void(), count) if column is None else at_path(column, path[1:])


def _by_choice(rows: Mapping[str, Typed], text: str, count: int) -> Typed | None:
    """Where a condition holds that only compares a column with texts."""
    choice = choice_in(text, {name: row.kind for name, row in rows.items()})
    if choice is None:
        return None
    column = rows.get(choice.column)
    named = None if column is None else chosen(choice, pa.table({choice.column: column.array}))
    if named is None:
        return Typed(pa.repeat(pa.scalar(value=False), count), BOOLEAN)
    return Typed(one_array(named), BOOLEAN)


def _queried(
    rows: Mapping[str, Typed], places: pa.Table, wanted: Sequence[WantedValue], spark: SparkSession
) -> list[Made]:
    typed = {name: row for name, row in rows.items() if not isinstance(row.kind, Void)}
    read = {name for value in wanted for name in expression_columns(value.text)} & typed.keys()
    columns = {name: typed[name].array for name in typed if name in read}
    numbered = {**columns, **{name: places.column(name) for name in _PLACE_COLUMNS}}
    numbered["__row"] = pa.arange(0, places.num_rows)
    table = pa.table(numbered)
    landed = spark.createDataFrame(table, schema=spark_schema(table.schema))
    kinds = {name: column.kind for name, column in typed.items()}
    voids = {name: as_void(quote(name), kinds[name]) for name in columns if holds_void(kinds[name])}
    landed = landed.withColumns({name: functions.expr(sql) for name, sql in voids.items()})
    given = _selected(landed, kinds, wanted)
    targets = [value.choose(kind) for value, kind in zip(wanted, given.kinds, strict=True)]
    chosen = ["__row"]
    for index, (kind, target) in enumerate(zip(given.kinds, targets, strict=True)):
        sql = f"c{index}"
        value = converted(sql, kind, target)
        chosen.append(f"{value} AS v{index}")
        if kind != target and not isinstance(kind, Void):
            text = f"substr(CAST({sql} AS STRING), 1, {_SHOWN})"
            chosen.append(f"IF({misfit(sql, value, kind, target)}, {text}, NULL) AS f{index}")
    result = _collected(given.frame, chosen, wanted)
    made = [
        Made(Typed(_column(result, index, kind), kind), _misfits(result, index))
        for index, kind in enumerate(targets)
    ]
    return [
        one
        if has_all(asked.text, kinds) and not _reads_void(asked, kinds)
        else _untyped(one, asked)
        for one, asked in zip(made, wanted, strict=True)
    ]


def _reads_void(value: WantedValue, kinds: Mapping[str, DataType]) -> bool:
    return any(holds_void(kinds[name]) for name in expression_columns(value.text) & kinds.keys())


def _untyped(made: Made, one: WantedValue) -> Made:
    """Values that lack a column, or a type in it: only NULLs have no type yet.

    Unless their column has one.

    Spark takes NULL for some type, which the values that come later need not fit.
    """
    count = len(made.column.array)
    kind = one.choose(Void())
    if isinstance(kind, Void) and made.column.array.null_count == count:
        return Made(nulls_of(kind, count), made.misfits)
    return made


@dataclass(frozen=True, slots=True)
class _Given:
    """Expressions as columns `c0`, `c1` … of their own types."""

    frame: DataFrame
    kinds: list[DataType]


def _selected(
    landed: DataFrame, kinds: Mapping[str, DataType], wanted: Sequence[WantedValue]
) -> _Given:
    place = place_of(landed, row=_ROW)

    def select(chosen: Mapping[int, WantedValue]) -> DataFrame:
        texts = [
            f"{expression_over(value.text, kinds, where=value.called, place=place)} AS c{index}"
            for index, value in chosen.items()
        ]
        return landed.selectExpr("__row", *texts)

    try:
        frame = select(dict(enumerate(wanted)))
        fields = frame.schema.fields[1:]
    except PySparkException:
        for index, value in enumerate(wanted):
            try:
                _ = select({index: value}).schema
            except PySparkException as error:
                raise EXPRESSION_NOT_COMPUTABLE(
                    where=value.called, reason=_first_line(error)
                ) from None
        raise
    types = []
    for value, field in zip(wanted, fields, strict=True):
        kind = kind_of(field.dataType)
        name = field.dataType.simpleString()
        if isinstance(kind, Void) and name != "void":
            raise EXPRESSION_NOT_COMPUTABLE(
                where=value.called, reason=f"it is of the type {name}, which no table has"
            )
        types.append(kind)
    return _Given(frame, types)


def _collected(frame: DataFrame, chosen: Sequence[str], wanted: Sequence[WantedValue]) -> pa.Table:
    try:
        result = collected_rows(frame.selectExpr(*chosen))
    except PySparkException as error:
        names = ", ".join(value.called for value in wanted)
        raise EXPRESSION_NOT_COMPUTABLE(
            f"cannot convert values to the types of their columns: {_first_line(error)}",
            where=names,
            fix="write the conversion into the expression, or declare another `type`",
        ) from None
    return result.sort_by("__row")


def _first_line(error: PySparkException) -> str:
    return str(error).partition("\n")[0].partition(" SQLSTATE")[0][:300]


def _column(result: pa.Table, index: int, kind: DataType) -> pa.Array:
    if isinstance(kind, Void):
        return nulls_of(kind, result.num_rows).array
    return one_array(result.column(f"v{index}")).cast(arrow_type(kind))


def _misfits(result: pa.Table, index: int) -> dict[int, str]:
    name = f"f{index}"
    if name not in result.column_names or result.column(name).null_count == result.num_rows:
        return {}
    texts = result.column(name).to_pylist()
    return {row: text for row, text in enumerate(texts) if text is not None}
