"""Positions that version 0.1 stored are read, and written so that it could read them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from polynya.streams.files.files import FoundFile, RememberedFiles
from polynya.streams.files.position import CutFile, FilesPosition
from polynya.streams.kafka.position import KafkaPosition, TopicPosition
from polynya.streams.kinesis.plan import KinesisPosition, KinesisStreamPosition, ShardPosition

NOON = datetime(2026, 3, 1, 12, 30, 0, 250000, UTC)
TEXT = "2026-03-01T12:30:00.250000+00:00"
STORED = {
    "kafka": '{"topics": {"a.b": {"id": "id-2", "partitions": {}, "ends": {}}, '
    '"clicks": {"id": "id-1", "partitions": {"0": 7, "10": 3}, "ends": {"0": 9, "10": 3}}}, '
    '"newest": "2026-03-01T12:30:00.250000+00:00"}',
    "kafka, new": '{"topics": {}}',
    "kinesis": '{"streams": {"orders": {"created": "2026-03-01T12:30:00.250000+00:00", "shards": '
    '{"shardId-1": {"seen": "2026-03-01T12:30:00.250000+00:00", "ended": true}, '
    '"shardId-2": {"seen": "2026-03-01T12:30:00.250000+00:00", "after": "4958"}, '
    '"shardId-3": {"since": "2026-03-01T12:30:00.250000+00:00"}}}}, "behind": 2}',
    "kinesis, new": '{"streams": {}}',
    "files": '{"known": {"2026-03-01T12:30:00.250000+00:00": "aSRcZnQQQDLhSAiN", '
    '"": "5NlGEbolxZ/gkTap"}, "since": "2026-03-01T12:30:00.250000+00:00", "passed": "a/b.json", '
    '"initial": "c.json", "cut": {"name": "z.json", "size": 9, "version": "e1", '
    '"date": "2026-03-01T12:30:00.250000+00:00", "written": 1.5, "record": 4, "byte": 100, '
    '"initial": true}, "taken": [{"name": "t.json", "size": 1, "version": "v"}], "left": 3, '
    '"oldest": 1772368200.5}',
    "files, new": '{"known": {}}',
}
CLICKS = TopicPosition("id-1", {0: 7, 10: 3}, {0: 9, 10: 3})
ORDERS = {
    "shardId-1": ShardPosition(ended=True, seen=NOON),
    "shardId-2": ShardPosition("4958", None, NOON),
    "shardId-3": ShardPosition(since=NOON),
}
READ = [FoundFile("x.json", 3, "v1", NOON), FoundFile("y.json", 4, "v2")]
POSITIONS: dict[str, Any] = {
    "kafka": KafkaPosition({"clicks": CLICKS, "a.b": TopicPosition("id-2", {})}, NOON),
    "kafka, new": KafkaPosition({}),
    "kinesis": KinesisPosition({"orders": KinesisStreamPosition(NOON, ORDERS)}, 2),
    "kinesis, new": KinesisPosition({}),
    "files": FilesPosition(
        RememberedFiles().adding(READ),
        NOON,
        "a/b.json",
        "c.json",
        CutFile(FoundFile("z.json", 9, "e1", NOON, 1.5), 4, 100, initial=True),
        (FoundFile("t.json", 1, "v"),),
        3,
        1772368200.5,
    ),
    "files, new": FilesPosition(RememberedFiles()),
}


@pytest.mark.parametrize("name", STORED)
def test_a_stored_position_is_read(name: str) -> None:
    position = POSITIONS[name]

    assert type(position).from_json(json.loads(STORED[name])) == position


@pytest.mark.parametrize("name", STORED)
def test_a_position_is_written_as_before(name: str) -> None:
    assert POSITIONS[name].to_json() == json.loads(STORED[name])


@pytest.mark.parametrize("name", STORED)
def test_unknown_keys_of_a_newer_version_are_ignored(name: str) -> None:
    position = POSITIONS[name]

    assert type(position).from_json(json.loads(STORED[name]) | {"newer": [1]}) == position


@pytest.mark.parametrize("kind", [KafkaPosition, KinesisPosition, FilesPosition])
@pytest.mark.parametrize("name", STORED)
def test_a_position_of_another_source_is_refused(kind: Any, name: str) -> None:
    if not isinstance(POSITIONS[name], kind):
        with pytest.raises(ValueError, match="required"):
            kind.from_json(json.loads(STORED[name]))


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (KafkaPosition, {"topics": {"a": {"id": "x", "partitions": dict.fromkeys("abc", "?")}}}),
        (KinesisPosition, {"streams": dict.fromkeys("abc", 1)}),
        (FilesPosition, {"known": {}, "taken": [{}] * 1000}),
        (FilesPosition, {"known": {}, "since": "yesterday"}),
    ],
)
def test_reading_a_damaged_position_tells_its_first_error(kind: Any, values: Any) -> None:
    with pytest.raises(ValueError, match=r"^[\w.\[\]]+: ") as raised:
        kind.from_json(values)

    assert len(str(raised.value)) < 200
