"""A topic of Debezium that landed is read like the files of a capture."""

from __future__ import annotations

import gzip
import io
import json
from typing import Any

import fastavro
import pytest

from polynya.formats.debezium import records
from polynya.store.schema_registry import RegisteredSchema
from tests.formats.debezium.builders import (
    an_event,
    capture,
    read_capture,
    reread_line,
    with_schema,
)
from tests.formats.debezium.messages import LandedTopic, Sent
from tests.formats.helpers import column, rules, types

EVENTS = [
    an_event("r", {"id": 1, "name": "a"}, key={"id": 1}, snapshot="true", lsn=10),
    an_event("u", {"id": 1, "name": "b"}, key={"id": 1}, order=2),
    an_event("d", before={"id": 1}, key={"id": 1}, order=3),
    {**an_event(key={"id": 1}), "value": None},
    an_event("c", {"id": 2, "name": "c"}, key={"id": 2}, order=4,
             headers=[["__debezium.oldkey", '{"id": 1}']]),
]  # fmt: skip
SERVICE = ("__op", "__ci", "__tail", "__ts", "__old", "__unsent", "id", "name")


def test_messages_give_the_rows_of_the_same_lines() -> None:
    topic = LandedTopic()
    topic.land(*EVENTS[:2])
    topic.land(*EVENTS[2:])

    landed = read_capture(topic.files)
    lines = read_capture(capture(*EVENTS))

    ours, theirs = landed.datasets["w.t"], lines.datasets["w.t"]
    assert ours.rows.select(SERVICE).equals(theirs.rows.select(SERVICE))
    assert (ours.keys, ours.schema) == (theirs.keys, theirs.schema)
    assert landed.unrouted is not None
    assert dict(landed.unrouted.counters) == {"tombstones": 1}


def test_a_batch_is_read_on_from_the_record_where_the_last_one_ended() -> None:
    topic = LandedTopic()
    path = topic.land(*EVENTS)

    batch = read_capture(topic.files, starts={path: 2}).datasets["w.t"]

    assert column(batch, "__offset") == [2, 4]


def test_types_come_from_the_schema_of_a_message() -> None:
    topic = LandedTopic()
    event = an_event("c", {"id": 1, "day": 20000}, key={"id": 1})
    topic.land(
        with_schema(
            event, {"id": "int64", "day": {"type": "int32", "name": "io.debezium.time.Date"}}
        )
    )

    batch = read_capture(topic.files).datasets["w.t"]

    assert [str(kind) for kind in batch.schema.values()] == ["bigint", "date"]


def test_compressed_messages_are_read() -> None:
    topic = LandedTopic()
    event = an_event("c", {"id": 1, "name": "a"}, key={"id": 1})
    topic.land(Sent(gzip.compress(json.dumps(event["value"]).encode()), b'{"id":1}'))

    assert column(read_capture(topic.files).datasets["w.t"], "name") == ["a"]


@pytest.mark.parametrize(
    ("message", "rule"),
    [
        (Sent(b"no json", b'{"id":1}'), "bad_json"),
        (Sent(b'{"op":"c"}, "key": {}', b'{"id":1}'), "bad_json"),
        (Sent(b"[1]"), "not_an_event"),
        (Sent(b'{"a":1}'), "not_an_event"),
        (Sent(b"\xff\xfe"), "bad_utf8"),
        (Sent(b'{"op":"c","source":{}}', b"\xff"), "bad_utf8"),
        (Sent(b'{"op":"c","source":{}}', b"Struct{id=1}"), "no_dataset"),
    ],
)
def test_a_bad_message_is_kept_with_its_place_and_can_be_read_again(
    message: Sent, rule: str
) -> None:
    topic = LandedTopic()
    path = topic.land(message)

    batch = read_capture(topic.files).unrouted

    assert batch is not None
    [refused] = batch.rejected
    assert (refused.file, refused.offset, refused.rule) == (path, 0, rule)
    head, _, value = refused.raw.partition(b"\n")
    assert json.loads(head)["hdr__kafka_topic"] == "pg.w.t"
    assert value == message.value
    [again] = reread_line(refused.raw).unrouted.rejected  # type: ignore[union-attr]
    assert (again.rule, again.raw) == (rule, refused.raw)


