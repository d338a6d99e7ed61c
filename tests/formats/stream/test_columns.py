"""Messages that are read as columns give what the exact reader gives."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polynya.formats.base import ReadRequest
from polynya.formats.batch import BatchLimits, DatasetBatch
from polynya.formats.stream import reading
from polynya.formats.stream.reading import read_stream
from tests.formats.stream.streams import AT, knowing, landed, request_for

KNOWN = {
    "id": 1, "big": 7, "name": "Ann", "ok": True, "price": 1.5, "at": AT.isoformat(), "gone": None,
    "home": {"city": "Leon", "at": [{"x": 1.5, "n": None}], "since": "2020-01-01", "empty": None},
    "tags": ["a", None],
}  # fmt: skip


def first_batch() -> DatasetBatch:
    return read_stream(request_for(landed([json.dumps(KNOWN).encode()]), columns=TYPES))


TYPES = {"at": "timestamp"}
home = st.fixed_dictionaries(
    {},
    optional={
        "city": st.one_of(st.text(max_size=2), st.none(), st.integers(0, 2)),
        "at": st.one_of(
            st.none(),
            st.lists(
                st.one_of(
                    st.none(),
                    st.fixed_dictionaries(
                        {},
                        optional={"x": st.one_of(st.floats(), st.integers(0, 3)), "n": st.none()},
                    ),
                ),
                max_size=2,
            ),
        ),
        "since": st.sampled_from(["2020-01-01", "then", None]),
        "empty": st.one_of(st.none(), st.just({})),
        "new": st.integers(0, 1),
    },
)
SETTINGS: list[dict[str, Any]] = [
    {},
    {"sequence_by": ["big"]},
    {"sequence_by": ["hdr__kafka_offset"], "timestamp": "at"},
    {"sequence_by": ["at"]},
    {"timestamp": "name"},
]

values = st.fixed_dictionaries(
    {},
    optional={
        "id": st.one_of(st.integers(-9, 9), st.none(), st.text(max_size=2)),
        "big": st.one_of(st.integers(-(1 << 64), 1 << 64), st.none()),
        "name": st.one_of(st.text(max_size=5), st.none(), st.just(AT.isoformat())),
        "ok": st.booleans(),
        "price": st.one_of(st.floats(-1e6, 1e6), st.integers(0, 9), st.floats()),
        "at": st.one_of(st.just(AT.isoformat()), st.text(max_size=3)),
        "gone": st.one_of(st.none(), st.integers(0, 3)),
        "home": st.one_of(st.none(), home, home, st.just([])),
        "tags": st.one_of(st.none(), st.lists(st.one_of(st.none(), st.text(max_size=2)))),
        "new": st.integers(0, 3),
    },
)
odd = st.sampled_from(
    [None, b"", b"{}", b"oops", b"[]", b'[{"id":1},{"id":2}]', b'{"id":1}\n{"id":2}',
     b'{"id":1,\n"ok":true}',
     b'{"id":1,"id":2}', b' {"id":1} ', b'{"id":1}\r', b'\xef\xbb\xbf{"id":1}', b'{"name":"\xff"}',
     b'{"price":0.1000000000000000000001}', b'{"price" : 1e400}', b'{"id":007}',
     b'{"name":"}\\n{"}',
     b'{"id":1}{"id":2}', b'{"hdr__kafka_offset":1}', b'{"name":"a\x00b"}', b'{"at":null}',
     b'{"home":{"at":[{"x":0.1000000000000000000001}]}}', b'{"home":{"city":"a","city":"b"}}',
     b'{"home":{"at":[{"x":-0}]}}', b'{"tags":[1]}', b'{"home":{}}', b'{"tags":{}}']
)  # fmt: skip
ordinary = st.builds(lambda at: json.dumps({**KNOWN, "id": at}).encode(), st.integers(0, 99))
message = st.one_of(ordinary, ordinary, values.map(lambda v: json.dumps(v).encode()), odd)


def outcome(request: ReadRequest) -> Any:
    batch = read_stream(request)
    # A piece that is skipped in part tells of all its columns.
    met = sorted(batch.met or ()) if request.files[0].start == 0 else []
    rows = batch.rows.drop_columns(["__raw"]).to_pylist()
    kept = [batch.raw_of(row["__file"], row["__offset"]) for row in rows] if batch.raw_of else []
    rejected = [(r.file, r.offset, r.rule, r.error, r.raw) for r in batch.rejected]
    return (
        dict(batch.schema), batch.rows.schema, rows, rejected, batch.files, batch.rows_in,
        met, batch.changes, kept,
    )  # fmt: skip


def exactly(request: ReadRequest) -> Any:
    with patch.object(reading, "may_be_columns", lambda *_: False):
        return outcome(request)


@settings(max_examples=40)
@given(
    st.lists(message, max_size=12),
    st.lists(message, max_size=4),
    st.sampled_from(SETTINGS),
    st.integers(0, 3),
    st.sampled_from([(2, 1), (4, 2), (16, 3)]),
)
def test_columns_are_the_same_as_records(
    messages: list[bytes | None],
    more: list[bytes | None],
    events: dict[str, Any],
    start: int,
    steps: tuple[int, int],
) -> None:
    files = (landed(messages, 1), landed(more, 2, first=len(messages)))
    request = knowing(request_for(*files, start=start, columns=TYPES, **events), first_batch())

    with patch.multiple(reading, _MAX_COLUMN_MESSAGES=steps[0], _MIN_COLUMN_MESSAGES=steps[1]):
        found = outcome(request)

    assert repr(found) == repr(exactly(request))


def test_ordinary_messages_are_read_as_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    known = first_batch()
    messages: list[bytes | None] = [json.dumps({**KNOWN, "id": at}).encode() for at in range(3000)]
    messages[1500] = b"oops"
    messages[2000] = b'{"id":1,}'
    alone: list[int] = []
    exact = reading.MessageReader._take_exactly
    monkeypatch.setattr(
        reading.MessageReader,
        "_take_exactly",
        lambda self, count: (alone.append(count), exact(self, count))[1],
    )

    batch = read_stream(knowing(request_for(landed(messages), columns=TYPES), known))

    assert alone == [1, 1]
    assert batch.rows.num_rows == 2998
    assert [one.offset for one in batch.rejected] == [1500, 2000]


def test_it_is_given_up_where_nothing_is_ordinary(monkeypatch: pytest.MonkeyPatch) -> None:
    messages: list[bytes | None] = [json.dumps({"id": at, "new": 1}).encode() for at in range(9000)]
    tries: list[int] = []
    piece = reading.MessageReader._piece
    monkeypatch.setattr(
        reading.MessageReader,
        "_piece",
        lambda self, place: (tries.append(place.count), piece(self, place))[1],
    )
    request = knowing(request_for(landed(messages), columns=TYPES), first_batch())

    batch = read_stream(replace(request, limits=BatchLimits(1 << 40, 1 << 40)))

    assert batch.rows.num_rows == 9000
    assert len(tries) == 32


def test_empty_arrays_beside_the_first_one_with_elements() -> None:
    empty, full = ({"id": number, "lines": []} for number in (1, 2))
    full["lines"] = [{"name": "a"}]
    first = read_stream(request_for(landed([json.dumps(empty).encode()])))
    messages = [json.dumps(message).encode() for message in [empty] * 40 + [full, empty]]

    batch = read_stream(knowing(request_for(landed(messages)), first))

    lines = batch.rows.column("lines").to_pylist()
    assert lines == [[]] * 40 + [[{"name": "a"}], []]
    assert batch.rejected == ()
