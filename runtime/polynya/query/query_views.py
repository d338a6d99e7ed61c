"""The view of a user's query in the SQL of each engine.

`query/selects.py` takes a query apart: it knows the type of each part, and refuses whatever is not
surely the same outside of Spark. What it makes has casts, places of NULL and names for everything,
in few kinds of nodes. Here stands what each of these becomes; a node of another kind is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import sqlglot
from sqlglot import exp
from sqlglot.errors import ErrorLevel, SqlglotError

from polynya.model.names import Dialect
from polynya.model.promotion import storage_type
from polynya.model.types import (
    BIGINT,
    BINARY,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    Array,
    DataType,
    Decimal,
    MapType,
    Struct,
)
from polynya.query.dialects import EngineView, type_in
from polynya.query.selects import Query, translate
from polynya.query.sources import FULL_JOIN, SEMI_JOIN
from polynya.query.translate import NotEmbeddedError, parsed
from polynya.query.values import (
    LARGE_SUMS,
    EngineLimits,
    Relation,
    RelationColumn,
    distinct_names,
    quoted,
)


@dataclass(frozen=True, slots=True)
class ViewInput:
    """A view that a query reads: its quoted place in the engine, and its columns as in Spark."""

    place: str
    columns: Mapping[str, DataType]


_NAN: Final = "NaN equals itself in Spark and is the largest number, and there it may not be"
_BLANKS: Final = "blanks at the end count in Spark, and there they do not"
#: Java changes some letters in a way of its own.
_LETTERS: Final = dict.fromkeys(
    ("lower", "lcase", "upper", "ucase"), "other letters than those of ASCII differ"
)
_UNTESTED: Final = "its digits there were not compared with Spark's"
_ZONE: Final = "the day of a time with a zone depends on the zone of the session there"
_DOUBLES: Final[Mapping[DataType, str]] = {DOUBLE: _NAN, FLOAT: _NAN}
#: Some report what is too large for a double.
_ALL: Final = {
    **_LETTERS, "arithmetic of doubles": _UNTESTED, SEMI_JOIN: "not every engine has such a join",
}  # fmt: skip
_WAREHOUSE: Final = {
    **_ALL, "arithmetic of decimals": _UNTESTED, "round": _UNTESTED, "day of a time": _ZONE,
    "an aggregate over an ordered window": "the frame there may be another one",
}  # fmt: skip

#: What each engine compares or computes in another way than Spark, of what `Expressions` knows.
LIMITS: Final[Mapping[Dialect, EngineLimits]] = {
    Dialect.DUCKDB: EngineLimits(functions=_ALL),
    Dialect.TRINO: EngineLimits(_DOUBLES, _ALL),
    Dialect.ATHENA: EngineLimits(_DOUBLES, _ALL),
    Dialect.SNOWFLAKE: EngineLimits(_DOUBLES, _WAREHOUSE),
    Dialect.REDSHIFT: EngineLimits(
        {**_DOUBLES, STRING: _BLANKS},
        {
            **_WAREHOUSE,
            "LIKE": _BLANKS,
            "<=>": "Redshift has no such operator",
            FULL_JOIN: "Redshift refuses it",
        },
    ),
    Dialect.DATABRICKS: EngineLimits(functions={**_ALL, "day of a time": _ZONE}),
}

#: Kinds of nodes whose meaning is one in all engines as they are written below.
_KINDS: Final = (
    exp.Select, exp.Union, exp.Subquery, exp.From, exp.Join, exp.Where, exp.Group, exp.Having,
    exp.Distinct, exp.Table, exp.TableAlias, exp.Alias, exp.Column, exp.Identifier, exp.Star,
    exp.Literal, exp.Neg, exp.Boolean, exp.Null, exp.Paren, exp.And, exp.Or, exp.Not, exp.Is,
    exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.Like, exp.Case, exp.If,
    exp.Cast, exp.DataType, exp.DataTypeParam, exp.DPipe, exp.Coalesce, exp.Nullif, exp.Count,
    exp.Sum, exp.Min, exp.Max, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Length, exp.Year, exp.Month,
    exp.Day, exp.Substring, exp.DateDiff, exp.Round, exp.Window, exp.Order, exp.Ordered,
    exp.RowNumber, exp.Rank, exp.DenseRank, exp.Lag, exp.Lead, exp.Var,
)  # fmt: skip

#: What sqlglot calls the types that a translated query names.
_TYPES: Final[Mapping[Any, DataType]] = {
    exp.DataType.Type.INT: INT,
    exp.DataType.Type.BIGINT: BIGINT,
    exp.DataType.Type.VARCHAR: STRING,
    exp.DataType.Type.TEXT: STRING,
    exp.DataType.Type.DATE: DATE,
    exp.DataType.Type.DOUBLE: DOUBLE,
    exp.DataType.Type.TIMESTAMP: TIMESTAMP_NTZ,
    exp.DataType.Type.TIMESTAMPNTZ: TIMESTAMP_NTZ,
    exp.DataType.Type.TIMESTAMPTZ: TIMESTAMP,
}
#: Engines whose views show instants as times of UTC.
_IN_UTC: Final = frozenset({Dialect.DUCKDB, Dialect.ATHENA})
_ZONE_OF: Final[Mapping[Dialect, str]] = {
    Dialect.TRINO: " UTC", Dialect.SNOWFLAKE: " +00:00", Dialect.REDSHIFT: "+00",
    Dialect.DATABRICKS: "+00:00",
}  # fmt: skip
#: The dialects of sqlglot; Athena's queries are Trino's.
_WRITTEN_AS: Final[Mapping[Dialect, str]] = {Dialect.ATHENA: "trino"}


def query_view_in(
    dialect: Dialect, name: str, text: str, read: Callable[[str], ViewInput]
) -> EngineView:
    """The view of a query, `text` in Spark's SQL; `read` gives the view of a name `schema.view`.

    Names of the view and of its columns are called as `Dialect.fold` has it.

    Raises:
        NotEmbeddedError: the engine might show other rows than Spark. `read` may raise it.
    """
    inputs: dict[str, ViewInput] = {}

    def relation(called: str) -> Relation:
        found = read(called)
        place = f"__v{len(inputs)}"
        inputs[place] = found
        if not distinct_names(list(found.columns)):
            raise NotEmbeddedError(f"{called} has two columns whose names differ in case only")
        columns = (
            RelationColumn(column, storage_type(kind), quoted(dialect.fold(column)))
            for column, kind in found.columns.items()
        )
        return Relation(quoted(place), tuple(columns))

    query = translate(parsed(text), relation, LIMITS[dialect])
    names = [column.name for column in query.columns]
    if not distinct_names(names):
        raise NotEmbeddedError("two columns of one name")
    try:
        sql = _written(dialect, query, {place: one.place for place, one in inputs.items()})
    except SqlglotError as error:
        raise NotEmbeddedError(str(error)) from error
    shown = {dialect.fold(column.name): column.type for column in query.columns}
    folded = name.lower() if dialect is Dialect.DUCKDB else dialect.fold(name)
    return EngineView(folded, shown, sql, {})


def _written(dialect: Dialect, query: Query, places: Mapping[str, str]) -> str:
    tree = sqlglot.parse_one(query.sql, read="duckdb")
    for order in list(tree.find_all(exp.Order)):
        if not isinstance(order.parent, exp.Window):
            # A view has no order; a query over it may ask for one.
            order.pop()
    tree = _exact_means(tree)
    for node in list(tree.walk()):
        if not isinstance(node, _KINDS):
            raise NotEmbeddedError(f"{type(node).__name__.upper()}, which has no translation")
    # What is inside comes first, so that nothing is replaced that stands in a new node.
    for node in reversed(list(tree.walk())):
        new = _node(dialect, node, places)
        if new is not node:
            node.replace(new)
    text = _sql(dialect, tree)
    columns = [
        f"{_as_type(dialect, f'c{number}', column.type)} AS "
        f"{dialect.quote(dialect.fold(column.name))}"
        for number, column in enumerate(query.columns)
    ]
    shown = ", ".join(columns)
    return f"SELECT {shown} FROM (\n{text}\n) AS {dialect.quote('__shown')}"


def _sql(dialect: Dialect, node: exp.Expr) -> str:
    return node.sql(
        dialect=_WRITTEN_AS.get(dialect, str(dialect)),
        identify=True,
        unsupported_level=ErrorLevel.RAISE,
    )


def _exact_means(tree: exp.Expr) -> exp.Expr:
    """Means without the error for large sums, of which Spark's own depends on the order of rows."""
    for case in list(tree.find_all(exp.Case)):
        last = case.args.get("default")
        text = last.expressions[0].name if isinstance(last, exp.Anonymous) else None
        if text == LARGE_SUMS:
            case.replace(exp.Paren(this=case.args["ifs"][0].args["true"]))
    return tree


