"""One user's expression from text to a sqlglot tree, without any rewriting of functions.

sqlglot knows many functions and translates them, format strings included. Here every call stays as
it was written, so that Spark computes what the user wrote. String literals are read by Spark's own
rules, which differ from sqlglot's in their escapes.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar, Final

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, TokenError
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType

from polynya.model.errors import ConfigError

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


def refuse(code: str, message: str, where: str | None, position: int | None = None) -> ConfigError:
    """Make the error of an expression; `position` is the 0-based offset in its text."""
    at = "" if position is None else f" at position {position + 1}"
    return ConfigError(
        code,
        f"expression: {message}{at}",
        where=where,
        state="nothing was read or written with this expression",
    )


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
            "POLYNYA-EXP-001", f"not valid SQL: {problem.rstrip('.')} ({at})", where
        ) from None
    except RecursionError:
        raise refuse("POLYNYA-EXP-006", "nested too deep", where) from None
    if len(trees) != 1 or trees[0] is None:
        raise refuse("POLYNYA-EXP-002", "has to be exactly one expression", where)
    tree: exp.Expr = trees[0]
    return tree


def _tokens(text: str, where: str | None) -> list[Token]:
    """Return the tokens, after the checks that need no tree: size, depth, comments, queries."""
    if len(text) > MAX_LENGTH:
        raise refuse("POLYNYA-EXP-006", f"longer than {MAX_LENGTH} characters", where)
    try:
        tokens = Spark().tokenize(text)
    except TokenError:
        raise refuse("POLYNYA-EXP-001", "not valid SQL: a quote is not closed", where) from None
    if not tokens:
        raise refuse("POLYNYA-EXP-002", "has to be exactly one expression", where)
    if len(tokens) > MAX_TOKENS:
        raise refuse("POLYNYA-EXP-006", f"more than {MAX_TOKENS} words and symbols", where)
    depth = 0
    for token in tokens:
        kind = token.token_type
        depth += (kind in _OPENING) - (kind in _CLOSING)
        if depth > MAX_DEPTH:
            raise refuse("POLYNYA-EXP-006", "nested too deep", where, token.start)
        if token.comments or kind == TokenType.HINT:
            raise refuse("POLYNYA-EXP-007", "comments and hints are not allowed", where)
        if kind == TokenType.SEMICOLON:
            raise refuse("POLYNYA-EXP-002", "`;` is not allowed", where, token.start)
        if kind in _QUERY:
            raise refuse(
                "POLYNYA-EXP-003", "sub-queries and tables are not allowed", where, token.start
            )
    _name_calls(tokens)
    return _with_spark_strings(tokens, text)


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


def _with_spark_strings(tokens: list[Token], text: str) -> list[Token]:
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
