"""The tables that a query names, and the query over other relations in their place.

Polynya replaces table names in a user's query and keeps every other character. It never generates
the query from a parse tree.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import pairwise
from typing import Any, Final

import sqlglot
from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, SqlglotError, TokenError
from sqlglot.optimizer.scope import traverse_scope
from sqlglot.tokenizer_core import Token, TokenType

from polynya.lake.read.functions import READING_FUNCTIONS, REFUSED_FUNCTIONS
from polynya.model.error_catalogue.derived import QUERY_REFUSED
from polynya.model.names import quote, shown

# A text that does not parse is an error here; sqlglot would also log it.
logging.getLogger("sqlglot").setLevel(logging.ERROR)

#: What no comma stands before, and which Spark would read as the name of a column.
_NEVER_AFTER_COMMA: Final = frozenset(
    {
        TokenType.FROM, TokenType.WHERE, TokenType.GROUP_BY, TokenType.HAVING, TokenType.ORDER_BY,
        TokenType.UNION, TokenType.R_PAREN,
    }
)  # fmt: skip
#: Words that queries are made of, for those that are mistyped.
_KEYWORDS: Final = (
    "SELECT", "DISTINCT", "FROM", "WHERE", "GROUP", "ORDER", "HAVING", "JOIN", "INNER", "OUTER",
    "LEFT", "RIGHT", "CROSS", "UNION", "EXCEPT", "INTERSECT", "USING", "WITH", "WHEN", "THEN",
    "ELSE", "BETWEEN", "PARTITION",
)  # fmt: skip
#: How the parser prints a token, and the class of a part that is missing.
_PRINTED_TOKEN: Final = re.compile(r"<Token [^>]*?\btext: (\S+?),[^>]*>")
_MISSING_PART: Final = re.compile(r"Required keyword: '\w+' missing for .*")
#: Parts of a query that say which state or which share of a table is read.
_OF_TABLES = ("sample", "version", "when", "changes", "partition", "only")


@dataclass(frozen=True, slots=True)
class TableReference:
    """A table that a query names, once for each place.

    `name` is `schema.table` or `table`; characters `start` to `end`, the last one not included, are
    its text. `alias` is what its columns may be qualified with, where the query gives none.
    """

    name: str
    start: int
    end: int
    line: int
    column: int
    alias: str | None


@dataclass(frozen=True, slots=True)
class NarrowedText:
    """A relation of a query, from `start` to `end`, of which rows `v` with some keys `k` are read.

    `keys` is a relation, `condition` compares both, and `alias` is that of a table without one.
    """

    start: int
    end: int
    alias: str | None
    keys: str
    condition: str


@dataclass(frozen=True, slots=True)
class ParsedQuery:
    """A query, the tables that it names, and stretches of text that qualify them elsewhere."""

    text: str
    tables: tuple[TableReference, ...]
    qualifiers: tuple[tuple[int, int], ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The tables, each once, in the order of the text."""
        return tuple(dict.fromkeys(table.name for table in self.tables))

    def over(self, relations: Mapping[str, str], narrowed: Sequence[NarrowedText] = ()) -> str:
        """The text with another relation, by its quoted name, for each table.

        Of the relations at the places of `narrowed`, only some rows are read.
        """
        edits = self._edits(relations, {(one.start, one.end) for one in narrowed})
        for one in narrowed:
            named = "" if one.alias is None else f" AS {quote(one.alias)}"
            rows = f" v LEFT SEMI JOIN {one.keys} k ON {one.condition}){named}"
            edits += [(one.start, one.start, "(SELECT v.* FROM "), (one.end, one.end, rows)]
        text = self.text
        for start, end, new in sorted(edits, reverse=True):
            text = text[:start] + new + text[end:]
        return text

    def place(self, relations: Mapping[str, str], start: int) -> tuple[int, int]:
        """Line and column here of a place in the text that `over` makes, both from 1."""
        shift = 0
        for begin, end, new in sorted(self._edits(relations, set())):
            if begin + shift > start:
                break
            # What stands in a new name stands at its beginning here.
            if begin + shift + len(new) > start:
                start = begin + shift
                break
            shift += len(new) - (end - begin)
        before = self.text[: start - shift]
        return before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1

    def _edits(
        self, relations: Mapping[str, str], unnamed: Collection[tuple[int, int]]
    ) -> list[tuple[int, int, str]]:
        """What is replaced: start, end and the new text; tables at `unnamed` get no alias."""
        edits = [(start, end, "") for start, end in self.qualifiers]
        for table in self.tables:
            named = "" if table.alias is None else f" AS {quote(table.alias)}"
            if (table.start, table.end) in unnamed:
                named = ""
            edits.append((table.start, table.end, f"{relations[table.name]}{named}"))
        return edits


