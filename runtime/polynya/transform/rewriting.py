"""Calls of Polynya's functions in a checked tree, written in Spark's own for the types they have.

It knows no Spark: where the expression runs (`functions.base.Place`) says what types arguments have
that cannot be told from here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from sqlglot import exp

from polynya.model.contract.identifiers import quote
from polynya.model.datatypes import (
    BIGINT,
    BOOLEAN,
    INT,
    STRING,
    TIMESTAMP,
    DataType,
    Decimal,
    Void,
)
from polynya.transform.calls import constant_of, is_qualified, own_calls
from polynya.transform.functions.base import Function, Place, Value, is_simple, null
from polynya.transform.parsing import refuse

_MOST_CHARACTERS: Final = 400_000
_KIND: Final = "kind"
#: Writes a tree as Spark SQL.
Generate: TypeAlias = Callable[[exp.Expr], str]


def rewrite(
    tree: exp.Expr,
    columns: Mapping[str, DataType],
    place: Place,
    generate: Generate,
    where: str | None = None,
) -> None:
    """Replace every call of Polynya's functions below a tree.

    Raises ConfigError: POLYNYA-EXP-006 for calls that become too long a text.
    """
    calls = own_calls(tree)
    while calls:
        # One question for all calls whose arguments are done.
        ready = [one for one in calls if not any(_is_within(other, one[0]) for other, _ in calls)]
        told = _kinds(
            [arg for call, _ in ready for arg in call.expressions], columns, place, generate
        )
        for call, own in ready:
            value = _built(
                own, [_value(arg, told, generate) for arg in call.expressions], columns, place
            )
            if len(value.sql) > _MOST_CHARACTERS:
                raise refuse("POLYNYA-EXP-006", f"too many calls of {own.name}", where)
            _put(call, value)
        done = {id(call) for call, _ in ready}
        calls = [one for one in calls if id(one[0]) not in done]


def _built(
    own: Function, arguments: Sequence[Value], columns: Mapping[str, DataType], place: Place
) -> Value:
    if own.header is not None:
        there = own.header in columns
        return Value(quote(own.header), columns[own.header]) if there else null(TIMESTAMP)
    assert own.build is not None, "the check refuses what cannot be called"
    return own.build(arguments, place)


def _is_within(inner: exp.Expr, outer: exp.Expr) -> bool:
    node = inner.parent
    while node is not None and node is not outer:
        node = node.parent
    return node is outer


def _put(call: exp.Anonymous, value: Value) -> None:
    node = exp.Var(this=value.sql if is_simple(value.sql) else f"({value.sql})")
    node.meta[_KIND] = value.kind
    target = call.parent if is_qualified(call) else call
    assert target is not None, "a qualified call has the dot above it"
    target.replace(node)


def _kinds(
    arguments: list[exp.Expr], columns: Mapping[str, DataType], place: Place, generate: Generate
) -> dict[int, DataType]:
    told: dict[int, DataType] = {}
    asked: dict[int, str] = {}
    for argument in arguments:
        kind = _known(argument, columns)
        if kind is None:
            asked[id(argument)] = generate(argument)
        else:
            told[id(argument)] = kind
    if asked:
        told |= dict(zip(asked, place.kinds(list(asked.values())), strict=True))
    return told


def _known(node: exp.Expr, columns: Mapping[str, DataType]) -> DataType | None:
    """The type of what needs no question."""
    if isinstance(node, exp.Neg):
        return _known(node.this, columns) if isinstance(node.this, exp.Literal) else None
    if isinstance(node, exp.Literal | exp.RawString):
        return STRING if isinstance(node, exp.RawString) or node.is_string else _digits(node.name)
    if isinstance(node, exp.Boolean):
        return BOOLEAN
    if isinstance(node, exp.Null):
        return Void()
    if isinstance(node, exp.Column):
        return columns.get(node.name) if len(node.parts) == 1 else None
    if isinstance(node, exp.Var):
        kind: DataType | None = node.meta.get(_KIND)
        return kind
    return None


def _digits(text: str) -> DataType | None:
    """The type that Spark gives to a number without exponent or suffix."""
    whole, point, places = text.partition(".")
    if not (whole + places).isdigit() or len(whole + places) > 18:
        return None
    if not point:
        return INT if int(whole) < 2**31 else BIGINT
    scale = len(places)
    return Decimal(max(len(whole.lstrip("0")) + scale, scale, 1), scale)


def _value(node: exp.Expr, told: Mapping[int, DataType], generate: Generate) -> Value:
    kind = told[id(node)]
    if isinstance(kind, Void):
        return Value("NULL", kind)
    sql = generate(node)
    return Value(sql if is_simple(sql) else f"({sql})", kind, constant_of(node))
