"""Parse a user's expression into a checked tree, and rewrite Polynya's functions as Spark's.

sqlglot knows many functions and translates them, format strings included. This parser keeps every
call as it was written, so that Spark computes what the user wrote. It reads string literals by
Spark's own rules, which differ from sqlglot's in their escapes.

`rewrite` writes calls of Polynya's functions in Spark's own for the types of their arguments. It
does not use Spark: `functions.core.Place` gives the types that the tree alone does not show.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final, TypeAlias

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, TokenError
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType

from polynya.model.documents.problems import suggest
from polynya.model.error_catalogue.entry import ErrorEntry
from polynya.model.error_catalogue.expressions import (
    ARGUMENT_NOT_LITERAL,
    COMMENT_IN_EXPRESSION,
    EXPRESSION_NOT_SQL,
    EXPRESSION_TOO_LARGE,
    FUNCTION_NOT_ALLOWED,
    FUNCTION_NOT_COMPUTABLE,
    NOT_ONE_EXPRESSION,
    QUERY_IN_EXPRESSION,
    WRONG_ARGUMENT_COUNT,
)
from polynya.model.errors import ConfigError
from polynya.model.names import quote, shown
from polynya.model.types import BIGINT, BOOLEAN, INT, STRING, TIMESTAMP, DataType, Decimal, Void
from polynya.transform.functions.core import (
    ALLOWED_FUNCTIONS,
    ExpressionContext,
    Function,
    Value,
    is_simple,
    null,
)
from polynya.transform.functions.table import FUNCTIONS, LEFT_OUT, QUALIFIER, needs_qualifier

MAX_LENGTH: Final = 4000
MAX_TOKENS: Final = 1000
MAX_DEPTH: Final = 32

_OPENING: Final = {TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE, TokenType.CASE}
_CLOSING: Final = {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE, TokenType.END}
#: Operators that also are functions of Polynya.
_OPERATORS: Final = {TokenType.AND, TokenType.OR, TokenType.NOT, TokenType.BETWEEN}
_BEFORE_OPERANDS: Final = {
    None,
    *(TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.COMMA, TokenType.AND, TokenType.OR),
    *(TokenType.NOT, TokenType.EQ, TokenType.NEQ, TokenType.NULLSAFE_EQ, TokenType.LT),
    *(TokenType.LTE, TokenType.GT, TokenType.GTE, TokenType.CASE, TokenType.WHEN),
    *(TokenType.THEN, TokenType.ELSE),
}
_QUERY: Final = {TokenType.SELECT, TokenType.WITH}
_CLASS: Final = re.compile(r"missing for <class '[\w.]*?(\w+)'>")
_ESCAPE: Final = re.compile(r"\\(u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|[0-3][0-7]{2}|.)", re.DOTALL)
_NAMED_ESCAPES: Final = {
    "0": "\0",
    "b": "\b",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "Z": "\x1a",
    # Kept with their backslash: they are escapes of LIKE, not of strings.
    "%": "\\%",
    "_": "\\_",
}


class PlainParser(SparkParser):
    """Spark's parser with every function anonymous and no syntax of its own but CASE and CAST."""

    FUNCTIONS: ClassVar[dict[str, Any]] = {}
    FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
        name: SparkParser.FUNCTION_PARSERS[name] for name in ("CAST", "TRY_CAST")
    }
    NO_PAREN_FUNCTIONS: ClassVar[dict[Any, Any]] = {}
    NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
        "CASE": SparkParser.NO_PAREN_FUNCTION_PARSERS["CASE"]
    }


def refuse(
    entry: ErrorEntry[ConfigError],
    message: str,
    where: str | None,
    position: int | None = None,
    *,
    fix: str | None = None,
) -> ConfigError:
    """Make the error of an expression; `position` is the 0-based offset in its text."""
    at = "" if position is None else f" at position {position + 1}"
    return entry(f"expression: {message}{at}", where=where, fix=fix)