def _node(dialect: Dialect, node: exp.Expr, places: Mapping[str, str]) -> exp.Expr:
    """What becomes of one node."""
    match node:
        case exp.Table():
            node.set("this", exp.Var(this=places[node.name]))
        case exp.Ordered():
            # Written out: sqlglot leaves out what is the default, which a session may change.
            way = "DESC" if node.args.get("desc") else "ASC"
            nulls = "FIRST" if node.args.get("nulls_first") else "LAST"
            return exp.Var(this=f"{_sql(dialect, node.this)} {way} NULLS {nulls}")
        case exp.Cast(this=exp.Literal() as literal) if _is(node, TIMESTAMP):
            time = str(literal.this).removesuffix("+00")
            zone = _ZONE_OF.get(dialect, "")
            return exp.Cast(this=exp.Literal.string(f"{time}{zone}"), to=_type(dialect, TIMESTAMP))
        case exp.Cast() if dialect is Dialect.DUCKDB and _may_overflow(node):
            # Through text: DuckDB makes `n > 4` of `n + 1 > 5`, which is not so where it overflows.
            text = exp.Cast(this=node.this, to=_type(dialect, STRING))
            return exp.Cast(this=text, to=_type(dialect, _type_of(node.args["to"])))
        case exp.Cast():
            node.set("to", _type(dialect, _type_of(node.args["to"])))
        case _:
            pass
    return node


