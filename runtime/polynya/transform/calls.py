"""Calls of Polynya's functions in a checked tree: which function it is, and whether it is right."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from polynya.model.contract.identifiers import shown
from polynya.model.documents.problems import suggest
from polynya.transform.functions.base import Function
from polynya.transform.functions.spark import ALLOWED_FUNCTIONS
from polynya.transform.functions.table import FUNCTIONS, QUALIFIER, needs_qualifier
from polynya.transform.parsing import refuse

_KNOWN: Final = sorted({*ALLOWED_FUNCTIONS, *(one.written for one in FUNCTIONS.values())})


def is_qualified(call: exp.Anonymous) -> bool:
    """Whether `polynya.` stands before a call."""
    dot = call.parent
    return (
        isinstance(dot, exp.Dot)
        and dot.expression is call
        and isinstance(dot.this, exp.Identifier)
        and dot.this.name.lower() == QUALIFIER
    )


def own_function(call: exp.Anonymous) -> Function | None:
    """The function of Polynya that is called; None where the call is one of Spark's, or wrong."""
    name = call.name.lower()
    if isinstance(call.this, exp.Identifier) or (not is_qualified(call) and needs_qualifier(name)):
        return None
    return FUNCTIONS.get(name)


def constant_of(node: exp.Expr) -> str | None:
    """What a literal says, as text; None for what is computed."""
    if isinstance(node, exp.Neg) and isinstance(node.this, exp.Literal):
        return f"-{node.this.this}"
    if isinstance(node, exp.Boolean):
        return "true" if node.this else "false"
    return str(node.this) if isinstance(node, exp.Literal | exp.RawString) else None


def check_call(call: exp.Anonymous, where: str | None) -> None:
    """Raise ConfigError for a call of a function that is not there, or not like this."""
    name, position = call.name, call.meta.get("start")
    own = own_function(call)
    if own is not None:
        _check_arguments(own, call, where)
        return
    if is_qualified(call) or isinstance(call.this, exp.Identifier) or not _is_sparks(name):
        error = refuse("POLYNYA-EXP-004", f"function {shown(name)} is not allowed", where, position)
        error.fix = _nearest(name)
        raise error
    if not call.expressions:
        # Without arguments `unix_timestamp()` is the clock, and no other function makes sense.
        raise refuse(
            "POLYNYA-EXP-004", f"function {shown(name)} needs an argument", where, position
        )
    if isinstance(call.parent, exp.Dot):
        raise refuse("POLYNYA-EXP-004", f"function {shown(name)} has a qualifier", where, position)


def _is_sparks(name: str) -> bool:
    return name.lower() in ALLOWED_FUNCTIONS


def _check_arguments(own: Function, call: exp.Anonymous, where: str | None) -> None:
    position = call.meta.get("start")
    if (
        isinstance(call.parent, exp.Dot)
        and call.parent.expression is call
        and not is_qualified(call)
    ):
        raise refuse(
            "POLYNYA-EXP-004", f"function {shown(own.name)} has a qualifier", where, position
        )
    if not own.is_callable:
        error = refuse(
            "POLYNYA-FUN-003",
            f"function {shown(own.name)} cannot be computed here",
            where,
            position,
        )
        error.fix = own.about
        raise error
    given = len(call.expressions)
    if given < own.fewest or (own.most is not None and given > own.most):
        error = refuse(
            "POLYNYA-FUN-001", f"wrong number of arguments for {own.name}: {given}", where, position
        )
        error.fix = f"write {own.signature}"
        raise error
    for index, argument in enumerate(call.expressions):
        parameter = own.parameter(index)
        if parameter.startswith("'") and constant_of(argument) is None:
            error = refuse(
                "POLYNYA-FUN-002",
                f"{parameter.rstrip('?+')} of {own.name} is not a literal",
                where,
                position,
            )
            error.fix = "write a text in quotes, a number, true or false there"
            raise error


def _nearest(name: str) -> str:
    hint = suggest(name.lower(), _KNOWN) or ""
    guess, _, _ = hint.rpartition("allowed here:")
    return (
        guess.strip()
        or "see `polynya functions`; the reference page of functions lists Spark's too"
    )


def own_calls(tree: exp.Expr) -> list[tuple[exp.Anonymous, Function]]:
    """All calls of Polynya's functions, the inner ones of each before it."""
    found = [
        (node, own)
        for node in tree.find_all(exp.Anonymous, bfs=False)
        if (own := own_function(node)) is not None
    ]
    return found[::-1]