def parse(text: str, where: str | None) -> exp.Expr:
    """Return the tree of exactly one expression, or raise ConfigError."""
    tokens = _tokens(text, where)
    try:
        trees = PlainParser(dialect=Spark()).parse(tokens, text)
    except ParseError as error:
        # sqlglot counts columns at the end of the token, lines from 1.
        details = error.errors[0] if error.errors else {}
        problem = _CLASS.sub(r"missing for \1", str(details.get("description", "syntax error")))
        at = f"line {details.get('line', 1)}, column {details.get('col', 1)}"
        raise refuse(
            EXPRESSION_NOT_SQL, f"not valid SQL: {problem.rstrip('.')} ({at})", where
        ) from None
    except RecursionError:
        raise refuse(EXPRESSION_TOO_LARGE, "nested too deep", where) from None
    if len(trees) != 1 or trees[0] is None:
        raise refuse(NOT_ONE_EXPRESSION, "has to be exactly one expression", where)
    tree: exp.Expr = trees[0]
    return tree


def _tokens(text: str, where: str | None) -> list[Token]:
    """Return the tokens, after the checks that need no tree: size, depth, comments, queries."""
    if len(text) > MAX_LENGTH:
        raise refuse(EXPRESSION_TOO_LARGE, f"longer than {MAX_LENGTH} characters", where)
    try:
        tokens = Spark().tokenize(text)
    except TokenError:
        raise refuse(EXPRESSION_NOT_SQL, "not valid SQL: a quote is not closed", where) from None
    if not tokens:
        raise refuse(NOT_ONE_EXPRESSION, "has to be exactly one expression", where)
    if len(tokens) > MAX_TOKENS:
        raise refuse(EXPRESSION_TOO_LARGE, f"more than {MAX_TOKENS} words and symbols", where)
    depth = 0
    for token in tokens:
        kind = token.token_type
        depth += (kind in _OPENING) - (kind in _CLOSING)
        if depth > MAX_DEPTH:
            raise refuse(EXPRESSION_TOO_LARGE, "nested too deep", where, token.start)
        if token.comments or kind == TokenType.HINT:
            raise refuse(COMMENT_IN_EXPRESSION, "comments and hints are not allowed", where)
        if kind == TokenType.SEMICOLON:
            raise refuse(NOT_ONE_EXPRESSION, "`;` is not allowed", where, token.start)
        if kind in _QUERY:
            raise refuse(
                QUERY_IN_EXPRESSION, "sub-queries and tables are not allowed", where, token.start
            )
    _name_calls(tokens)
    return with_spark_strings(tokens, text)


def _name_calls(tokens: list[Token]) -> None:
    """Let `between(a, 1, 2)` and `polynya.not(a)` be calls, and not the operators of that name."""
    for index, token in enumerate(tokens[:-1]):
        if token.token_type not in _OPERATORS or tokens[index + 1].token_type != TokenType.L_PAREN:
            continue
        before = tokens[index - 1].token_type if index else None
        if before == TokenType.DOT or (token.token_type == TokenType.BETWEEN and _starts(before)):
            token.token_type = TokenType.VAR


def _starts(before: TokenType | None) -> bool:
    """Whether an operand, not an operator, comes after a token."""
    return before in _BEFORE_OPERANDS


def with_spark_strings(tokens: list[Token], text: str) -> list[Token]:
    """Give string tokens the value that Spark reads; join `'it''s'`, for sqlglot two strings."""
    result: list[Token] = []
    for token in tokens:
        if token.token_type != TokenType.STRING:
            result.append(token)
            continue
        raw = text[token.start : token.end + 1]
        token.text = unescape(raw[1:-1])
        last = result[-1] if result else None
        if (
            last is not None
            and last.token_type == TokenType.STRING
            and last.end + 1 == token.start
            and text[last.end] == raw[0]
        ):
            last.text += raw[0] + token.text
            last.end = token.end
        else:
            result.append(token)
    return result


def unescape(body: str) -> str:
    """Return the value of a string literal's inside by Spark's rules."""

    def value(match: re.Match[str]) -> str:
        escape = match[1]
        if len(escape) == 1:
            return _NAMED_ESCAPES.get(escape, escape)
        if escape[0] in "uU":
            number = int(escape[1:], 16)
            return chr(number) if number <= 0x10FFFF else "\ufffd"
        return chr(int(escape, 8))

    return _ESCAPE.sub(value, body)


