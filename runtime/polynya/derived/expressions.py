"""Expressions of a flow: checked, over the columns of a step, with their type where it is plain.

The check is that of all expressions. Columns are written as the step spells them, and functions of
Polynya are rewritten for the types of their arguments, which have to be known here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from sqlglot import exp

from polynya.derived.schema import known_type
from polynya.model.error_catalogue.flows import FLOW_FUNCTION_REFUSED
from polynya.model.names import shown
from polynya.model.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    STRING,
    Array,
    DataType,
    Decimal,
    MapType,
    Primitive,
    Struct,
    Void,
)
from polynya.transform.expressions import canonical_sql, validate_expression
from polynya.transform.functions.core import ExpressionContext
from polynya.transform.parsing import own_calls, own_function, parse, rewrite

#: The path that an expression names, and its 0-based position in the text → the path as it has to
#: be written, and its type.
Resolve: TypeAlias = (
    "Callable[[tuple[str, ...], int | None], tuple[tuple[str, ...], DataType | None]]"
)

_TYPE: Final = "flow_type"
_TRUTHS: Final = (
    *(exp.And, exp.Or, exp.Not, exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Is),
    *(exp.NullSafeEQ, exp.NullSafeNEQ, exp.In, exp.Between, exp.Like, exp.ILike, exp.RegexpLike),
)
#: Functions of Spark whose type does not depend on their arguments.
_TYPES_OF_FUNCTIONS: Final[Mapping[str, DataType]] = {
    **dict.fromkeys(("upper", "lower", "trim", "ltrim", "rtrim", "initcap"), STRING),
    **dict.fromkeys(("concat_ws", "regexp_replace", "regexp_extract", "date_format"), STRING),
    **dict.fromkeys(("md5", "sha2", "translate"), STRING),
    **dict.fromkeys(("length", "char_length", "year", "quarter", "month", "day"), INT),
    **dict.fromkeys(("dayofmonth", "hour", "minute", "second", "datediff"), INT),
    **dict.fromkeys(("to_date", "date_add", "date_sub", "add_months", "last_day"), DATE),
    **dict.fromkeys(("startswith", "endswith", "contains"), BOOLEAN),
}
#: Those that give one of their arguments.
_CHOICES: Final = frozenset({"coalesce", "nvl", "ifnull", "greatest", "least"})
_MOST_DIGITS: Final = 38


@dataclass(frozen=True, slots=True)
class TypedSql:
    """Spark SQL of an expression, and its type where that is known without Spark."""

    sql: str
    type: DataType | None


def expression_sql(
    text: str, resolve: Resolve, columns: Mapping[str, DataType], *, step: str, where: str
) -> TypedSql:
    """Return the SQL of a user's expression over the columns of a step.

    Args:
        text: a scalar expression.
        resolve: gives each path that the text reads as it has to be written.
        columns: types of the columns, those that are known.
        step: the step, for messages.
        where: `file:line:col` for errors.

    Raises:
        ConfigError: what `validate_expression` raises, and POLYNYA-TRF-050 for a function of
            Polynya that cannot be rewritten here.
    """
    validate_expression(text, where=where)
    tree = exp.Paren(this=parse(text, where))
    for column in list(tree.find_all(exp.Column)):
        _resolve(column, resolve)
    for call, own in own_calls(tree):
        reason = "it is a value of the message or the file of a record" if own.header else None
        reason = "its value depends on the place of the record" if own.by_place else reason
        if reason is not None:
            raise FLOW_FUNCTION_REFUSED(
                where=where, step=step, function=shown(call.name), reason=reason
            )
    if own_calls(tree):
        rewrite(tree, columns, _context(columns, step, where), canonical_sql, where)
    return TypedSql(canonical_sql(tree.this), type_of(tree.this, columns))


def _resolve(column: exp.Column, resolve: Resolve) -> None:
    """Write the names of a column, and of fields after it, as they are."""
    parts = [part for part in column.parts if isinstance(part, exp.Identifier)]
    position = parts[0].meta.get("start")
    node: exp.Expr = column
    while isinstance(node.parent, exp.Dot) and isinstance(node.parent.expression, exp.Identifier):
        if node.parent.this is not node:
            break
        node = node.parent
        parts.append(node.expression)
    names, kind = resolve(tuple(part.name for part in parts), position)
    for part, name in zip(parts, names, strict=True):
        part.set("this", name)
    node.meta[_TYPE] = kind


def _context(columns: Mapping[str, DataType], step: str, where: str) -> ExpressionContext:
    """Where functions of Polynya are rewritten without Spark."""

    def kinds(fragments: Sequence[str]) -> list[DataType]:
        return [known(fragment) for fragment in fragments]

    def known(fragment: str) -> DataType:
        kind = type_of(parse(fragment, where), columns)
        if kind is None:
            raise FLOW_FUNCTION_REFUSED(
                where=where,
                step=step,
                function="a function of Polynya",
                reason=f"the type of {shown(fragment)} is not known before Spark looks at it",
                fix="put `CAST(… AS …)` around the argument, or use a function of Spark",
            )
        return kind

    def works(fragment: str) -> bool:
        raise FLOW_FUNCTION_REFUSED(
            where=where,
            step=step,
            function=shown(fragment),
            reason="only Spark can check its pattern",
            fix="use the function of Spark: `regexp_extract`, `date_format`, `to_timestamp`",
        )

    return ExpressionContext(kinds, works, "NULL")


def type_of(node: exp.Expr | None, columns: Mapping[str, DataType]) -> DataType | None:
    """The type that Spark gives to an expression; None where that is not plain."""
    if node is None:
        return None
    if _TYPE in node.meta:
        known: DataType | None = node.meta[_TYPE]
        return known
    if isinstance(node, _TRUTHS):
        return BOOLEAN
    rule = _RULES.get(type(node))
    return None if rule is None else rule(node, columns)


def _of_path(path: Sequence[str], columns: Mapping[str, DataType]) -> DataType | None:
    kind = columns.get(path[0])
    for name in path[1:]:
        field = None if kind is None else field_type(kind, name)
        kind = None if field is None else field[1]
    return kind


def _one_type(nodes: Sequence[exp.Expr | None], columns: Mapping[str, DataType]) -> DataType | None:
    """The type of all values but NULL; None where they differ or are not known."""
    kinds = {type_of(node, columns) for node in nodes if node is not None} - {Void()}
    return kinds.pop() if len(kinds) == 1 else None


def _of_call(call: exp.Anonymous, columns: Mapping[str, DataType]) -> DataType | None:
    name = call.name.lower()
    if own_function(call) is not None:
        return None
    if name in _CHOICES:
        return _one_type(call.expressions, columns)
    if name == "nullif":
        return type_of(call.expressions[0], columns)
    if name in {"concat", "substring", "substr", "replace"}:
        # The same functions take binary values and give them.
        text = [type_of(argument, columns) for argument in call.expressions]
        return STRING if STRING in text and (name != "concat" or set(text) == {STRING}) else None
    return _TYPES_OF_FUNCTIONS.get(name)


def _arithmetic(node: exp.Binary, columns: Mapping[str, DataType]) -> DataType | None:
    kinds = {type_of(side, columns) for side in (node.this, node.expression)}
    if kinds <= {INT, BIGINT}:
        if isinstance(node, exp.Div):
            return DOUBLE
        return BIGINT if BIGINT in kinds else INT
    return DOUBLE if DOUBLE in kinds and kinds <= {INT, BIGINT, DOUBLE} else None


def _digits(text: str) -> DataType | None:
    """The type that Spark gives to a number without exponent or suffix."""
    whole, point, places = text.partition(".")
    if not (whole + places).isdigit() or len(whole + places) > _MOST_DIGITS:
        return None
    if not point:
        number = int(whole)
        if number < 2**31:
            return INT
        return BIGINT if number < 2**63 else None
    scale = len(places)
    return Decimal(max(len(whole.lstrip("0")) + scale, scale, 1), scale)


def _of_literal(node: exp.Expr, _: Mapping[str, DataType]) -> DataType | None:
    return STRING if isinstance(node, exp.RawString) or node.is_string else _digits(node.name)


def _of_rewritten(node: exp.Expr, _: Mapping[str, DataType]) -> DataType | None:
    kind: DataType | None = node.meta.get("kind")
    return kind


def _of_case(node: exp.Expr, columns: Mapping[str, DataType]) -> DataType | None:
    branches = [branch.args.get("true") for branch in node.args["ifs"]]
    return _one_type([*branches, node.args.get("default")], columns)


def _of_text(node: exp.Expr, columns: Mapping[str, DataType]) -> DataType | None:
    # `||` also puts arrays and binary values together.
    sides = {type_of(side, columns) for side in (node.this, node.expression)}
    return STRING if sides == {STRING} else None


_RULES: Final[Mapping[type, Callable[[Any, Mapping[str, DataType]], DataType | None]]] = {
    **dict.fromkeys((exp.Paren, exp.Neg), lambda node, columns: type_of(node.this, columns)),
    **dict.fromkeys((exp.Literal, exp.RawString), _of_literal),
    **dict.fromkeys((exp.Add, exp.Sub, exp.Mul, exp.Div), _arithmetic),
    **dict.fromkeys(
        (exp.Cast, exp.TryCast), lambda node, _: known_type(node.to.sql(dialect="spark"))
    ),
    exp.Boolean: lambda _, __: BOOLEAN,
    exp.Null: lambda _, __: Void(),
    exp.Column: lambda node, columns: _of_path([part.name for part in node.parts], columns),
    exp.Var: _of_rewritten,
    exp.Case: _of_case,
    exp.DPipe: _of_text,
    exp.Anonymous: _of_call,
}


def field_type(kind: DataType | None, name: str) -> tuple[str, DataType | None] | None:
    """A field of a value by its name as it is spelled, with its type; None if it has none such.

    Of an array of structs the field is the array of theirs. Of a value whose type is not known, or
    is a map, every field may be there.
    """
    match kind:
        case None | MapType():
            return name, kind.value if isinstance(kind, MapType) else None
        case Array(element):
            inner = field_type(element, name)
            if inner is None or inner[1] is None:
                return inner
            return inner[0], Array(inner[1])
        case Struct(fields):
            same = [one for one in fields if one[0].lower() == name.lower()]
            return same[0] if same else None
        case Primitive() | Decimal() | Void():
            return None
