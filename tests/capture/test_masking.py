"""Masks of columns: what no line says any more, and what stays the same in all lines."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polynya.capture.masks import (
    DropMask,
    HashMask,
    Masked,
    ReplaceMask,
    TruncateMask,
    mask_of,
    masked,
)
from polynya.formats.debezium.envelope import Unsent
from polynya.formats.debezium.types import fields_of
from polynya.model.errors import OperationError

KEY = b"pepper"
UNSENT = "__debezium_unavailable_value"
MARKED = Unsent(UNSENT)


def a_column(name: str, kind: str | dict[str, Any] = "string", *, optional: bool = True) -> Any:
    shape = {"type": kind} if isinstance(kind, str) else kind
    return {**shape, "optional": optional, "field": name}


def a_schema(*columns: Any) -> dict[str, Any]:
    row = {"type": "struct", "optional": True, "fields": list(columns)}
    rest = {"type": "string", "optional": False, "field": "op"}
    return {
        "type": "struct",
        "fields": [{**row, "field": "before"}, {**row, "field": "after"}, rest],
    }


def a_line(after: Any = None, before: Any = None, key: Any = None, headers: Any = None) -> bytes:
    event = {
        "key": key,
        "value": {"op": "u", "before": before, "after": after, "source": {"lsn": 5}},
    }
    return json.dumps(event if headers is None else {**event, "headers": headers}).encode()


def read(line: bytes) -> Any:
    return json.loads(line)


def column_types(one: Masked) -> dict[str, str]:
    after = next(item for item in one.schema["fields"] if item["field"] == "after")
    return {name: str(kind) for name, (kind, _) in fields_of(after).items()}


def hmac_of(text: str | bytes) -> str:
    data = text if isinstance(text, bytes) else text.encode()
    return hmac.new(KEY, data, hashlib.sha256).hexdigest()


def email(mask: Any, **columns: Any) -> Masked:
    schema = a_schema(a_column("id", "int32", optional=False), a_column("email"))
    return masked("public.users", schema, {"email": mask, **columns}, key=("id",), unsent=MARKED)


def test_a_dropped_column_is_in_no_row_and_not_in_the_schema():
    masks = email(DropMask())

    event = read(masks.line(a_line({"id": 1, "email": "new"}, {"id": 1, "email": "old"})))

    assert event["value"]["after"] == event["value"]["before"] == {"id": 1}
    assert column_types(masks) == {"id": "int"}


def test_a_hash_is_the_keyed_one_of_the_text_before_and_after():
    masks = email(HashMask(KEY))

    event = read(masks.line(a_line({"id": 1, "email": "a@b.c"}, {"id": 1, "email": "é"})))

    assert event["value"]["after"]["email"] == hmac_of("a@b.c")
    assert event["value"]["before"]["email"] == hmac_of("é")
    assert column_types(masks)["email"] == "string"


def test_a_truncated_text_keeps_its_first_characters():
    event = read(email(TruncateMask(2)).line(a_line({"id": 1, "email": "🦊éz"})))

    assert event["value"]["after"]["email"] == "🦊é"


@pytest.mark.parametrize(
    ("value", "kind"), [("x", "string"), (0, "bigint"), (1.5, "double"), (False, "boolean")]
)
def test_a_replaced_column_has_the_constant_in_all_rows_and_its_type(value, kind):
    masks = email(ReplaceMask(value))

    event = read(masks.line(a_line({"id": 1, "email": "a"}, {"id": 1, "email": None})))

    assert event["value"]["after"]["email"] == event["value"]["before"]["email"] == value
    assert column_types(masks)["email"] == kind


def test_a_column_that_is_replaced_by_null_keeps_its_type():
    schema = a_schema(a_column("n", "int64", optional=False))

    masks = masked("t", schema, {"n": ReplaceMask(None)}, unsent=MARKED)

    assert column_types(masks) == {"n": "bigint"}
    assert masks.schema["fields"][0]["fields"][0]["optional"] is True


def test_null_stays_null():
    for mask in (HashMask(KEY), TruncateMask(3)):
        assert read(email(mask).line(a_line({"email": None})))["value"]["after"] == {"email": None}


def test_a_hashed_key_is_the_same_in_key_rows_and_headers():
    schema = a_schema(a_column("id", "int32", optional=False), a_column("name"))
    masks = masked("t", schema, {"id": HashMask(KEY)}, key=("id",), unsent=MARKED)
    headers = [["__debezium.oldkey", '{"id":7}'], ["__debezium.newkey", {"id": 8}]]

    line = masks.line(a_line({"id": 8, "name": "n"}, {"id": 7}, {"id": 8}, headers))

    event = read(line)
    assert event["key"]["id"] == event["value"]["after"]["id"] == hmac_of("8")
    assert event["value"]["before"]["id"] == hmac_of("7")
    assert json.loads(event["headers"][0][1]) == {"id": hmac_of("7")}
    assert event["headers"][1][1] == {"id": hmac_of("8")}
    assert masks.hides_key


def test_headers_of_unknown_names_are_left_out():
    line = email(HashMask(KEY)).line(a_line({"email": "a"}, headers=[["query", "… 'a' …"]]))

    assert read(line)["headers"] == []


@pytest.mark.parametrize("mask", [DropMask(), TruncateMask(3), ReplaceMask("x")])
def test_only_a_hash_masks_a_key(mask):
    with pytest.raises(OperationError) as error:
        masked("t", a_schema(a_column("id")), {"id": mask}, key=("id",), unsent=MARKED)
    assert error.value.code == "POLYNYA-GTW-081"


def test_a_masked_column_that_is_not_there_stops_the_table():
    with pytest.raises(OperationError) as error:
        masked("t", a_schema(a_column("mail")), {"email": DropMask()}, unsent=MARKED)
    assert error.value.code == "POLYNYA-GTW-080"


@pytest.mark.parametrize(
    "unsent",
    [
        UNSENT,
        base64.b64encode(UNSENT.encode()).decode(),
        [UNSENT],
        list(UNSENT.encode()),
        {UNSENT: UNSENT},
        ["b68a35a7-17ad-35b3-af2a-ae46edb4545a"],
    ],
)
@pytest.mark.parametrize("mask", [HashMask(KEY), TruncateMask(3)])
def test_a_value_that_was_not_sent_stays_marked_as_such(mask, unsent):
    event = read(email(mask).line(a_line({"email": unsent})))

    assert event["value"]["after"]["email"] == UNSENT


def test_a_beginning_that_would_read_as_not_sent_is_cut_once_more():
    event = read(email(TruncateMask(len(UNSENT))).line(a_line({"email": UNSENT + "!"})))

    assert event["value"]["after"]["email"] == UNSENT[:-1]


def test_a_schema_keeps_no_default_and_no_list_of_allowed_values():
    enum = {
        "type": "string",
        "name": "io.debezium.data.Enum",
        "parameters": {"allowed": "gold,silver"},
        "default": "silver",
    }

    masks = masked("t", a_schema(a_column("tier", enum)), {"tier": HashMask(KEY)}, unsent=MARKED)

    assert "silver" not in json.dumps(masks.schema)


DECIMAL = {
    "type": "bytes",
    "name": "org.apache.kafka.connect.data.Decimal",
    "parameters": {"scale": "2"},
}
VARIABLE = {"type": "struct", "name": "io.debezium.data.VariableScaleDecimal", "fields": []}


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        ("int64", 9007199254740993, "9007199254740993"),
        ("boolean", True, "true"),
        ("double", 1, "1.0"),
        ("double", 1.0, "1.0"),
        ("double", -0.0, "0.0"),
        ("float", 0.1, "0.1"),
        ("double", "NaN", "NaN"),
        ("bytes", base64.b64encode(b"\x00\xff").decode(), b"\x00\xff"),
        (DECIMAL, "CWA=", "24"),
        (VARIABLE, {"scale": 3, "value": "CWA="}, "2.4"),
        (VARIABLE, {"value": "CWA=", "scale": 2}, "24"),
        ({"type": "array", "items": {"type": "int32"}}, [1, None], "[1,null]"),
        ("bytes", "no base64", "no base64"),
    ],
)
def test_a_hash_is_that_of_the_value_however_it_is_spelled(kind, value, text):
    masks = masked("t", a_schema(a_column("v", kind)), {"v": HashMask(KEY)}, unsent=MARKED)

    assert read(masks.line(a_line({"v": value})))["value"]["after"]["v"] == hmac_of(text)


def test_lines_stay_lines_and_events_without_rows_pass():
    deleted = a_line(None, {"id": 1, "email": None}, {"id": 1})
    emptied = b'{"key": null, "value": {"op": "t", "before": null, "after": null}}'
    tombstone = b'{"key": {"id": 1}, "value": null}'

    lines = email(DropMask()).lines(deleted + b"\n" + emptied + b"\n" + tombstone + b"\n")

    first, second, third, end = lines.split(b"\n")
    assert read(first)["value"]["before"] == {"id": 1}
    assert read(second)["value"]["after"] is None
    assert read(third) == {"key": {"id": 1}, "value": None}
    assert end == b""


@pytest.mark.parametrize(
    "line",
    [
        b'{"secret',
        b"[]",
        b'{"value": "secret"}',
        b'{"value": {"after": {"email": "secret"}}}',
        b'{"value": {"op": "c", "after": ["secret"]}}',
        b'{"value": {"op": "c", "after": {"id": NaN, "email": "secret"}}}',
        b'{"value": {"op": "c", "after": {"id": 1e999, "email": "secret"}}}',
        b'{"value": {"op": "c"}, "key": "secret"}',
        b'{"value": {"op": "c"}, "headers": {"__debezium.oldkey": "secret"}}',
        b'{"value": {"op": "c"}, "headers": [["__debezium.oldkey", "secret"]]}',
        b'{"value": {"op": "c"}, "headers": [["__debezium.oldkey"]]}',
        b"[" * 100_000,
        b'\xff"secret"',
    ],
)
def test_what_cannot_be_masked_is_an_error_that_shows_nothing(line):
    with pytest.raises(OperationError) as error:
        email(HashMask(KEY)).line(line)
    assert error.value.code == "POLYNYA-GTW-082"
    assert "secret" not in error.value.render()
    assert error.value.__cause__ is None


def test_keys_of_hashes_are_in_no_text():
    assert "pepper" not in repr(email(HashMask(KEY))) + repr(HashMask(KEY))


def test_a_hash_needs_a_key():
    with pytest.raises(ValueError, match="without a key"):
        HashMask(b"")


@pytest.mark.parametrize(
    ("given", "mask"),
    [
        ("drop", DropMask()),
        ({"hash": {"key": "pepper"}}, HashMask(KEY)),
        ({"truncate": 0}, TruncateMask(0)),
        ({"replace": None}, ReplaceMask(None)),
    ],
)
def test_settings_become_masks(given, mask):
    assert mask_of(given) == mask


@pytest.mark.parametrize(
    "given",
    [None, "hash", {}, {"hash": {}}, {"hash": {"key": ""}}, {"truncate": -1}, {"replace": [1]},
     {"hash": {"key": 1}}, {"truncate": 1, "replace": 2}],
)  # fmt: skip
def test_what_is_no_mask_is_refused(given):
    with pytest.raises(ValueError):
        mask_of(given)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec=None)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip
KINDS = st.sampled_from(["string", "int64", "double", "bytes", DECIMAL, VARIABLE, "boolean"])
MARK = "c0ffee-secret"


@given(VALUES, VALUES, KINDS)
def test_any_value_is_masked_and_its_neighbours_are_untouched(value, other, kind):
    schema = a_schema(a_column("v", kind), a_column("w", kind))
    for mask in (HashMask(KEY), TruncateMask(4)):
        row = read(
            masked("t", schema, {"v": mask}, unsent=MARKED).line(a_line({"v": value, "w": other}))
        )
        after = row["value"]["after"]
        assert after["w"] == other
        assert after["v"] is None or isinstance(after["v"], str)
        assert (after["v"] is None) == (value is None)


@given(st.text(), st.text())
def test_hashes_are_equal_where_texts_are(left, right):
    masks = email(HashMask(KEY))
    hashes = [
        read(masks.line(a_line({"email": text})))["value"]["after"]["email"]
        for text in (left, right)
    ]

    assert (hashes[0] == hashes[1]) == (left == right)


@given(st.text(), st.text(), KINDS)
def test_no_line_holds_what_was_hidden(head, tail, kind):
    secret = head + MARK + tail
    schema = a_schema(a_column("v", kind))
    headers = [["__debezium.oldkey", json.dumps({"v": secret})]]
    for mask in (HashMask(KEY), DropMask(), ReplaceMask("x")):
        line = masked("t", schema, {"v": mask}, unsent=MARKED).line(
            a_line({"v": secret}, {"v": secret}, {"v": secret}, headers)
        )
        assert MARK.encode() not in line
