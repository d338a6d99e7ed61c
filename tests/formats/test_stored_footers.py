"""Footers and headers that version 0.1 stored are read, and written so that it could read them."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from polynya.formats.debezium.captured import CaptureHeader, EventSchema, header_of
from polynya.formats.errors import UnreadableFileError
from polynya.formats.landed import Counts, Lost, StreamFooter
from polynya.model.config.stream_content import JsonContent

NOON = datetime(2026, 3, 1, 12, 30, 0, 250000, UTC)
FOOTER_TEXT = (
    '{"version":1,"task":"web","table":"clicks","source":"kafka","number":12,'
    '"content":{"type":"json"},"from":{},"to":{"topics":{},"newest":null},'
    '"written_at":"2026-03-01T12:30:00.250000+00:00",'
    '"counts":{"records":3,"bytes":120,"lost":1},"totals":{"records":30,"bytes":1200,"lost":1},'
    '"lost":[{"at":"clicks/0","from":"5","to":"6","why":"retention"}],'
    '"began":{"topics":{},"x":null}}'
)
FOOTER = StreamFooter(
    task="web",
    table="clicks",
    source="kafka",
    number=12,
    content=JsonContent(type="json"),
    begin={},
    end={"topics": {}, "newest": None},
    written_at=NOON,
    counts=Counts(3, 120, 1),
    totals=Counts(30, 1200, 1),
    lost=(Lost("clicks/0", "5", "6", "retention"),),
    began={"topics": {}, "x": None},
)
HEADER_LINE = (
    b'{"polynya_capture":{"version":2,"task":"bank","number":3,"writer":"w1",'
    b'"written_at":"2026-03-01T12:30:00.250000+00:00","events":2,"position":{"lsn":9,"n":null},'
    b'"schemas":{"public.users":[{"from":1,"schema":{"type":"struct"}},'
    b'{"from":2,"schema":{"type":"struct","fields":[]}}]},"unsent":"__x__","follows":"abc"}}\n'
)
FIRST_HEADER_LINE = (
    b'{"polynya_capture":{"version":1,"task":"bank","number":1,"writer":"",'
    b'"written_at":"2026-03-01T12:30:00.250000+00:00","events":0,"position":{},"schemas":{}}}\n'
)
HEADER = CaptureHeader(
    task="bank",
    number=3,
    written_at=NOON,
    events=2,
    position={"lsn": 9, "n": None},
    schemas={
        "public.users": (
            EventSchema(1, {"type": "struct"}),
            EventSchema(2, {"type": "struct", "fields": []}),
        )
    },
    writer="w1",
    unsent="__x__",
    follows="abc",
)


def test_a_stored_footer_is_read() -> None:
    footer = StreamFooter.from_json(FOOTER_TEXT)

    assert (footer, footer.content.type) == (StreamFooter.from_json(FOOTER.to_json()), "json")
    assert (footer.begin, footer.end, footer.began) == (FOOTER.begin, FOOTER.end, FOOTER.began)
    assert (footer.counts, footer.totals, footer.lost) == (
        FOOTER.counts,
        FOOTER.totals,
        FOOTER.lost,
    )
    assert footer.written_at == NOON


def test_a_footer_is_written_as_before() -> None:
    assert json.loads(FOOTER.to_json()) == json.loads(FOOTER_TEXT)


@pytest.mark.parametrize("key", [key for key in json.loads(FOOTER_TEXT) if key != "began"])
def test_a_footer_without_a_key_is_damaged(key: str) -> None:
    values = json.loads(FOOTER_TEXT)
    del values[key]

    with pytest.raises(UnreadableFileError):
        StreamFooter.from_json(json.dumps(values))


def test_a_stored_header_is_read() -> None:
    assert header_of(HEADER_LINE, "") == HEADER
    assert header_of(FIRST_HEADER_LINE, "") == CaptureHeader("bank", 1, NOON, 0)


def test_a_header_is_written_as_before() -> None:
    assert json.loads(HEADER.line()) == json.loads(HEADER_LINE)
    assert json.loads(CaptureHeader("bank", 1, NOON, 0).line()) == json.loads(
        FIRST_HEADER_LINE.replace(b'"version":1', b'"version":2')
    )


@pytest.mark.parametrize(
    "change",
    [
        {"number": True},
        {"number": -1},
        {"events": "2"},
        {"position": 1},
        {"written_at": "today"},
        {"schemas": {"a": [{"from": 2, "schema": {}}, {"from": 1, "schema": {}}]}},
    ],
)
def test_a_damaged_header_is_refused(change: dict[str, object]) -> None:
    header = json.loads(HEADER_LINE)["polynya_capture"] | change

    with pytest.raises(UnreadableFileError):
        header_of(json.dumps({"polynya_capture": header}).encode(), "")