def _may_overflow(node: exp.Cast) -> bool:
    """Whether a cast ends arithmetic or a sum of integers."""
    inner = node.this
    while isinstance(inner, exp.Paren | exp.Window):
        inner = inner.this
    return _is(node, INT, BIGINT) and isinstance(inner, exp.Add | exp.Sub | exp.Mul | exp.Sum)


def _is(node: exp.Cast, *types: DataType) -> bool:
    return _type_of(node.args["to"]) in types


def _type_of(node: exp.Expr) -> DataType | None:
    if not isinstance(node, exp.DataType):
        return None
    if node.this is exp.DataType.Type.DECIMAL:
        digits = [int(part.name) for part in node.expressions]
        return Decimal(*digits)
    return _TYPES.get(node.this)


def _type(dialect: Dialect, datatype: DataType | None) -> exp.Expr:
    if datatype is None:
        raise NotEmbeddedError("a cast to a type that has no translation")
    if datatype == TIMESTAMP and dialect in _IN_UTC:
        datatype = TIMESTAMP_NTZ
    return exp.Var(this=type_in(dialect, datatype))


def _as_type(dialect: Dialect, column: str, datatype: DataType) -> str:
    """A column in the type in which live views show it; others are as their input has them."""
    name = dialect.quote(column)
    if isinstance(datatype, Array | MapType | Struct) or datatype in {FLOAT, BINARY}:
        return name
    return f"CAST({name} AS {type_in(dialect, datatype)})"
