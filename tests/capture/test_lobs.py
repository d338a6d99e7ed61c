"""Values that are longer than a capture takes are cut, left out or refused; all others stay."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from polynya.capture.lobs import Limit, LimitAction, Limited, limited
from polynya.capture.masks import HashMask, TruncateMask, masked
from polynya.formats.debezium.envelope import Unsent
from polynya.model.errors import OperationError

LIMIT = 1024
ROW = {
    "type": "struct",
    "fields": [
        {"field": "id", "type": "string", "optional": False},
        {"field": "t", "type": "string", "optional": False},
        {"field": "b", "type": "bytes", "optional": False},
        {"field": "j", "type": "string", "optional": False, "name": "io.debezium.data.Json"},
        {"field": "d", "type": "bytes", "optional": False, "name": "Decimal"},
    ],
}
SCHEMA = {"type": "struct", "fields": [{**ROW, "field": "before"}, {**ROW, "field": "after"},
                                       {"field": "op", "type": "string"}]}  # fmt: skip


def line(**row: Any) -> bytes:
    """An update that gives a row its first long value."""
    value = {"before": {"id": "1"}, "after": {"id": "1", **row}, "op": "u"}
    event = {"key": {"id": row.get("id", "1")}, "value": value}
    return json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode()


def under(then: LimitAction) -> Limited:
    return limited("shop.docs", SCHEMA, Limit(LIMIT, then), None, set())


def after(limit: Limited, **row: Any) -> dict[str, Any]:
    event = json.loads(limit.line(line(**row)))
    return {name: one for name, one in event["value"]["after"].items() if name in row}


def optional(limit: Limited) -> set[str]:
    fields = limit.schema["fields"][1]["fields"]
    return {one["field"] for one in fields if one["optional"]}


def test_a_text_keeps_its_beginning_in_whole_characters() -> None:
    limit = under("truncate")

    cut = after(limit, t="é" * 600 + "€", b="AA==")

    assert cut == {"t": "é" * 512, "b": "AA=="}
    assert after(limit, t="€" * 400)["t"] == "€" * 341
    assert limit.cut == {("shop.docs", "t")}


def test_bytes_are_counted_and_not_their_letters() -> None:
    whole, longer = bytes(range(256)) * 4, bytes(range(256)) * 4 + b"x"

    found = after(under("truncate"), b=base64.b64encode(longer).decode(), t="t" * 2000)
    same = after(under("truncate"), b=base64.b64encode(whole).decode(), t="t" * 1024)

    assert base64.b64decode(found["b"]) == base64.b64decode(same["b"]) == whole
    assert found["t"] == same["t"] == "t" * 1024


def test_the_beginning_of_a_document_is_none() -> None:
    limit = under("truncate")

    assert after(limit, j=json.dumps(["x"] * 1000)) == {"j": None}
    assert optional(limit) == {"j"}


def test_what_is_left_out_may_be_missing_in_its_column() -> None:
    limit = under("null")

    assert after(limit, t="t" * 2000, b="AA==") == {"t": None, "b": "AA=="}
    assert optional(limit) == {"id", "t", "b", "j"}


def test_a_value_that_may_not_be_cut_is_refused_without_being_shown() -> None:
    with pytest.raises(OperationError, match=r"shop\.docs\.t has 2,000 bytes") as caught:
        under("stop").line(line(t="secret" + "t" * 1994))

    assert caught.value.code == "POLYNYA-GTW-054"
    assert "secret" not in str(caught.value.as_dict())


def test_keys_numbers_and_all_that_is_short_stay_as_they_are() -> None:
    limit = under("truncate")
    key, number = "k" * 2000, base64.b64encode(bytes(1500)).decode()

    assert after(limit, id=key, d=number, t="short") == {"id": key, "d": number, "t": "short"}
    assert limit.line(line(t="t" * 900)) == line(t="t" * 900)
    assert limit.line(b'{"key":null,"value":null}') == b'{"key":null,"value":null}'
    assert not limit.cut


def test_lines_of_a_load_are_cut_each_for_itself() -> None:
    limit = under("truncate")

    first, second, end = limit.lines(line(t="a" * 3000) + b"\n" + line(t="b") + b"\n").split(b"\n")

    assert json.loads(first)["value"]["after"]["t"] == "a" * 1024
    assert (second, end) == (line(t="b"), b"")
    assert limit.lines(line(t="b") + b"\n") == line(t="b") + b"\n"


def test_masks_see_the_whole_value() -> None:
    masks = {"t": HashMask(b"key"), "b": TruncateMask(4)}
    before = masked("shop.docs", SCHEMA, masks, key=("id",), unsent=Unsent(""))
    limit = limited("shop.docs", SCHEMA, Limit(LIMIT, "null"), before, set())

    one, other = (after(limit, t="t" * 3000 + end, b="") for end in "xy")

    assert len(one["t"]) == 64
    assert one["t"] != other["t"]
    assert not limit.hides_key
