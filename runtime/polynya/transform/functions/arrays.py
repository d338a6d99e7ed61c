"""Functions of arrays, and functions that take JSON and arrays apart."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

from polynya.model.names import literal
from polynya.model.types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    INT,
    STRING,
    Array,
    DataType,
    Decimal,
    Struct,
)
from polynya.transform.functions.coerce import (
    array,
    as_kind,
    boolean,
    can_compare,
    element_of,
    for_each,
    integer,
    is_integral,
    joined,
    long,
    number,
    text,
)
from polynya.transform.functions.core import (
    Build,
    ExpressionContext,
    Value,
    flag,
    function,
    item,
    let,
    names_of,
    null,
    record,
)

_MAX_WILDCARDS: Final = 8
_WILDCARD: Final = re.compile(r"\[\*\]")
_KINDS: Final[dict[str, DataType]] = {
    "string": STRING,
    "number": DOUBLE,
    "double": DOUBLE,
    "long": BIGINT,
    "boolean": BOOLEAN,
}


def _from_key_value(values: Sequence[Value], _: ExpressionContext) -> Value:
    names = names_of(values[0])
    keys, given = for_each(array(values[1]), text), array(values[2])
    kind = element_of(given)

    def object_of(k: Value, v: Value) -> str:
        fields = {
            name: Value(f"get({v.sql}, INT(array_position({k.sql}, {literal(name)})) - 1)", kind)
            for name in names
        }
        return f"IF({k.sql} IS NULL, NULL, {record(fields).sql})"

    sql = let("k", keys, lambda k: let("v", given, lambda v: object_of(k, v)))
    return Value(sql, record({name: null(kind) for name in names}).kind)


def _item_index(values: Sequence[Value], _: ExpressionContext) -> Value:
    given = array(values[0])
    element, index = item("e", element_of(given)).sql, item("i", INT).sql
    every = f"transform({given.sql}, ({element}, {index}) -> {index})"
    if len(values) < 2 or flag(values, 1):
        return Value(every, Array(INT))
    numbered = (
        f"transform({given.sql}, ({element}, {index}) -> IF({element} IS NULL, NULL, {index}))"
    )
    return Value(f"array_compact({numbered})", Array(INT))


def _map_with_index(values: Sequence[Value], _: ExpressionContext) -> Value:
    given = array(values[0])
    kind = element_of(given)
    element, index = item("e", kind), item("i", INT)
    made = record({"index": index, "value": element})
    sql = f"transform({given.sql}, ({element.sql}, {index.sql}) -> {made.sql})"
    return Value(sql, Array(made.kind))


def _zip(values: Sequence[Value], _: ExpressionContext) -> Value:
    arrays = [array(value) for value in values[1:]]
    names = names_of(values[0])
    if len(names) != len(arrays):
        return null(Array(STRING))
    kind = Array(Struct(tuple(zip(names, map(element_of, arrays), strict=True))))
    # `arrays_zip` names its fields after columns; the cast names them after their place.
    return Value(f"CAST(arrays_zip({', '.join(array.sql for array in arrays)}) AS {kind})", kind)


def _json_path(values: Sequence[Value], _: ExpressionContext) -> Value:
    path = (values[1].constant or "").strip()
    path = path if path.startswith("$") else f"$.{path}"
    steps = _WILDCARD.split(path)
    if len(steps) > _MAX_WILDCARDS + 1:
        return null(Array(STRING))
    return _walk(text(values[0]), steps, 0)


def _walk(json: Value, steps: Sequence[str], level: int) -> Value:
    """What is at the end of a path, an array of it for each `[*]` before."""
    here = steps[level] if level == 0 else f"${steps[level]}"
    # The whole of an element is itself: it may be a text, which is not JSON.
    value = json if level and here == "$" else Value(_at(json, here), STRING)
    if level == len(steps) - 1:
        return value
    element = item(f"j{level}", STRING)
    inner = _walk(element, steps, level + 1)
    listed = f"from_json({value.sql}, 'array<string>')"
    each_one = f"transform({listed}, {element.sql} -> {inner.sql})"
    if isinstance(inner.kind, Array):
        return Value(f"flatten(array_compact({each_one}))", inner.kind)
    return Value(f"array_compact({each_one})", Array(STRING))


def _at(json: Value, path: str) -> str:
    return f"get_json_object({json.sql}, {literal(path)})"


def _json_to_record(values: Sequence[Value], _: ExpressionContext) -> Value:
    lines = [line.split(",") for line in re.split(r"[\n;]", values[1].constant or "")]
    columns = [[part.strip() for part in line] for line in lines if len(line) == 3]
    asked = {name: (path, _KINDS[kind]) for path, name, kind in columns if name and kind in _KINDS}

    def made(json: Value) -> Value:
        fields = {}
        for name, (path, kind) in asked.items():
            whole = path if path.startswith("$") else f"$.{path}"
            element = Value(_at(json, whole), STRING)
            fields[name] = _exact(element) if kind == BIGINT else as_kind(element, kind)
        return record(fields)

    kind = made(null()).kind
    given = text(values[0])
    if flag(values, 2):
        element = item("j", STRING)
        listed = let(
            "x", given,
            lambda x: f"coalesce(from_json({x.sql}, 'array<string>'), "
            f"IF({_at(x, '$')} IS NULL, NULL, array({x.sql})))",
        )  # fmt: skip
        return Value(f"transform({listed}, {element.sql} -> {made(element).sql})", Array(kind))
    sql = let("x", given, lambda x: f"IF({_at(x, '$')} IS NULL, NULL, {made(x).sql})")
    return Value(sql, kind)


def _exact(string: Value) -> Value:
    """Whole numbers of more digits than a double has stay exact."""
    return Value(
        let("n", string, lambda n: f"coalesce(TRY_CAST({n.sql} AS BIGINT), {long(n).sql})"), BIGINT
    )


STRUCTURAL_FUNCTIONS = (
    function(
        "from_key_value", "'names' keys values", _from_key_value,
        """A struct with the values that stand beside these keys; the names are divided by commas. A
        key that is missing gives NULL, of several the first counts.""",
        "from_key_value('a,b', to_array('b', 'a'), to_array(2, 1)) -> {\"a\":1,\"b\":2}",
        "from_key_value('a,z', to_array('a'), to_array(1)) -> {\"a\":1,\"z\":null}",
    ),
    function(
        "item_index", "array 'count_nulls'?", _item_index,
        "The index of each element, from 0; with `false` at the end not those of NULL elements.",
        "item_index(to_array('a', 'b')) -> [0,1]",
        "item_index(regex('x', 'y')) -> []",
    ),
    function(
        "json_path", "json 'path'", _json_path,
        """What is at a path in a JSON text: texts as they are, all else as JSON. A path with `[*]`
        gives an array. What is missing, and what is not JSON, gives NULL.""",
        """json_path('{"net_id": 41}', 'net_id') -> "41" """.strip(),
        """json_path('{"net_id": [41,42]}', '$.net_id') -> "[41,42]" """.strip(),
        """json_path('{"net_id": [41, 42]}', 'net_id[*]') -> ["41","42"]""",
        """json_path('[{"a": {"n": "x"}}, {"a": {"n": "y"}}]', '$[*].a.n') -> ["x","y"]""",
        """json_path('[{"a": 1}]', '$[*].a') -> ["1"]""",
        """json_path('{"a": 1}', 'a.b') -> null""",
        """json_path('not json', 'a') -> null""",
    ),
    function(
        "json_to_record", "json 'mappings' 'array'?", _json_to_record,
        """A struct of fields of a JSON text. Each mapping is `path,name,type` with the type
        `string`, `number`, `long` or `boolean`; mappings are divided by `;` or line ends. With
        `true` at the end an array, of one struct for each record in the text.""",
        """json_to_record('{"a": {"v": 7}}', 'a.v,n,long;b,b,string') -> {"n":7,"b":null}""",
        """json_to_record('[{"a": "x"}, {"a": "y"}]', 'a,a,string', true)"""
        """ -> [{"a":"x"},{"a":"y"}]""",
        """json_to_record('not json', 'a,a,string') -> null""",
    ),
    function(
        "map_with_index", "array", _map_with_index,
        "An array of structs with the index of each element, from 0, and its value.",
        """map_with_index(to_array('a', 'b'))"""
        """ -> [{"index":0,"value":"a"},{"index":1,"value":"b"}]""",
    ),
    function(
        "zip", "'names' array+", _zip,
        """An array of structs: the first elements of all arrays, then the second ones, and so on.
        The names of the fields are divided by commas, one for each array.""",
        "zip('n,l', to_array(1, 2), to_array('a')) -> [{\"n\":1,\"l\":\"a\"},{\"n\":2,\"l\":null}]",
        "zip('n', to_array(1), to_array(2)) -> null",
    ),
)  # fmt: skip


def extreme(called: str, gather: Callable[[Sequence[Value]], Value]) -> Build:
    """The highest or lowest element of what is gathered from the arguments."""

    def build(values: Sequence[Value], _: ExpressionContext) -> Value:
        gathered = gather(values)
        kind = element_of(gathered)
        return Value(f"{called}({gathered.sql})", kind) if can_compare(kind) else null(kind)

    return build


def _first_array(values: Sequence[Value]) -> Value:
    return array(values[0])


def _sum(values: Sequence[Value], _: ExpressionContext) -> Value:
    numbers = for_each(array(values[0]), number)
    kind = element_of(numbers)
    total: DataType = DOUBLE
    if isinstance(kind, Decimal):
        total = Decimal(38, kind.scale)
    elif is_integral(kind):
        total = BIGINT
    so_far, element = item("sum", total), item("e", kind)
    added = f"try_add({so_far.sql}, coalesce(CAST({element.sql} AS {total}), 0))"
    return Value(
        f"aggregate({numbers.sql}, CAST(0 AS {total}), "
        f"({so_far.sql}, {element.sql}) -> TRY_CAST({added} AS {total}))",
        total,
    )


def concat(values: Sequence[Value], _: ExpressionContext) -> Value:
    """The texts of all elements with the first argument between them."""
    separator, rest = text(values[0]), joined([*values[1:], null()])
    return Value(f"array_join({for_each(rest, text).sql}, {separator.sql})", STRING)


def _count(values: Sequence[Value], _: ExpressionContext) -> Value:
    return Value(f"coalesce(array_size({array(values[0]).sql}), 0)", INT)


def _count_if(values: Sequence[Value], _: ExpressionContext) -> Value:
    flags = for_each(array(values[0]), boolean)
    kept = item("e", BOOLEAN).sql
    return Value(f"coalesce(array_size(filter({flags.sql}, {kept} -> {kept})), 0)", INT)


def _distinct(values: Sequence[Value], _: ExpressionContext) -> Value:
    given = array(values[0])
    if not can_compare(element_of(given)):
        return null(given.kind)
    return Value(f"array_distinct({given.sql})", given.kind)


def _element_at(values: Sequence[Value], _: ExpressionContext) -> Value:
    given = array(values[0])
    return Value(f"get({given.sql}, {integer(values[1]).sql})", element_of(given))


def _first(values: Sequence[Value], _: ExpressionContext) -> Value:
    given = array(values[0])
    return Value(f"get({given.sql}, 0)", element_of(given))


def _last(values: Sequence[Value], _: ExpressionContext) -> Value:
    given = array(values[0])
    return Value(f"try_element_at({given.sql}, -1)", element_of(given))


def _to_array(values: Sequence[Value], _: ExpressionContext) -> Value:
    return joined(values)


def _get_range(values: Sequence[Value], _: ExpressionContext) -> Value:
    low, high = as_kind(values[0], BIGINT), as_kind(values[1], BIGINT)
    steps = f"try_subtract({high.sql}, {low.sql})"
    # The end is NULL, and so is the result, where the range would be empty or without bound.
    end = f"IF({steps} BETWEEN 0 AND 9999, {high.sql}, NULL)"
    return Value(f"sequence({low.sql}, {end})", Array(BIGINT))


ARRAY_FUNCTIONS = (
    function(
        "array_max", "array", extreme("array_max", _first_array),
        "The highest element. NULL elements do not count; an empty array gives NULL.",
        "array_max(to_array(1, 30, 0.2)) -> 30.0",
        "array_max(split('', ',')) -> null",
    ),
    function(
        "array_min", "array", extreme("array_min", _first_array),
        "The lowest element. NULL elements do not count; an empty array gives NULL.",
        "array_min(to_array(1, 0.2, 30)) -> 0.2",
    ),
    function(
        "array_sum", "array", _sum,
        """The sum of the elements that are numbers; that of an empty array is 0. Whole numbers are
        added as `bigint`, and a sum that does not fit is NULL.""",
        "array_sum(to_array(1, 0.2, 30)) -> 31.2",
        "array_sum(to_array(1, 2)) -> 3",
        "array_sum(split('1,x,2', ',')) -> 3.0",
    ),
    function(
        "concat", "separator value+", concat,
        """The texts of all values, and of the elements of all arrays, with the separator between
        them. NULL is left out.""",
        "polynya.concat(', ', to_array('a', 'b'), 'c') -> \"a, b, c\"",
        "polynya.concat(', ', 5.5) -> \"5.5\"",
        "polynya.concat('', 'a', NULL, 'b') -> \"ab\"",
    ),
    function(
        "count_values", "array", _count,
        "How many elements there are. An empty array, and NULL, give 0.",
        "count_values(to_array('a', 'b', 'c')) -> 3",
        "count_values(split('', ',')) -> 0",
        "count_values(NULL) -> 0",
    ),
    function(
        "count_values_if", "array", _count_if,
        "How many elements are true. An empty array, and NULL, give 0.",
        "count_values_if(to_array(true, false, true)) -> 2",
        "count_values_if(NULL) -> 0",
    ),
    function(
        "distinct_values", "array", _distinct,
        "The array without repeated elements. An array of maps gives NULL: they are not compared.",
        "distinct_values(to_array(1, 2, 3, 4, 4, 1)) -> [1,2,3,4]",
    ),
    function(
        "element_at", "array index", _element_at,
        "The element at an index from 0. An index out of range, or below 0, gives NULL.",
        "polynya.element_at(to_array('a', 'b', 'c'), 1) -> \"b\"",
        "polynya.element_at(to_array('a'), 1) -> null",
        "polynya.element_at(to_array('a', 'b', 'c'), -1) -> null",
    ),
    function(
        "first_element", "array", _first,
        "The first element; of an empty array NULL.",
        "first_element(to_array('b', 'a', 'c')) -> \"b\"",
        "first_element(split('', ',')) -> null",
    ),
    function(
        "last_element", "array", _last,
        "The last element; of an empty array NULL.",
        "last_element(to_array('a', 'c', 'b')) -> \"b\"",
        "last_element(split('', ',')) -> null",
    ),
    function(
        "least", "value+", extreme("array_min", joined),
        "The lowest of all values, and of the elements of all arrays, brought to a common type.",
        "polynya.least(to_array(1, 0.2), 30) -> 0.2",
    ),
    function(
        "to_array", "value+", _to_array,
        """One array of all values, and of the elements of all arrays. Single values that are NULL
        are left out; values of types that have nothing in common become text.""",
        "to_array(to_array('a', 'c'), 'b') -> [\"a\",\"c\",\"b\"]",
        "to_array(1, 'x', NULL) -> [\"1\",\"x\"]",
    ),
    function(
        "get_range", "first last", _get_range,
        "The whole numbers from the first to the last, both included; NULL for more than 10,000.",
        "get_range(2, 4) -> [2,3,4]",
        "get_range(4, 2) -> null",
        "get_range(1, 1000000) -> null",
    ),
)  # fmt: skip
