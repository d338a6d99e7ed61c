"""Conditions in the SQL of a source database: each is one condition and cannot end its statement.

A condition becomes part of statements at the source, so two readers check its text. The first
follows quotes and parentheses by the rules of the database and refuses what two parsers read in
different ways: comments, semicolons, other kinds of quotes. The second is a parser, which refuses
everything that writes. The database itself then reads the condition as part of one prepared
statement.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from sqlglot import exp, parse
from sqlglot.errors import SqlglotError

from polynya.model.error_catalogue.capture import SOURCE_CONDITION_REFUSED
from polynya.model.names import shown


@dataclass(frozen=True, slots=True)
class _Quotes:
    """How a database reads quotes: each is closed by itself and doubled inside.

    `escapes`: in texts a backslash takes the next character. `texts` are those around texts.
    """

    dialect: str
    all: str
    texts: str
    escapes: bool


_POSTGRESQL: Final = _Quotes("postgres", "'\"", "'", escapes=False)
#: With the SQL mode that the sessions of a capture set.
_MYSQL: Final = _Quotes("mysql", "'\"`", "'\"", escapes=True)
_OF_TYPE: Final = {"postgresql": _POSTGRESQL, "mariadb": _MYSQL, "mysql": _MYSQL}

_MAX_DEPTH: Final = 100
_PAIRS: Final = {")": "(", "]": "["}
#: Outside of quotes. What follows `$` may be a quote of PostgreSQL, `/*!` is run by MySQL.
_REFUSED: Final = (
    (";", "a semicolon"),
    ("--", "a comment"),
    ("/*", "a comment"),
    ("*/", "a comment"),
    ("#", "a `#`, which begins a comment in some databases"),
    ("$", "a `$`, which begins a quote in some databases"),
    ("\\", "a backslash outside of quotes"),
    (":=", "an assignment"),
    ("@", "a variable"),
    ("\0", "a zero byte"),
)
#: Operators of PostgreSQL with such a character.
_OPERATORS: Final = re.compile(r"@>|<@|@@@?|@\?|#>>?|#-|~@|\|@")
#: `E'…'` and `U&'…'` of PostgreSQL have escapes; MySQL takes `_utf8'…'` and `N'…'`.
_PREFIXED: Final = re.compile(r"(?<![\w\"'])(?:E|U&)['\"]", re.IGNORECASE)
_WRITING: Final = (
    exp.DML, exp.DDL, exp.Command, exp.Into, exp.Lock, exp.Set, exp.Drop, exp.Alter,
    exp.Alias, exp.Aliases, exp.Parameter, exp.SessionParameter, exp.Placeholder,
)  # fmt: skip
#: Functions that write, wait, run text as SQL, reach files or other servers.
_EFFECTS: Final = re.compile(
    r"pg_(?!typeof$|column_size$|collation_for$).*|lo_.*|dblink.*|.*_to_xml.*|set_config|setval"
    r"|nextval|currval|lastval|txid_current|sys_(exec|eval|get|set)|load_file|sleep|benchmark"
    r"|get_lock|release_(all_)?locks?|is_(free|used)_lock|master_.*wait|wait_.*|.*_wait"
    r"|uuid_short|last_insert_id|query_to_.*|cursor_to_.*|plpy.*|xp_.*",
    re.IGNORECASE,
)


@lru_cache(maxsize=256)
def checked_condition(text: str, database: str, where: str | None = None) -> str:
    """The condition in parentheses, as a part of a statement for a database of this type.

    Raises:
        ConfigError: POLYNYA-GTW-093, it is not one condition that only reads.
    """
    quotes = _OF_TYPE.get(database)
    reason = "this type of database takes none" if quotes is None else _why_refused(text, quotes)
    if reason is not None:
        condition = shown(text[:200])
        raise SOURCE_CONDITION_REFUSED(where=where, condition=condition, reason=reason)
    return f"({text})"


def _why_refused(text: str, quotes: _Quotes) -> str | None:
    return _broken(text, quotes) or _not_a_condition(text, quotes)


def _broken(text: str, quotes: _Quotes) -> str | None:
    """Why the text may end what it stands in, by the quotes of the database."""
    at, open_ones = 0, list[str]()
    while at < len(text):
        letter = text[at]
        if letter in quotes.all:
            end = _end_of_quote(text, at, quotes)
            if end is None:
                return f"a quote {letter} is not closed"
            at = end
            continue
        if quotes is _POSTGRESQL:
            if _PREFIXED.match(text, at):
                return "a text with escapes, such as `E'...'`"
            operator = _OPERATORS.match(text, at)
            if operator:
                at = operator.end()
                continue
        for part, name in _REFUSED:
            if text.startswith(part, at):
                return name
        if letter in "([":
            open_ones.append(letter)
        elif letter in _PAIRS and (not open_ones or open_ones.pop() != _PAIRS[letter]):
            return f"`{letter}` closes what it has not opened"
        if len(open_ones) > _MAX_DEPTH:
            return "nested too deep"
        at += 1
    return f"`{open_ones[-1]}` is not closed" if open_ones else None


def _end_of_quote(text: str, begin: int, quotes: _Quotes) -> int | None:
    """Where the quote that begins here has ended; None: nowhere."""
    quote, at = text[begin], begin + 1
    escapes = quotes.escapes and quote in quotes.texts
    while at < len(text):
        if text[at] == "\0":
            return None
        if escapes and text[at] == "\\":
            at += 2
        elif text[at] != quote:
            at += 1
        elif text.startswith(quote, at + 1):
            at += 2
        else:
            return at + 1
    return None


def _not_a_condition(text: str, quotes: _Quotes) -> str | None:
    """Why a parser finds that the text is not a condition that only reads."""
    try:
        trees = parse(f"SELECT 1 FROM t WHERE ({text})", read=quotes.dialect)
    except (SqlglotError, RecursionError) as error:
        lines = str(error).splitlines()
        return f"it cannot be read: {lines[0] if lines else 'nested too deep'}"
    tree = trees[0] if len(trees) == 1 else None
    parts = {name for name, value in tree.args.items() if value} if tree else set()
    if not isinstance(tree, exp.Select) or parts != {"expressions", "from_", "where"}:
        return "it is more than a condition"
    condition = tree.args["where"].this
    if not isinstance(condition, exp.Paren):
        return "it is more than a condition"
    for node in condition.walk():
        if isinstance(node, _WRITING):
            return f"{type(node).__name__.lower()} is not for a condition"
        if isinstance(node, exp.Func) and _EFFECTS.fullmatch(_called(node)):
            return f"the function {_called(node)} does more than compute"
    return None


def _called(node: exp.Func) -> str:
    return str(node.name if isinstance(node, exp.Anonymous) else node.sql_name())
