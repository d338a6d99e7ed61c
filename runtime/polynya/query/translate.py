"""Parse a statement to a tree that Spark surely reads the same way, or say why not.

Text that two SQL parsers may read differently is not examined further: Spark answers it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from polynya.transform.parsing import PlainParser


class NotEmbeddedError(Exception):
    """The embedded engine does not answer a statement; the text is the reason. Spark does.

    `start` is the place in the text of what it does not answer, where that is known.
    """

    start: int | None = None


def start_of(node: exp.Expr) -> int | None:
    """Where a node begins in the text; None where the parser did not keep it."""
    starts = [part.meta["start"] for part in node.walk() if "start" in part.meta]
    return min(starts, default=None)


def only(node: exp.Expr, *names: str) -> None:
    """Raise NotEmbeddedError where a node says more than these of its parts."""
    for name, value in node.args.items():
        if name not in names and value not in (None, False, []):
            raise NotEmbeddedError(f"{kind(node)} with {name.rstrip('_').replace('_', ' ')}")


def kind(node: exp.Expr) -> str:
    """What a node is, for a reason."""
    if isinstance(node, exp.Anonymous):
        return f"the function {node.name.lower()}"
    return type(node).__name__.upper()


MAX_LENGTH: Final = 50_000
MAX_TOKENS: Final = 5_000
#: Strings side by side are one for Spark; where a name may stand, sqlglot takes a string for one.
_NO_STRING_AFTER: Final = frozenset(
    {
        TokenType.STRING, TokenType.ALIAS, TokenType.VAR, TokenType.IDENTIFIER, TokenType.NUMBER,
        TokenType.R_PAREN,
    }
)  # fmt: skip


def parsed(text: str) -> exp.Query:
    """The tree of one query, every call in it as it was written.

    Raises:
        NotEmbeddedError: the text is not a query, or perhaps another one for Spark.
    """
    if len(text) > MAX_LENGTH:
        raise NotEmbeddedError(f"a statement of more than {MAX_LENGTH:,} characters")
    for part, name in (("\\", "a backslash"), ("/*", "a comment in `/* */`")):
        if part in text:
            raise NotEmbeddedError(name)
    try:
        tokens = Spark().tokenize(text)
        _check(tokens, text)
        trees = PlainParser(dialect=Spark()).parse(tokens, text)
    except (SqlglotError, RecursionError) as error:
        raise NotEmbeddedError("SQL that only Spark's parser may know") from error
    if len(trees) != 1 or not isinstance(trees[0], exp.Select | exp.Union):
        what = kind(trees[0]) if trees and trees[0] is not None else "nothing"
        raise NotEmbeddedError(f"a statement of the kind {what}")
    return trees[0]


def _check(tokens: Sequence[Token], text: str) -> None:
    if len(tokens) > MAX_TOKENS:
        raise NotEmbeddedError(f"a statement of more than {MAX_TOKENS:,} words and symbols")
    if not tokens or tokens[0].token_type not in {TokenType.SELECT, TokenType.WITH}:
        raise NotEmbeddedError("a statement that does not begin with SELECT or WITH")
    before: Token | None = None
    for token in tokens:
        if token.token_type is TokenType.SEMICOLON:
            raise NotEmbeddedError("a semicolon")
        if token.token_type is TokenType.STRING:
            raw = text[token.start : token.end + 1]
            if raw[1:-1] != token.text or raw[:1] not in {"'", '"'}:
                raise NotEmbeddedError("a string with a quote in it")
            if before is not None and before.token_type in _NO_STRING_AFTER:
                raise NotEmbeddedError("a string where Spark may see none")
        before = token