def parsed_query(text: str, where: str) -> ParsedQuery:
    """Find the tables of a query in Spark's SQL. `where` is the table that it makes, for errors.

    Raises OperationError for a text that is not one `SELECT`, and for a table that is read in part
    or as of another time.
    """
    text = text.strip().removesuffix(";").rstrip()
    dialect = Spark()
    try:
        tokens = dialect.tokenize(text)
        statements = dialect.parser().parse(tokens, text)
    except (SqlglotError, RecursionError) as error:
        raise QUERY_REFUSED(where=where, reason=_reason(error), fix=_fix(text, error)) from error
    if len(statements) != 1 or not isinstance(statements[0], exp.Query):
        raise QUERY_REFUSED(where=where, reason="it is not one `SELECT`", fix=_ONE)
    query = statements[0]
    _refuse_commas(tokens, where)
    _refuse_calls(query, where)
    tables = sorted(
        (_reference(table, where) for table in _tables_of(query)), key=lambda table: table.start
    )
    named = {table.name for table in tables}
    # `shop.users.id`; of `users.address.city` only the text differs.
    qualifiers = [
        (schema.meta["start"], table.meta["start"])
        for column in query.find_all(exp.Column)
        if (schema := column.args.get("db")) is not None
        and (table := column.args.get("table")) is not None
        and f"{schema.name}.{table.name}" in named
    ]
    return ParsedQuery(text, tuple(tables), tuple(qualifiers))


@dataclass(frozen=True, slots=True)
class NamedPart:
    """A part of a query that a `WITH` names, or the `SELECT` after them, whose name is empty."""

    name: str
    reads: tuple[str, ...]
    columns: tuple[str, ...]
    sql: str


def named_parts(text: str, where: str) -> list[NamedPart]:
    """The parts of a query in their order; none without a `WITH`. Raises as `parsed_query`."""
    parsed = parsed_query(text, where)
    query = sqlglot.parse_one(parsed.text, read="spark")
    if not isinstance(query, exp.Query) or not query.ctes:
        return []
    body = query.copy()
    for name in [name for name, value in body.args.items() if isinstance(value, exp.With)]:
        body.set(name, None)
    named = [(one.alias, one.this) for one in query.ctes]
    return [_part(name, part) for name, part in [*named, ("", body)]]


def part_query(text: str, number: int, where: str) -> str | None:
    """A query of the rows of one part, by its number among `named_parts`; None if it has fewer.

    A query without a `WITH` is its own only part. Raises as `parsed_query`.
    """
    parsed = parsed_query(text, where)
    query = sqlglot.parse_one(parsed.text, read="spark")
    parts = query.ctes if isinstance(query, exp.Query) else []
    if number >= len(parts):
        return parsed.text if number == len(parts) else None
    ((given, named),) = ((n, one) for n, one in query.args.items() if isinstance(one, exp.With))
    part = exp.to_identifier(parts[number].alias, quoted=True)
    only = exp.select("*").from_(exp.Table(this=part))
    # What comes after the part may be wrong.
    named.set("expressions", parts[: number + 1])
    only.set(given, named)
    return only.sql(dialect="spark")


def _part(name: str, query: exp.Query) -> NamedPart:
    reads = (".".join(part.name for part in one.parts) for one in query.find_all(exp.Table))
    return NamedPart(
        name,
        tuple(dict.fromkeys(reads)),
        tuple(query.named_selects),
        query.sql(dialect="spark", pretty=True),
    )


_SPELLING = "look for a bracket or a quote that is not closed; the SQL is Spark's"
_ONE = "write one `SELECT`, which may begin with `WITH`, and no second statement"


def _reason(error: SqlglotError | RecursionError) -> str:
    """What the parser says, with the place in the text."""
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    if isinstance(error, ParseError) and error.errors:
        first = error.errors[0]
        found, what = _highlight(first), str(first.get("description")).removesuffix(".")
        what = _PRINTED_TOKEN.sub(r"`\1`", what)
        if what == "Invalid expression / Unexpected token":
            what = f"{found} was not expected"
        elif what == "Expecting )":
            # At the end of the text the parser names its last word.
            is_last = not str(first.get("end_context") or "").strip()
            what = f"`)` was expected {'after' if is_last else 'before'} {found}"
        elif _MISSING_PART.fullmatch(what):
            what = f"something is missing at {found}"
        # The parser names the place of the last character.
        column = int(first.get("col") or 1) - len(str(first.get("highlight") or "x")) + 1
        return f"{what} at line {first.get('line')}, column {max(1, column)} of the query"
    if isinstance(error, TokenError):
        return "a quote or a comment is not closed"
    return str(error).splitlines()[0]