def test_a_refused_event_of_a_table_is_read_again_with_its_key_and_headers() -> None:
    topic = LandedTopic()
    bad = an_event("c", {"id": "x"}, key={"id": "x"}, headers=[["__debezium.oldkey", '{"id":"w"}']])
    topic.land(bad)

    refused = read_capture(topic.files, known={"w.t": types(id="int")}).datasets["w.t"].rejected
    batch = reread_line(refused[0].raw).datasets["w.t"]

    assert batch.keys == ("id",)
    assert column(batch, "__old") == [{"id": "w"}]


def test_what_is_refused_later_brings_its_place_too() -> None:
    topic = LandedTopic()
    path = topic.land(*EVENTS[:1])

    batch = read_capture(topic.files).datasets["w.t"]

    assert batch.raw_of is not None
    assert b"hdr__kafka_offset" in batch.raw_of(path, 0)


def test_a_parquet_file_of_others_is_refused_as_a_whole() -> None:
    topic = LandedTopic()
    path = topic.land(*EVENTS)
    files = {path: topic.files[path][:-8] + b"xxxxPAR1"}

    batch = read_capture(files).unrouted

    assert batch is not None
    assert rules(batch) == [(-1, "unreadable_file")]


class _Registry:
    """Schemas by number."""

    def __init__(self, *schemas: Any) -> None:
        self._schemas = schemas

    def by_number(self, number: int) -> RegisteredSchema | None:
        known = 0 < number <= len(self._schemas)
        return RegisteredSchema("AVRO", json.dumps(self._schemas[number - 1])) if known else None

    def by_version(self, subject: str, version: int) -> RegisteredSchema | None:
        raise AssertionError((subject, version))


def _record(name: str, **fields: Any) -> dict[str, Any]:
    found = [{"name": one, "type": kind} for one, kind in fields.items()]
    return {"type": "record", "name": name, "fields": found}


_DAY = {"type": "int", "connect.name": "io.debezium.time.Date"}
KEY = _record("Key", id="long")
ROW = _record("Value", id="long", day=["null", _DAY])
SOURCE = _record("Source", connector="string", schema="string", table="string", lsn="long")
ENVELOPE = _record(
    "Envelope", before=["null", ROW], after=["null", "Value"], source=SOURCE, op="string"
)


def _written(number: int, schema: Any, value: Any) -> bytes:
    file = io.BytesIO()
    fastavro.schemaless_writer(file, fastavro.parse_schema(schema), value)
    return b"\0" + number.to_bytes(4, "big") + file.getvalue()


def test_messages_in_avro_have_the_types_of_their_registry(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(records, "registry_at", lambda *_: _Registry(KEY, ENVELOPE))
    source = {"connector": "postgresql", "schema": "w", "table": "t", "lsn": 5}
    value = {"op": "c", "before": None, "after": {"id": 4, "day": 20000}, "source": source}
    registry = {"url": "http://registry:8081"}
    topic = LandedTopic(content={"type": "avro_with_schema", "schema_registry": registry})
    good = Sent(_written(2, ENVELOPE, value), _written(1, KEY, {"id": 4}))
    topic.land(good, Sent(_written(9, ENVELOPE, value)), Sent(good.value[:9]))  # type: ignore[index]

    found = read_capture(topic.files)

    batch, rest = found.datasets["w.t"], found.unrouted
    assert rest is not None
    assert (batch.keys, [str(kind) for kind in batch.schema.values()]) == (
        ("id",), ["bigint", "date"],
    )  # fmt: skip
    assert [str(one) for one in column(batch, "day")] == ["2024-10-04"]
    assert rules(rest) == [(1, "unknown_schema"), (2, "bad_avro")]
