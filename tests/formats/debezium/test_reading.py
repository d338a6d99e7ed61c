"""A captured batch read by the Debezium reader: types by its header, from any line on."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from polynya.formats.base import ReadBatch
from polynya.formats.batch import WHOLE_FILE
from polynya.formats.debezium.captured import CaptureHeader, EventSchema, write_batch
from tests.formats.debezium.builders import an_event, read_capture, reread_line
from tests.formats.helpers import column, rules, schema

PATH = "shop_db/capture-00000000000000000001.jsonl.zst"
DECIMAL = {
    "type": "bytes",
    "name": "org.apache.kafka.connect.data.Decimal",
    "version": 1,
    "parameters": {"scale": "2", "connect.decimal.precision": "9"},
}


def envelope(**fields: Any) -> dict[str, Any]:
    """The schema of an envelope whose rows have these fields."""
    typed = [
        {**({"type": kind} if isinstance(kind, str) else kind), "field": name, "optional": True}
        for name, kind in fields.items()
    ]
    row = {"type": "struct", "fields": typed, "optional": True}
    return {"type": "struct", "fields": [{**row, "field": "before"}, {**row, "field": "after"}]}


def landed(
    events: Sequence[Any],
    shapes: Sequence[EventSchema],
    table: str = "w.t",
    unsent: str | None = None,
) -> bytes:
    """A batch with events of one table."""
    header = CaptureHeader(
        "shop_db", 1, datetime(2026, 1, 1, tzinfo=UTC), len(events), {}, {table: shapes},
        unsent=unsent,
    )  # fmt: skip
    lines = [e if isinstance(e, bytes) else json.dumps(e).encode() for e in events]
    return write_batch(header, b"".join(line + b"\n" for line in lines))


def read(data: bytes, start: int = 0) -> ReadBatch:
    return read_capture({PATH: data}, starts={PATH: start} if start else None)


def rows(*ids: int) -> list[dict[str, Any]]:
    return [an_event("c", {"id": n, "price": "AJY="}, key={"id": n}) for n in ids]


PRICED = EventSchema(1, envelope(id="int32", price=DECIMAL))


def test_events_have_the_types_that_the_header_gives() -> None:
    batch = read(landed(rows(1, 2), [PRICED])).datasets["w.t"]

    assert schema(batch)["price"] == "decimal(9,2)"
    assert column(batch, "price") == [Decimal("1.50"), Decimal("1.50")]
    assert batch.keys == ("id",)


@pytest.mark.parametrize(
    ("said", "null"),
    [(None, "__debezium_unavailable_value"), ("__polynya_unsent_7", "__polynya_unsent_7")],
)
def test_a_batch_says_which_text_means_that_a_column_was_not_sent(
    said: str | None, null: str
) -> None:
    texts = ["__debezium_unavailable_value", "__polynya_unsent_7"]
    events = [an_event("u", {"id": n, "v": text}, key={"id": n}) for n, text in enumerate(texts)]
    shape = EventSchema(1, envelope(id="int32", v="string"))

    batch = read(landed(events, [shape], unsent=said)).datasets["w.t"]

    assert column(batch, "v") == [None if text == null else text for text in texts]
    assert column(batch, "__unsent") == [["v"] if text == null else None for text in texts]


def test_without_such_a_text_every_value_was_sent() -> None:
    event = an_event("u", {"id": 1, "v": "", "w": []}, key={"id": 1})
    shape = EventSchema(
        1, envelope(id="int32", v="string", w={"type": "array", "items": {"type": "string"}})
    )

    batch = read(landed([event], [shape], unsent="")).datasets["w.t"]

    assert (column(batch, "v"), column(batch, "w")) == ([""], [[]])
    assert column(batch, "__unsent") == [None]


def test_a_record_in_quarantine_keeps_the_text_that_its_batch_named() -> None:
    events = [
        an_event("u", {"id": n, "price": price, "v": "__polynya_unsent_7"}, key={"id": n})
        for n, price in enumerate(["AJY=", "?!"])
    ]
    shape = EventSchema(1, envelope(id="int32", price=DECIMAL, v="string"))

    first = read(landed(events, [shape], unsent="__polynya_unsent_7")).datasets["w.t"]
    [refused] = first.rejected
    mended = refused.raw.replace(b"?!", b"AJY=")
    again = reread_line(mended, offset=refused.offset).datasets["w.t"]

    assert (column(first, "v"), column(again, "v")) == ([None], [None])
    assert column(again, "__unsent") == [["v"]]


def test_the_header_is_counted_as_no_change() -> None:
    found = read(landed(rows(1), [PRICED]))

    assert found.unrouted is not None
    assert found.unrouted.rows_filtered == 1
    assert found.datasets["w.t"].files[PATH].records == 2
    assert found.datasets["w.t"].files[PATH].complete


@pytest.mark.parametrize("start", [1, 2, 3])
def test_a_batch_is_read_on_from_any_line(start: int) -> None:
    batch = read(landed(rows(1, 2, 3), [PRICED]), start).datasets["w.t"]

    assert column(batch, "id") == [1, 2, 3][start - 1 :]
    assert schema(batch)["price"] == "decimal(9,2)"


def test_a_table_that_changes_inside_a_batch_has_the_schema_of_each_line() -> None:
    events = [*rows(1), an_event("c", {"id": 2, "price": "AJY=", "note": "x"}, key={"id": 2})]
    wider = EventSchema(2, envelope(id="int32", price=DECIMAL, note="string"))

    batch = read(landed(events, [PRICED, wider])).datasets["w.t"]

    assert column(batch, "note") == [None, "x"]


def test_an_event_of_a_table_without_schema_is_not_guessed() -> None:
    found = read(landed(rows(1), [PRICED], table="w.other"))

    assert found.unrouted is not None
    assert rules(found.unrouted) == [(1, "bad_schema")]
    assert found.datasets == {}


def test_a_broken_line_is_quarantined_and_the_others_are_read() -> None:
    found = read(landed([b"{broken", *rows(1)], [PRICED]))

    assert found.unrouted is not None
    assert rules(found.unrouted) == [(1, "bad_json")]
    assert column(found.datasets["w.t"], "id") == [1]


def test_a_batch_with_a_broken_header_is_refused_as_a_whole() -> None:
    """Without its schemas a decimal would be a text."""
    found = read(b'{"polynya_capture":{"version":1}}\n' + json.dumps(rows(1)[0]).encode())

    assert found.unrouted is not None
    assert [one.offset for one in found.unrouted.rejected] == [WHOLE_FILE]
    assert found.datasets == {}


def test_a_quarantined_event_can_be_read_again_by_itself() -> None:
    wrong = an_event("c", {"id": "no number", "price": "AJY="}, key={"id": 1})
    batch = read(landed([wrong], [PRICED])).datasets["w.t"]
    (rejected,) = batch.rejected
    mended = rejected.raw.replace(b'"no number"', b"1")

    again = reread_line(mended).datasets["w.t"]

    assert column(again, "price") == [Decimal("1.50")]


def test_what_changes_no_row_needs_no_schema() -> None:
    begin = {"key": None, "value": {"status": "BEGIN", "id": "7"}}
    message = {"key": None, "value": {"op": "m", "source": {}}}

    found = read(landed([begin, message], []))

    assert found.unrouted is not None
    assert found.unrouted.rows_filtered == 3
    assert found.datasets == {}