def _highlight(first: Mapping[str, Any]) -> str:
    """The text that the parser has stopped at, for people."""
    text = str(first.get("highlight") or "").strip()
    return shown(text) if text else "the end"


def _fix(text: str, error: SqlglotError | RecursionError) -> str:
    """The keyword that is mistyped before the place where the parser has stopped, if one is."""
    details = error.errors[0] if isinstance(error, ParseError) and error.errors else {}
    before = str(details.get("start_context") or "").split()
    words = [*text.split(maxsplit=1)[:1], *before[-1:], str(details.get("highlight") or "")]
    for word in words:
        # `orders` is a name.
        if word.isalpha() and not word.upper().startswith(_KEYWORDS):
            near = get_close_matches(word.upper()[:20], _KEYWORDS, n=1, cutoff=0.75)
            if near:
                return f"did you mean `{near[0]}` instead of {shown(word)}?"
    return _SPELLING


def _refuse_commas(tokens: Sequence[Token], where: str) -> None:
    """Raise OperationError for a comma with nothing behind it."""
    for token, behind in pairwise(tokens):
        if token.token_type is TokenType.COMMA and behind.token_type in _NEVER_AFTER_COMMA:
            place = f"line {token.line}, column {token.col} of the query"
            raise QUERY_REFUSED(
                where=where,
                reason=f"a comma stands before {shown(behind.text)} at {place}",
                fix="take the comma out, or write what comes after it",
            )


def _refuse_calls(query: exp.Query, where: str) -> None:
    """Raise OperationError for a function that Spark does not have, or that does more than compute.

    Those that the parser knows are left to the check of Spark's plan.
    """
    for call in query.find_all(exp.Anonymous):
        name, reason = call.name.lower(), REFUSED_FUNCTIONS.get(call.name.lower())
        if reason is None and name in READING_FUNCTIONS:
            continue
        if isinstance(call.parent, exp.Dot | exp.Table):
            # One of a catalog, or in the place of a table.
            continue
        place = ""
        if "line" in call.meta:
            column = call.meta["col"] - len(call.name) + 1
            place = f" at line {call.meta['line']}, column {column} of the query"
        near = get_close_matches(name[:50], READING_FUNCTIONS, n=1, cutoff=0.75)
        fix = f"did you mean `{near[0]}`?" if near else "call functions of Spark that only compute"
        if reason is None:
            reason = "which is none of Spark's functions"
        else:
            reason, fix = f"and {reason}", "call functions of Spark that only compute"
        raise QUERY_REFUSED(
            where=where, reason=f"it calls {shown(call.name)}{place}, {reason}", fix=fix
        )


def _tables_of(query: exp.Query) -> list[exp.Table]:
    """The tables of all parts of a query; names that a `WITH` gives are none."""
    found: dict[int, exp.Table] = {}
    own: set[int] = set()
    for scope in traverse_scope(query):
        for table in scope.tables:
            found[id(table)] = table
            if not table.db and table.name in scope.cte_sources:
                own.add(id(table))
    missed = [table for table in query.find_all(exp.Table) if id(table) not in found]
    return [table for key, table in found.items() if key not in own] + missed


def _reference(table: exp.Table, where: str) -> TableReference:
    parts = table.parts
    name = ".".join(part.name for part in parts)
    if any(table.args.get(part) for part in _OF_TABLES):
        raise QUERY_REFUSED(
            where=where,
            reason=f"it reads {shown(name)} in part, or as of another time",
            fix="name the table alone: each step reads all of its inputs at one snapshot",
        )
    first, last = parts[0].meta, parts[-1].meta
    if not {"start", "end"} <= first.keys() & last.keys() or not isinstance(
        table.this, exp.Identifier
    ):
        raise QUERY_REFUSED(
            where=where,
            reason=f"it reads {shown(table.sql('spark'))}, which is not the name of a table",
            fix="read tables of the tasks in `from` only",
        )
    alias = None if table.alias else parts[-1].name
    return TableReference(name, first["start"], last["end"] + 1, first["line"], first["col"], alias)
