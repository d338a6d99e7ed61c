"""`init --from` with a topic: what is proposed for its messages, and that a run keeps the word."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from polynya.formats.landed import SCHEMAS
from polynya.model.errors import ConfigError
from polynya.model.loader import load_project
from polynya.proposal.topics import (
    TopicProposal,
    project_to_read,
    proposed_topic,
    reading_of,
    topic_files,
    topic_notes,
    topic_url,
)
from polynya.streams.kafka.plan import Extent
from polynya.streams.kafka.sampling import TopicSample, ranges_of

URL = topic_url("kafka://127.0.0.1:9092/shop.orders")
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def sample_of(values: Sequence[bytes | None]) -> TopicSample:
    """All messages of a topic with one partition."""
    rows = {
        "hdr__kafka_topic": ["shop.orders"] * len(values),
        "hdr__kafka_partition": [0] * len(values),
        "hdr__kafka_offset": list(range(len(values))),
        "hdr__kafka_key": [None] * len(values),
        "hdr__kafka_headers": [None] * len(values),
        "hdr__kafka_timestamp": [NOW] * len(values),
        "value": list(values),
    }
    return TopicSample(pa.table(rows, SCHEMAS["kafka"]), 1, len(values), is_whole=True)


def proposed(folder: Path, *values: bytes | None) -> TopicProposal:
    return proposed_topic(URL, sample_of(values), "shop", folder)


def as_json(*records: Any) -> list[bytes]:
    return [json.dumps(record).encode() for record in records]


def written(folder: Path, found: TopicProposal) -> Any:
    """The project with the files, as it loads."""
    files = {**project_to_read(URL), **topic_files(found, "shop", None)}
    del files["tasks/sample.yml"]
    for path, text in files.items():
        (folder / "p" / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / "p" / path).write_text(text)
    return load_project(folder / "p")


def test_objects_get_types_and_a_key_that_each_message_has(tmp_path: Path) -> None:
    orders = [{"order_id": n, "price": n, "updated_at": f"2026-01-0{n}T00:00:00Z"} for n in (1, 2)]

    found = proposed(tmp_path, *as_json(*orders))

    [landing], [task] = written(tmp_path, found).landings, written(tmp_path, found).tasks
    [dataset] = task.datasets
    assert (landing.name, landing.source.kafka.topics) == ("shop_orders_stream", ("shop.orders",))
    assert (task.landing.path, task.landing.format) == ("shop_orders_stream", "stream")
    assert (dataset.keys, dataset.sequence_by) == (("order_id",), ("updated_at",))
    assert {name: str(kind) for name, kind in dataset.columns.items()} == {
        "price": "decimal(18,4)",
        "updated_at": "timestamp",
    }
    assert (found.outcome.copied, found.outcome.records) == (2, 2)


def test_a_topic_is_the_order_of_a_key(tmp_path: Path) -> None:
    found = proposed(tmp_path, *as_json({"id": 1, "city": "a"}, {"id": 2, "city": "b"}))

    [dataset] = written(tmp_path, found).tasks[0].datasets
    assert (dataset.keys, dataset.sequence_by) == (("id",), None)


def test_messages_of_one_customer_do_not_replace_each_other(tmp_path: Path) -> None:
    clicks = as_json(*({"customer_id": n % 2, "page": n} for n in range(6)))

    found = proposed(tmp_path, *clicks)

    assert written(tmp_path, found).tasks[0].datasets[0].mode == "append_only"


def test_messages_without_a_value_keep_a_key_away(tmp_path: Path) -> None:
    found = proposed(tmp_path, *as_json({"id": 1}, {"id": 2}), None)

    assert found.dataset.events.appended == (
        "with a key 1 message without a value would be rejected"
    )
    assert "1 message without a value: each becomes a row without values" in topic_notes(
        found, sample_of([None])
    )
    assert (found.outcome.copied, found.outcome.records) == (3, 3)


def test_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    found = proposed(tmp_path, *as_json({"n": 1}, {"n": 2}), b'{"n": ')

    assert str(found.outcome) == "a run copies 2 of 3 records; to QUARANTINE go 1 bad_json"


def test_values_of_two_types_become_text(tmp_path: Path) -> None:
    found = proposed(tmp_path, *as_json({"n": 1}, {"n": "x"}))

    assert found.dataset.columns["n"].value == "string"
    assert found.outcome.copied == 2


@pytest.mark.parametrize("wrap", [lambda event: event, lambda event: {"payload": event}])
def test_events_of_debezium_become_tables_of_their_source(tmp_path: Path, wrap: Any) -> None:
    source = {"schema": "public", "table": "orders", "lsn": 7}
    events = [
        wrap({"op": "c", "source": source, "before": None, "after": {"id": n}}) for n in (1, 2)
    ]

    found = proposed(tmp_path, *as_json(*events), None)

    [task] = written(tmp_path, found).tasks
    assert (task.landing.format, task.include) == ("debezium", ("public.orders",))
    assert found.outcome.copied == 2


def test_compressed_messages_are_what_they_hold(tmp_path: Path) -> None:
    found = proposed(tmp_path, *map(gzip.compress, as_json({"id": 1}, {"id": 2})))

    assert (found.content.value, found.outcome.copied) == ("json", 2)


def test_lines_of_text_are_records(tmp_path: Path) -> None:
    found = proposed(tmp_path, b"GET /a\nGET /b", b"GET /c")

    assert written(tmp_path, found).landings[0].content.type == "split_lines"
    assert (found.outcome.copied, found.outcome.records) == (3, 3)


@pytest.mark.parametrize(
    ("values", "reason", "fix"),
    [
        ([b"\0\0\0\0\x07abc"], "name their schema by a number", "?registry="),
        ([b"\x08\0\xff\xfe"], "neither text nor of a known type", "by hand"),
        ([None], "no message with a value", "wait"),
        ([b"{"], "none of its messages can be read", "streams"),
    ],
)
def test_messages_that_say_too_little_are_refused(
    tmp_path: Path, values: list[bytes | None], reason: str, fix: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        proposed(tmp_path, *values)

    assert caught.value.code == "POLYNYA-CLI-006"
    assert reason in caught.value.message
    assert fix in (caught.value.fix or "")


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("kafka://127.0.0.1:9092", "names no topic"),
        ("kafka:///orders", "names no broker"),
        ("kafka://ann:hunter2@127.0.0.1:9092/orders", "a password of Kafka"),
        ("kafka://127.0.0.1:9092/orders?group.id=x", "`group.id` is not known"),
        ("kafka://ann@127.0.0.1:9092/orders?mechanism=GSSAPI", "the mechanism is none of"),
        ("kafka://ann@b-1:9092,127.0.0.1:9092/orders?tls=false", "without encryption"),
        ("kafka://127.0.0.1:9092/%24%7Benv:HOME%7D", "cannot be written"),
    ],
)
def test_a_url_that_leads_nowhere_is_refused_without_its_password(url: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason) as caught:
        topic_url(url)

    assert "hunter2" not in str(caught.value)


def test_a_login_is_written_as_a_reference_and_used_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = topic_url("kafka://ann@b-1.example.com:9096,b-2.example.com:9096/orders")
    password = 'x"; ${file:/etc/passwd} \\'

    reading = reading_of(url, password)

    made = proposed_topic(url, sample_of(as_json({"a": 1})), "shop", tmp_path)
    text = topic_files(made, "shop", "KAFKA_PW")["tasks/orders_stream.yml"]
    assert "hunter2" not in text
    assert 'username="ann" password="${env:KAFKA_PW}";' in text
    assert 'security.protocol: "SASL_SSL"' in text or "security.protocol: SASL_SSL" in text
    assert reading.source.kafka is not None
    login = reading.source.kafka.plain_properties()["sasl.jaas.config"]
    assert login.endswith('password="x\\"; $${file:/etc/passwd} \\\\";')
    assert "passwd" not in repr(reading)


def test_the_sample_is_the_begin_and_the_end_of_each_partition() -> None:
    extents = {("t", 0): Extent(0, 1000), ("t", 1): Extent(10, 12), ("t", 2): Extent(4, 4)}

    first, last = ranges_of(extents, 30)

    assert first == {("t", 0): Extent(0, 5), ("t", 1): Extent(10, 12)}
    assert last == {("t", 0): Extent(995, 1000)}
