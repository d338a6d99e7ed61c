"""Functions of text. Numbers, dates, structs and arrays count as their text."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from polynya.model.names import literal
from polynya.model.types import INT, STRING, Array
from polynya.transform.functions.coerce import array, double, for_each, is_number, long, text
from polynya.transform.functions.core import (
    ExpressionContext,
    PatternPart,
    Value,
    flag,
    function,
    item,
    let,
    message_parts,
    names_of,
    null,
    record,
    template,
    text_of,
)

_SPACE = r"' \t\n\r\u000b\u000c'"


def _substring(values: Sequence[Value], _: ExpressionContext) -> Value:
    start = long(values[1])
    end = long(values[2]) if len(values) > 2 else Value("-1L", start.kind)

    def cut(whole: Value, first: Value, last: Value) -> str:
        n = f"char_length({whole.sql})"
        begin = f"IF({first.sql} < 0, greatest({n} + {first.sql}, 0L), least({first.sql}, {n}))"
        stop = f"IF({last.sql} < 0, {n} + {last.sql} + 1, least({last.sql}, {n}))"
        return (
            f"substr({whole.sql}, CAST({begin} AS INT) + 1, "
            f"CAST(greatest({stop} - {begin}, 0L) AS INT))"
        )

    return Value(_bound(text(values[0]), start, end, cut), STRING)


def _bytes_substring(values: Sequence[Value], _: ExpressionContext) -> Value:
    raw = f"encode({text(values[0]).sql}, 'UTF-8')"
    start, end = long(values[1]), long(values[2])

    def cut(whole: Value, first: Value, last: Value) -> str:
        n = f"octet_length({whole.sql})"
        begin, stop = (f"least(greatest({position.sql}, 0L), {n})" for position in (first, last))
        part = (
            f"substr({whole.sql}, CAST({begin} AS INT) + 1, "
            f"CAST(greatest({stop} - {begin}, 0L) AS INT))"
        )
        return f"replace(make_valid_utf8(CAST({part} AS STRING)), '\\uFFFD', '')"

    return Value(_bound(Value(raw, STRING), start, end, cut), STRING)


def _bound(
    whole: Value, first: Value, last: Value, cut: Callable[[Value, Value, Value], str]
) -> str:
    def known(x: Value, s: Value, e: Value) -> str:
        # `least` and `greatest` leave out what is NULL.
        return f"IF({s.sql} IS NULL OR {e.sql} IS NULL, NULL, {cut(x, s, e)})"

    return let(
        "x", whole, lambda x: let("s", first, lambda s: let("e", last, lambda e: known(x, s, e)))
    )


def _split(values: Sequence[Value], _: ExpressionContext) -> Value:
    part = item("p", STRING).sql
    parts = split_at(text(values[0]), values[1].constant or "")
    return Value(f"filter({parts}, {part} -> {part} <> '')", Array(STRING))


def split_at(value: Value, delimiter: str) -> str:
    """The parts of a text, empty ones too; without a delimiter its characters."""
    # Spark's delimiter is a pattern.
    exact = "".join(
        letter if letter.isalnum() or ord(letter) > 127 else f"\\{letter}" for letter in delimiter
    )
    return f"split({value.sql}, {literal(exact)})"


def _split_to_record(values: Sequence[Value], _: ExpressionContext) -> Value:
    names = names_of(values[1])
    drop = flag(values, 3)

    def filled(parts: Value) -> str:
        fields = {
            name: Value(
                f"nullif(get({parts.sql}, {index}), '')"
                if drop
                else f"coalesce(get({parts.sql}, {index}), '')",
                STRING,
            )
            for index, name in enumerate(names)
        }
        return f"IF({parts.sql} IS NULL, NULL, {record(fields).sql})"

    parts = Value(split_at(text(values[0]), values[2].constant or ""), Array(STRING))
    return Value(let("r", parts, filled), record({name: null() for name in names}).kind)


def _strip_margin(values: Sequence[Value], _: ExpressionContext) -> Value:
    margin = values[1].constant or ""
    if len(margin) != 1:
        return null()
    exact = margin if margin.isalnum() or ord(margin) > 127 else f"\\{margin}"
    pattern = literal(rf"(?m)^[\x00-\x20\x7F&&[^\n]]*{exact}")
    return Value(f"regexp_replace({text(values[0]).sql}, {pattern}, '')", STRING)


def _strip_prefix(values: Sequence[Value], _: ExpressionContext) -> Value:
    def cut(x: Value, p: Value) -> str:
        return (
            f"IF(startswith({x.sql}, {p.sql}), substr({x.sql}, char_length({p.sql}) + 1), {x.sql})"
        )

    whole, prefix = text(values[0]), text(values[1])
    return Value(let("x", whole, lambda x: let("p", prefix, lambda p: cut(x, p))), STRING)


def _strip_suffix(values: Sequence[Value], _: ExpressionContext) -> Value:
    def cut(x: Value, s: Value) -> str:
        rest = f"substr({x.sql}, 1, char_length({x.sql}) - char_length({s.sql}))"
        return f"IF(endswith({x.sql}, {s.sql}), {rest}, {x.sql})"

    whole, suffix = text(values[0]), text(values[1])
    return Value(let("x", whole, lambda x: let("s", suffix, lambda s: cut(x, s))), STRING)


def _translate(values: Sequence[Value], _: ExpressionContext) -> Value:
    given, keep, empty = values[0], flag(values, 2), flag(values, 3)
    pairs = [line.partition(",") for line in (values[1].constant or "").splitlines()]
    numeric = is_number(given.kind)

    def chosen(x: Value) -> str:
        cases = ""
        for word, comma, meaning in pairs:
            if not comma:
                continue
            result = null() if empty and not meaning else text_of(meaning)
            key = double(text_of(word)).sql if numeric else literal(word)
            cases += f" WHEN {double(x).sql if numeric else text(x).sql} = {key} THEN {result.sql}"
        other = text(x).sql if keep else "NULL"
        return f"CASE{cases} ELSE {other} END" if cases else f"CAST({other} AS STRING)"

    return Value(let("x", given, chosen), STRING)


def _string_format(values: Sequence[Value], place: ExpressionContext) -> Value:
    parts = message_parts(values[0].constant or "")
    if parts is None:
        return null()
    return _formatted(parts, values[1:], place)


def _formatted(
    parts: Sequence[PatternPart], inputs: Sequence[Value], place: ExpressionContext
) -> Value:
    texts = []
    for part in parts:
        if part.index is None:
            texts.append(literal(part.text))
        elif part.index >= len(inputs):
            return null()
        elif part.pattern is None:
            texts.append(f"coalesce({text(inputs[part.index]).sql}, '')")
        else:
            pattern = literal(part.pattern)
            if not place.works(f"format_number(1.5D, {pattern})"):
                return null()
            shown = f"format_number({double(inputs[part.index]).sql}, {pattern})"
            texts.append(f"coalesce({shown}, '')")
    return Value(f"concat({', '.join(texts)})" if texts else "''", STRING)


def _join_arrays(values: Sequence[Value], place: ExpressionContext) -> Value:
    parts = message_parts(values[0].constant or "")
    if parts is None or any(
        part.index is not None and part.index >= len(values) - 1 for part in parts
    ):
        return null(Array(STRING))
    arrays = [for_each(array(value), text) for value in values[1:]]
    row = item("row", STRING).sql
    members = [Value(f"{row}.f{index}", STRING) for index in range(len(arrays))]
    shape = ", ".join(f"f{index}: STRING" for index in range(len(arrays)))
    # `arrays_zip` names its fields after columns; the cast names them after their place.
    zipped = (
        f"CAST(arrays_zip({', '.join(array.sql for array in arrays)}) AS ARRAY<STRUCT<{shape}>>)"
    )
    line = _formatted(parts, members, place)
    return Value(f"transform({zipped}, {row} -> {line.sql})", Array(STRING))


def _uuid(values: Sequence[Value], place: ExpressionContext) -> Value:
    seeds = [place.row, *(f"coalesce({text(value).sql}, '')" for value in values)]
    variable = Value(f"sha1(concat_ws('|', {', '.join(seeds)}))", STRING)

    def dashed(h: Value) -> str:
        spans = [
            f"substr({h.sql}, {at}, {n})" for at, n in ((1, 8), (9, 4), (14, 3), (18, 3), (21, 12))
        ]
        first, second, third, fourth, fifth = spans
        return f"concat({first}, '-', {second}, '-5', {third}, '-a', {fourth}, '-', {fifth})"

    return Value(let("h", variable, dashed), STRING)


FUNCTIONS = (
    function(
        "bytes_substring", "text start end", _bytes_substring,
        """The part between two places in the UTF-8 bytes of a text, counted from 0, without the
        second. Characters that are cut are left out.""",
        "bytes_substring('Hello World', 1, 10) -> \"ello Worl\"",
        "bytes_substring('\\u2EE4Hello', 1, 8) -> \"Hello\"",
        "bytes_substring('Hello', 0, 10) -> \"Hello\"",
    ),
    function(
        "join_arrays", "'format' array+", _join_arrays,
        """Texts made of the first elements of all arrays, then of the second ones, and so on, by a
        format as in `string_format`. A shorter array counts as filled with empty texts.""",
        "join_arrays('{0}={1}', to_array('a', 'b'), to_array(1, 2)) -> [\"a=1\",\"b=2\"]",
        "join_arrays('{0}{1}', to_array('a', 'b'), to_array('x')) -> [\"ax\",\"b\"]",
    ),
    function(
        "split", "text 'delimiter'", _split,
        """The parts between a delimiter, which is plain text. Empty parts are left out; an empty
        delimiter gives the characters.""",
        "split('a,,b', ',') -> [\"a\",\"b\"]",
        "split(',a,b,', ',') -> [\"a\",\"b\"]",
        "split('a.b', '.') -> [\"a\",\"b\"]",
        "split('abc', '') -> [\"a\",\"b\",\"c\"]",
    ),
    function(
        "split_to_record", "text 'names' 'delimiter' 'drop_empty'?", _split_to_record,
        """A struct of the parts between a delimiter; the names of its fields are divided by commas.
        More parts than names are dropped, missing ones are empty; with `true` at the end empty
        parts are NULL.""",
        "split_to_record('1,2,3,4', 'a,b,c', ',') -> {\"a\":\"1\",\"b\":\"2\",\"c\":\"3\"}",
        "split_to_record('1,2', 'a,b,c', ',') -> {\"a\":\"1\",\"b\":\"2\",\"c\":\"\"}",
        "split_to_record('1,,3', 'a,b,c', ',', true) -> {\"a\":\"1\",\"b\":null,\"c\":\"3\"}",
    ),
    function(
        "string_format", "'format' value+", _string_format,
        """A text with values in the places `{0}`, `{1}` and so on. `{0,number,#.##}` takes a
        pattern of Java's `DecimalFormat`, `{0,number,percent}` is in percent. Between single quotes
        braces are plain text, and two of them are one. NULL is empty; a format that is wrong gives
        NULL.""",
        "string_format('{0} {1} {0}', 'a', 'b') -> \"a b a\"",
        "string_format('{0,number,percent}', 0.5) -> \"50%\"",
        "string_format('{0,number,0.000}', 1.2) -> \"1.200\"",
        "string_format('{0,number,###,###.###}', 123456789.012) -> \"123,456,789.012\"",
        "string_format('{2}', 'a') -> null",
    ),
    function(
        "string_length", "text", template("char_length({})", INT, text),
        "How many characters a text has.",
        "string_length('') -> 0", "string_length('Hello') -> 5", "string_length(NULL) -> null",
    ),
    function(
        "strip_margin", "text 'character'", _strip_margin,
        "Without what leads each line up to a character, where only white space is before it.",
        "strip_margin('Hello\\n   |World', '|') -> \"Hello\\nWorld\"",
        "strip_margin('a|b', '|') -> \"a|b\"",
    ),
    function(
        "strip_prefix", "text prefix", _strip_prefix, "Without a text that it begins with, once.",
        "strip_prefix('((foo))', '(') -> \"(foo))\"", "strip_prefix('foo', '(') -> \"foo\"",
    ),
    function(
        "strip_suffix", "text suffix", _strip_suffix, "Without a text that it ends with, once.",
        "strip_suffix('((foo))', ')') -> \"((foo)\"", "strip_suffix('foo', ')') -> \"foo\"",
    ),
    function(
        "substring", "text start end?", _substring,
        """The part from one place to another, counted from 0, without the second. A place below 0
        counts from the end: a start of -1 is the last character, an end of -1 is the end. What is
        beyond the text is empty.""",
        "polynya.substring('Hello World', 0, 5) -> \"Hello\"",
        "polynya.substring('Hello', 1, 3) -> \"el\"",
        "polynya.substring('Hello', 0, -1) -> \"Hello\"",
        "polynya.substring('Hello', 6, -1) -> \"\"",
        "polynya.substring('Hello', -3, -2) -> \"ll\"",
        "polynya.substring('Hello', 'x') -> null",
    ),
    function(
        "to_lower", "text", template("lower({})", STRING, text), "In small letters.",
        "to_lower('HELLO x') -> \"hello x\"",
    ),
    function(
        "to_upper", "text", template("upper({})", STRING, text), "In capitals.",
        "to_upper('hello X') -> \"HELLO X\"",
    ),
    function(
        "translate", "value 'dictionary' 'keep'? 'empty_as_null'?", _translate,
        """What a dictionary says for a value. Each of its lines has a word, a comma, and the
        meaning. Numbers are looked up as numbers. A value that is not in it gives NULL, with `true`
        as third argument itself; with `true` as fourth an empty meaning is NULL.""",
        "polynya.translate('b', 'a,Ant\\nb,Bat') -> \"Bat\"",
        "polynya.translate('c', 'a,Ant\\nb,Bat') -> null",
        "polynya.translate('c', 'a,Ant\\nb,Bat', true) -> \"c\"",
        "polynya.translate('d', 'd,', true, true) -> null",
        "polynya.translate(1234, '1234.0,good') -> \"good\"",
    ),
    function(
        "trim", "text", template(f"btrim({{}}, {_SPACE})", STRING, text),
        "Without white space at both ends.",
        "polynya.trim(' \\t foo\\n') -> \"foo\"",
    ),
    function(
        "trim_chars", "text characters", template("btrim({}, {})", STRING, text, text),
        "Without these characters at both ends.",
        "trim_chars('-==--Hello World---=---', '-=') -> \"Hello World\"",
        "trim_chars('-----', '-') -> \"\"",
    ),
    function(
        "uuid_generator", "seed?", _uuid,
        """A UUID made of the place of the record in its file, and of the seed: each run gives the
        same one. Two calls in one row need different seeds.""",
        "string_length(uuid_generator('a')) -> 36",
        by_place=True,
    ),
)  # fmt: skip