_ALL_FUNCTIONS: Final = sorted(
    {*ALLOWED_FUNCTIONS, *(function.written for function in FUNCTIONS.values())}
)


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
        if reason := LEFT_OUT.get(name.lower()):
            message = f"function {shown(name)} cannot be computed"
            raise refuse(FUNCTION_NOT_COMPUTABLE, message, where, position, fix=reason)
        message = f"function {shown(name)} is not allowed"
        raise refuse(FUNCTION_NOT_ALLOWED, message, where, position, fix=_nearest(name))
    if not call.expressions:
        # Without arguments `unix_timestamp()` is the clock, and no other function makes sense.
        raise refuse(
            FUNCTION_NOT_ALLOWED, f"function {shown(name)} needs an argument", where, position
        )
    if isinstance(call.parent, exp.Dot):
        raise refuse(
            FUNCTION_NOT_ALLOWED, f"function {shown(name)} has a qualifier", where, position
        )


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
            FUNCTION_NOT_ALLOWED, f"function {shown(own.name)} has a qualifier", where, position
        )
    given = len(call.expressions)
    if given < own.fewest or (own.most is not None and given > own.most):
        message = f"wrong number of arguments for {own.name}: {given}"
        fix = f"write {own.signature}"
        raise refuse(WRONG_ARGUMENT_COUNT, message, where, position, fix=fix)
    for index, argument in enumerate(call.expressions):
        parameter = own.parameter(index)
        if parameter.startswith("'") and constant_of(argument) is None:
            message = f"{parameter.rstrip('?+')} of {own.name} is not a literal"
            raise refuse(ARGUMENT_NOT_LITERAL, message, where, position)


def _nearest(name: str) -> str:
    hint = suggest(name.lower(), _ALL_FUNCTIONS) or ""
    guess, _, _ = hint.rpartition("allowed here:")
    return (
        guess.strip()
        or "see `polynya functions`; the reference page of functions lists Spark's too"
    )


def own_calls(tree: exp.Expr) -> list[tuple[exp.Anonymous, Function]]:
    """All calls of Polynya's functions, the inner ones of each before it."""
    calls = [
        (node, own)
        for node in tree.find_all(exp.Anonymous, bfs=False)
        if (own := own_function(node)) is not None
    ]
    return calls[::-1]


_MAX_REWRITTEN_CHARACTERS: Final = 400_000
_KIND: Final = "kind"
#: Writes a tree as Spark SQL.
Generate: TypeAlias = Callable[[exp.Expr], str]


def rewrite(
    tree: exp.Expr,
    columns: Mapping[str, DataType],
    place: ExpressionContext,
    generate: Generate,
    where: str | None = None,
) -> None:
    """Replace every call of Polynya's functions below a tree.

    Raises ConfigError: POLYNYA-EXP-006 for calls that become too long a text.
    """
    calls = own_calls(tree)
    while calls:
        # One question for all calls whose arguments are done.
        ready = [
            call for call in calls if not any(_is_within(other, call[0]) for other, _ in calls)
        ]
        types = _kinds(
            [arg for call, _ in ready for arg in call.expressions], columns, place, generate
        )
        for call, own in ready:
            value = _built(
                own, [_value(arg, types, generate) for arg in call.expressions], columns, place
            )
            if len(value.sql) > _MAX_REWRITTEN_CHARACTERS:
                raise refuse(EXPRESSION_TOO_LARGE, f"too many calls of {own.name}", where)
            _put(call, value)
        done = {id(call) for call, _ in ready}
        calls = [call for call in calls if id(call[0]) not in done]


def _built(
    own: Function,
    arguments: Sequence[Value],
    columns: Mapping[str, DataType],
    place: ExpressionContext,
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
    arguments: list[exp.Expr],
    columns: Mapping[str, DataType],
    place: ExpressionContext,
    generate: Generate,
) -> dict[int, DataType]:
    types: dict[int, DataType] = {}
    asked: dict[int, str] = {}
    for argument in arguments:
        kind = _known_type(argument, columns)
        if kind is None:
            asked[id(argument)] = generate(argument)
        else:
            types[id(argument)] = kind
    if asked:
        types |= dict(zip(asked, place.kinds(list(asked.values())), strict=True))
    return types


def _known_type(node: exp.Expr, columns: Mapping[str, DataType]) -> DataType | None:
    """The type of what needs no question."""
    if isinstance(node, exp.Neg):
        return _known_type(node.this, columns) if isinstance(node.this, exp.Literal) else None
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


def _value(node: exp.Expr, types: Mapping[int, DataType], generate: Generate) -> Value:
    kind = types[id(node)]
    if isinstance(kind, Void):
        return Value("NULL", kind)
    sql = generate(node)
    return Value(sql if is_simple(sql) else f"({sql})", kind, constant_of(node))
