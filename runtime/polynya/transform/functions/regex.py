"""Functions of regular expressions. Patterns are literals, in the syntax of Java.

A pattern that Java refuses gives NULL.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from polynya.model.names import literal
from polynya.model.types import INT, STRING, Array
from polynya.transform.functions.coerce import as_kind, text
from polynya.transform.functions.core import (
    ExpressionContext,
    Value,
    flag,
    function,
    item,
    let,
    null,
    record,
)

#: An escaped character, a class of characters, a quotation, a named group, a group.
_TOKEN: Final = re.compile(
    r"\\Q.*?(?:\\E|$)|\\.|\[\^?\]?(?:\\.|\[[^\]]*\]|[^\]\\])*\]"
    r"|\(\?<([A-Za-z][A-Za-z0-9]*)>|(\()(?!\?)",
    re.DOTALL,
)


def groups_of(pattern: str) -> list[str | None]:
    """The capture groups of a pattern in order: the name of each, None without one."""
    tokens = _TOKEN.finditer(pattern)
    return [match[1] for match in tokens if match[1] is not None or match[2] is not None]


def _pattern(value: Value, place: ExpressionContext) -> str | None:
    """The pattern as SQL, None where it is none."""
    pattern = value.constant or ""
    count = len(groups_of(pattern))
    sql = literal(pattern)
    if not place.works(f"regexp_extract('', {sql}, {count})"):
        return None
    # Only a match tells whether there are as many groups as were counted.
    asked = literal(f"(?:{pattern}\n)|")
    return sql if place.works(f"regexp_extract('', {asked}, {count})") else None


def _regex(values: Sequence[Value], place: ExpressionContext) -> Value:
    pattern = _pattern(values[1], place)
    if pattern is None:
        return null(Array(STRING))
    count = len(groups_of(values[1].constant or ""))

    def matches(x: Value) -> str:
        conditions = [
            f"regexp_extract_all({x.sql}, {pattern}, {group})" for group in range(1, count + 1)
        ]
        if len(conditions) < 2:
            return conditions[0] if conditions else f"regexp_extract_all({x.sql}, {pattern}, 0)"
        row = item("m", STRING).sql
        shape = ", ".join(f"f{index}: STRING" for index in range(count))
        zipped = f"CAST(arrays_zip({', '.join(conditions)}) AS ARRAY<STRUCT<{shape}>>)"
        members = ", ".join(f"{row}.f{index}" for index in range(count))
        return f"flatten(transform({zipped}, {row} -> array({members})))"

    return Value(let("x", text(values[0]), matches), Array(STRING))


def _position(values: Sequence[Value], place: ExpressionContext) -> Value:
    pattern = _pattern(values[1], place)
    if pattern is None:
        return null(INT)
    if len(values) < 3:
        position = f"nullif(regexp_instr({text(values[0]).sql}, {pattern}), 0)"
        return Value(f"({position} - 1)", INT)
    start = as_kind(values[2], INT)

    def from_there(s: Value) -> str:
        begin = f"IF({s.sql} BETWEEN 0 AND 2000000000, {s.sql}, NULL)"
        rest = f"substr({text(values[0]).sql}, {begin} + 1)"
        return f"(nullif(regexp_instr({rest}, {pattern}), 0) - 1 + {s.sql})"

    return Value(let("s", start, from_there), INT)


def _named_groups(values: Sequence[Value], place: ExpressionContext) -> Value:
    pattern = _pattern(values[1], place)
    groups = {name: at + 1 for at, name in enumerate(groups_of(values[1].constant or "")) if name}
    everything, drop = flag(values, 2), flag(values, 3)
    kind = record({name: null() for name in groups}).kind
    if pattern is None or not groups:
        return null(Array(kind) if everything else kind)

    def kept(fields: dict[str, Value]) -> str:
        if not drop:
            return record(fields).sql
        full = {name: Value(f"nullif({value.sql}, '')", STRING) for name, value in fields.items()}
        there = f"coalesce({', '.join(value.sql for value in full.values())}) IS NOT NULL"
        return f"IF({there}, {record(full).sql}, NULL)"

    def first(x: Value) -> str:
        fields = {
            name: Value(f"regexp_extract({x.sql}, {pattern}, {group})", STRING)
            for name, group in groups.items()
        }
        return f"IF({x.sql} RLIKE {pattern}, {kept(fields)}, NULL)"

    def all_of_them(x: Value) -> str:
        captured = ", ".join(
            f"regexp_extract_all({x.sql}, {pattern}, {g})" for g in groups.values()
        )
        row = item("m", STRING).sql
        shape = ", ".join(f"f{index}: STRING" for index in range(len(groups)))
        zipped = f"CAST(arrays_zip({captured}) AS ARRAY<STRUCT<{shape}>>)"
        fields = {name: Value(f"{row}.f{at}", STRING) for at, name in enumerate(groups)}
        return f"array_compact(transform({zipped}, {row} -> {kept(fields)}))"

    subject = text(values[0])
    if everything:
        return Value(let("x", subject, all_of_them), Array(kind))
    return Value(let("x", subject, first), kind)


def _replace(values: Sequence[Value], place: ExpressionContext) -> Value:
    pattern = _pattern(values[1], place)
    if pattern is None:
        return null()
    new = f"coalesce({text(values[2]).sql}, '')" if len(values) > 2 else "''"
    # Java would take `$1` and `\` for more than themselves, and raise for a missing group.
    plain = f"replace(replace({new}, '\\\\', '\\\\\\\\'), '$', '\\\\$')"
    return Value(f"regexp_replace({text(values[0]).sql}, {pattern}, {plain})", STRING)


FUNCTIONS = (
    function(
        "regex", "text 'pattern'", _regex,
        """All matches of a pattern: its groups where it has some, else the whole match. No match
        gives an empty array.""",
        "regex('abcijefjabc', 'abc') -> [\"abc\",\"abc\"]",
        r"""regex('a1 b2', '([a-z])(\\d)') -> ["a","1","b","2"]""",
        "regex('x', 'y') -> []",
        "regex('x', '(') -> null",
    ),
    function(
        "regex_match_position", "text 'pattern' start?", _position,
        "Where the first match begins, counted from 0; looked for from a start on. NULL for none.",
        "regex_match_position('hello', 'l+') -> 2",
        "regex_match_position('hello', 'l', 3) -> 3",
        "regex_match_position('hello', 'x') -> null",
    ),
    function(
        "regex_named_groups", "text 'pattern' 'all'? 'drop_empty'?", _named_groups,
        """A struct of the named groups of the first match, NULL without one. With `true` as third
        argument an array with one of each match. A group that took no part is empty; with `true` as
        fourth, empty ones are NULL, and a match of nothing else is none.""",
        r"""regex_named_groups('123', '^(?<digits>\\d*)$') -> {"digits":"123"}""",
        r"""regex_named_groups('foo', '^(?<digits>\\d*)$') -> null""",
        r"""regex_named_groups('', '^(?<digits>\\d*)$', false, true) -> null""",
        r"""regex_named_groups('www.a.com www.b.com', 'www.(?<d>[^.]*).com', true)"""
        r""" -> [{"d":"a"},{"d":"b"}]""",
    ),
    function(
        "replace", "text 'pattern' new?", _replace,
        """The text with every match of a pattern replaced by a plain text; NULL, or none, removes
        the matches.""",
        "polynya.replace('Hello World', 'Hello', 'foo') -> \"foo World\"",
        "polynya.replace('Hello World', 'Hello ', NULL) -> \"World\"",
        r"""polynya.replace('a1b22', '\\d+', '$1') -> "a$1b$1" """.strip(),
        "polynya.replace('x', '(', 'y') -> null",
    ),
)  # fmt: skip
