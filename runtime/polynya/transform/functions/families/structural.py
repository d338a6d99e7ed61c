"""Functions that take JSON and arrays apart and put records together."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from polynya.model.contract.identifiers import literal
from polynya.model.datatypes import BIGINT, BOOLEAN, DOUBLE, INT, STRING, Array, DataType, Struct
from polynya.transform.functions.base import Place, Value, function, item, let, null
from polynya.transform.functions.coerce import array, as_kind, each, element_of, long, text
from polynya.transform.functions.structs import names_of, record, said

_MOST_WILDCARDS: Final = 8
_WILDCARD: Final = re.compile(r"\[\*\]")
_KINDS: Final[dict[str, DataType]] = {
    "string": STRING,
    "number": DOUBLE,
    "double": DOUBLE,
    "long": BIGINT,
    "boolean": BOOLEAN,
}


def _from_key_value(values: Sequence[Value], _: Place) -> Value:
    names = names_of(values[0])
    keys, given = each(array(values[1]), text), array(values[2])
    kind = element_of(given)

    def found(k: Value, v: Value) -> str:
        fields = {
            name: Value(f"get({v.sql}, INT(array_position({k.sql}, {literal(name)})) - 1)", kind)
            for name in names
        }
        return f"IF({k.sql} IS NULL, NULL, {record(fields).sql})"

    sql = let("k", keys, lambda k: let("v", given, lambda v: found(k, v)))
    return Value(sql, record({name: null(kind) for name in names}).kind)


def _item_index(values: Sequence[Value], _: Place) -> Value:
    given = array(values[0])
    element, index = item("e", element_of(given)).sql, item("i", INT).sql
    every = f"transform({given.sql}, ({element}, {index}) -> {index})"
    if len(values) < 2 or said(values, 1):
        return Value(every, Array(INT))
    numbered = (
        f"transform({given.sql}, ({element}, {index}) -> IF({element} IS NULL, NULL, {index}))"
    )
    return Value(f"array_compact({numbered})", Array(INT))


def _map_with_index(values: Sequence[Value], _: Place) -> Value:
    given = array(values[0])
    kind = element_of(given)
    element, index = item("e", kind), item("i", INT)
    made = record({"index": index, "value": element})
    sql = f"transform({given.sql}, ({element.sql}, {index.sql}) -> {made.sql})"
    return Value(sql, Array(made.kind))


def _zip(values: Sequence[Value], _: Place) -> Value:
    arrays = [array(value) for value in values[1:]]
    names = names_of(values[0])
    if len(names) != len(arrays):
        return null(Array(STRING))
    kind = Array(Struct(tuple(zip(names, map(element_of, arrays), strict=True))))
    # `arrays_zip` names its fields after columns; the cast names them after their place.
    return Value(f"CAST(arrays_zip({', '.join(one.sql for one in arrays)}) AS {kind})", kind)


def _json_path(values: Sequence[Value], _: Place) -> Value:
    path = (values[1].constant or "").strip()
    path = path if path.startswith("$") else f"$.{path}"
    steps = _WILDCARD.split(path)
    if len(steps) > _MOST_WILDCARDS + 1:
        return null(Array(STRING))
    return _walk(text(values[0]), steps, 0)


def _walk(json: Value, steps: Sequence[str], level: int) -> Value:
    """What is at the end of a path, an array of it for each `[*]` before."""
    here = steps[level] if level == 0 else f"${steps[level]}"
    # The whole of an element is itself: it may be a text, which is no JSON.
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


def _json_to_record(values: Sequence[Value], _: Place) -> Value:
    lines = [line.split(",") for line in re.split(r"[\n;]", values[1].constant or "")]
    known = [[part.strip() for part in line] for line in lines if len(line) == 3]
    asked = {name: (path, _KINDS[kind]) for path, name, kind in known if name and kind in _KINDS}

    def made(json: Value) -> Value:
        fields = {}
        for name, (path, kind) in asked.items():
            whole = path if path.startswith("$") else f"$.{path}"
            found = Value(_at(json, whole), STRING)
            fields[name] = _exact(found) if kind == BIGINT else as_kind(found, kind)
        return record(fields)

    kind = made(null()).kind
    given = text(values[0])
    if said(values, 2):
        element = item("j", STRING)
        listed = let(
            "x", given,
            lambda x: f"coalesce(from_json({x.sql}, 'array<string>'), "
            f"IF({_at(x, '$')} IS NULL, NULL, array({x.sql})))",
        )  # fmt: skip
        return Value(f"transform({listed}, {element.sql} -> {made(element).sql})", Array(kind))
    sql = let("x", given, lambda x: f"IF({_at(x, '$')} IS NULL, NULL, {made(x).sql})")
    return Value(sql, kind)


def _exact(found: Value) -> Value:
    """Whole numbers of more digits than a double has stay exact."""
    return Value(
        let("n", found, lambda n: f"coalesce(TRY_CAST({n.sql} AS BIGINT), {long(n).sql})"), BIGINT
    )


FUNCTIONS = (
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
