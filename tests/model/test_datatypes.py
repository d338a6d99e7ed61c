"""Types: text and back, and what may become what."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polynya.model.promotion import is_in_place, storage_type, unify, widen
from polynya.model.types import (
    BIGINT,
    DOUBLE,
    FLOAT,
    INT,
    PRIMITIVE_NAMES,
    STRING,
    Array,
    Decimal,
    MapType,
    Primitive,
    Struct,
    TypeSyntaxError,
    Void,
    parse_type,
)

primitives = st.sampled_from(sorted(PRIMITIVE_NAMES)).map(Primitive)
decimals = st.integers(1, 38).flatmap(
    lambda precision: st.integers(0, precision).map(lambda scale: Decimal(precision, scale))
)


def nested(children):
    fields = st.lists(
        st.tuples(st.text(min_size=1), children), max_size=4, unique_by=lambda field: field[0]
    )
    return (
        children.map(Array)
        | st.tuples(children, children).map(lambda pair: MapType(*pair))
        | fields.map(lambda field: Struct(tuple(field)))
    )


types = st.recursive(primitives | decimals | st.just(Void()), nested, max_leaves=12)


@given(types)
def test_every_type_survives_its_own_text(kind):
    assert parse_type(str(kind)) == kind


@given(st.text(alphabet="array<>(),:`ab1 2intstrucmap"))
def test_any_text_is_a_type_or_a_clear_error(text):
    try:
        kind = parse_type(text)
    except TypeSyntaxError as error:
        assert 0 <= error.position <= len(text)
    else:
        assert parse_type(str(kind)) == kind


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("long", BIGINT),
        ("INTEGER", INT),
        ("timestamptz", Primitive("timestamp")),
        ("decimal", Decimal(10, 0)),
        ("decimal(18)", Decimal(18, 0)),
        ("array< string >", Array(STRING)),
        ("struct<a:int,`b c`:string>", Struct((("a", INT), ("b c", STRING)))),
        ("struct<a int, d map<string,void>>", Struct((("a", INT), ("d", MapType(STRING, Void()))))),
    ],
)
def test_sparks_spellings_are_understood(text, expected):
    assert parse_type(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("foo", "unknown type `foo` at position 0"),
        ("", "expected a type at position 0"),
        ("array<int", "expected `>` at position 9"),
        ("int int", "unexpected text after the type at position 3"),
        ("struct<a:int,a:int>", "duplicate field `a` at position 13"),
        ("decimal(39,0)", "out of range"),
        ("decimal(9999999999,0)", "expected a number"),
        ("array<" * 65 + "int" + ">" * 65, "64 deep"),
        ("array<" * 100_000, "at most 100000 characters"),
    ],
)
def test_what_is_no_type_is_an_error_with_its_position(text, message):
    with pytest.raises(ValueError, match="position") as caught:
        parse_type(text)

    assert message in str(caught.value)


def test_storage_has_no_void_at_any_depth():
    kind = parse_type("struct<a:void,b:array<void>,c:map<string,struct<d:void>>>")

    stored = parse_type("struct<a:string,b:array<string>,c:map<string,struct<d:string>>>")

    assert storage_type(kind) == stored


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("int", "bigint", "bigint"),
        ("bigint", "int", "bigint"),
        ("float", "double", "double"),
        ("decimal(10,2)", "decimal(18,2)", "decimal(18,2)"),
        ("decimal(10,2)", "decimal(18,3)", None),
        ("void", "array<int>", "array<int>"),
        ("string", "void", "string"),
        ("bigint", "double", None),
        ("int", "string", None),
        ("date", "timestamp", None),
        ("struct<a:int>", "struct<b:string,a:bigint>", "struct<a:bigint,b:string>"),
        ("struct<a:int>", "struct<a:string>", None),
        ("array<struct<a:int>>", "array<struct<a:int,b:int>>", "array<struct<a:int,b:int>>"),
        ("map<string,int>", "map<string,bigint>", "map<string,bigint>"),
        ("map<int,int>", "map<bigint,int>", None),
    ],
)
def test_a_column_widens_only_as_iceberg_can_in_place(old, new, expected):
    found = widen(parse_type(old), parse_type(new))

    assert (None if found is None else str(found)) == expected


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (BIGINT, DOUBLE, DOUBLE),
        (INT, FLOAT, DOUBLE),
        (BIGINT, Decimal(38, 0), Decimal(38, 0)),
        (INT, Decimal(5, 2), Decimal(12, 2)),
        (BIGINT, Decimal(38, 30), None),
        (Decimal(10, 2), Decimal(8, 4), Decimal(12, 4)),
        (Decimal(10, 2), DOUBLE, None),
        (STRING, BIGINT, None),
        (Array(Void()), Array(INT), Array(INT)),
    ],
)
def test_inference_finds_the_type_that_loses_nothing(a, b, expected):
    assert unify(a, b) == expected
    assert unify(b, a) == expected


@given(types, types)
def test_unify_does_not_depend_on_the_order(a, b):
    def shape(kind):
        if isinstance(kind, Struct):
            return frozenset((name, shape(inner)) for name, inner in kind.fields)
        if isinstance(kind, Array):
            return ("array", shape(kind.element))
        if isinstance(kind, MapType):
            return ("map", shape(kind.key), shape(kind.value))
        return kind

    assert shape(unify(a, b)) == shape(unify(b, a))


@given(types, types)
def test_a_widened_column_holds_both_and_stays(old, new):
    wide = widen(old, new)

    if wide is not None:
        assert widen(wide, old) == wide
        assert widen(wide, new) == wide


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("void", "array<int>", True),
        ("struct<a:void>", "struct<a:struct<b:int>,c:int>", True),
        ("array<struct<a:void>>", "array<struct<a:int>>", True),
        ("array<int>", "array<bigint>", True),
        ("array<void>", "array<void>", True),
        ("array<void>", "array<string>", True),
        ("array<void>", "array<int>", False),
        ("array<struct<a:array<void>>>", "array<struct<a:array<struct<b:int>>>>", False),
        ("map<string,void>", "map<string,int>", False),
        ("map<void,void>", "map<int,string>", False),
        ("struct<a:map<string,array<void>>>", "struct<a:map<string,array<date>>>", False),
    ],
)
def test_only_elements_of_lists_and_maps_get_their_first_type_by_a_rewrite(old, new, expected):
    assert widen(parse_type(old), parse_type(new)) == parse_type(new)
    assert is_in_place(parse_type(old), parse_type(new)) is expected
