"""JSON lines: what is a record, what is refused and why, and that numbers stay exact."""

from __future__ import annotations

import time
from decimal import Decimal

import pytest

from polynya.formats.errors import RecordError
from polynya.formats.records.json import parse_object
from tests.formats.helpers import a_dataset, column, json_lines, read, rules, schema

_GOOD = b'{"id":1,"n":1}'


@pytest.mark.parametrize(
    ("raw", "rule"),
    [
        (b'{"a":', "bad_json"),
        (b"garbage", "bad_json"),
        (b'{"a":1} x', "bad_json"),
        (b"[1]", "not_an_object"),
        (b"null", "not_an_object"),
        (b'{"a":1,"a":2}', "duplicate_key"),
        (b'{"x":{"a":1,"a":2}}', "duplicate_key"),
        (b'{"a":NaN}', "bad_number"),
        (b'{"a":-Infinity}', "bad_number"),
        (b'{"a":' + b"9" * 5000 + b"}", "bad_number"),
        (b'{"a":1.' + b"9" * 500 + b"}", "bad_number"),
        (b'{"a":1e999999}', "bad_number"),
        (b'{"a":"\xff"}', "bad_utf8"),
        (b'{"a":"\\ud800"}', "bad_utf8"),
        (b'{"a":"\\udc00x"}', "bad_utf8"),
        (b'{"a":"\xed\xa0\x80"}', "bad_utf8"),
        (b'{"a":' * 65 + b"1" + b"}" * 65, "too_deep"),
    ],
)
def test_a_bad_line_is_refused_by_its_rule(raw: bytes, rule: str) -> None:
    with pytest.raises(RecordError) as caught:
        parse_object(raw)
    assert caught.value.rule == rule


@pytest.mark.parametrize(
    "raw",
    [b"[" * 100_000, b'{"a":' * 100_000, b"[" * 99 + b'{"\\"' * 200_000, b"{" * 65 + b'"\\'],
)
def test_hostile_nesting_is_refused_fast(raw: bytes) -> None:
    started = time.perf_counter()

    with pytest.raises(RecordError):
        parse_object(raw)

    assert time.perf_counter() - started < 2


def test_brackets_inside_strings_are_no_nesting() -> None:
    assert parse_object(b'{"a":"' + b"[{" * 200 + b'"}') == {"a": "[{" * 200}


def test_surrogate_pairs_are_characters() -> None:
    assert parse_object(b'{"a":"\\ud83d\\ude00"}') == {"a": "\U0001f600"}


def test_bad_lines_keep_their_bytes_and_good_ones_are_not_delayed() -> None:
    bad = b'{"id":2,"n":\xff}'

    batch = read(_GOOD + b"\n\n  \n" + bad + b'\r\n{"id":3,"n":3}')

    assert column(batch, "id") == [1, 3]
    assert column(batch, "__offset") == [0, 2]
    assert [(one.offset, one.rule, one.raw) for one in batch.rejected] == [(1, "bad_utf8", bad)]
    assert batch.files["f"].records == 3


def test_a_byte_order_mark_is_skipped() -> None:
    assert column(read(b"\xef\xbb\xbf" + _GOOD), "id") == [1]


def test_the_raw_record_is_kept_as_it_was() -> None:
    raw = b'{"id" : 1, "n":  1.50}'

    assert column(read(raw, a_dataset(sequence_by=("id",))), "__raw") == [raw]


@pytest.mark.parametrize(
    ("literals", "kind", "values"),
    [
        (["1", "9223372036854775807"], "bigint", [1, 2**63 - 1]),
        (["1", "9223372036854775808"], "decimal(38,0)", [Decimal(1), Decimal(2**63)]),
        (["1.5", "2"], "double", [1.5, 2.0]),
        (["1.50", "1e3"], "double", [1.5, 1000.0]),
        (["0.1", "3.141592653589793"], "double", [0.1, 3.141592653589793]),
        (["0.12345678901234567890"], "decimal(38,19)", [Decimal("0.1234567890123456789")]),
        (["9007199254740993", "0.5"], "decimal(38,1)", [Decimal(9007199254740993), Decimal("0.5")]),
    ],
)
def test_numbers_take_the_narrowest_type_that_loses_nothing(
    literals: list[str], kind: str, values: list[object]
) -> None:
    lines = "\n".join(f'{{"id":1,"n":1,"x":{literal}}}' for literal in literals)

    batch = read(lines.encode())

    assert schema(batch)["x"] == kind
    assert column(batch, "x") == values


def test_an_integer_beyond_38_digits_is_refused() -> None:
    assert rules(read(json_lines({"id": 1, "n": 1, "x": 10**38}))) == [(0, "bad_number")]


@pytest.mark.parametrize(
    "name", ["", "hdr__operation", "HDR__x", "__ci", "__RAW", "a\u0000b", "x" * 300]
)
def test_names_that_no_column_may_have_are_refused(name: str) -> None:
    batch = read(json_lines({"id": 1, "n": 1, name: 1}, {"id": 2, "n": 2}))

    assert rules(batch) == [(0, "bad_column")]
    assert column(batch, "id") == [2]
    assert name not in batch.schema


def test_names_that_differ_only_in_case_are_refused() -> None:
    batch = read(json_lines({"id": 1, "n": 1}, {"ID": 2, "n": 2}))

    assert rules(batch) == [(1, "bad_column")]


def test_hostile_names_are_only_names() -> None:
    name = "`; DROP TABLE x; --"

    assert column(read(json_lines({"id": 1, "n": 1, name: "v"})), name) == ["v"]
