"""Landed batches become rows with their place, and rejected records that can be read again."""

from __future__ import annotations

import gzip
from dataclasses import replace
from typing import Any

import pytest

from polynya.formats.base import RereadRequest
from polynya.formats.batch import WHOLE_FILE, BatchLimits, FileProgress, Rejected
from polynya.formats.stream.format import reread_stream
from polynya.formats.stream.reading import read_stream
from polynya.model.errors import OperationError
from polynya.model.types import BIGINT, STRING
from tests.formats.stream.streams import (
    AT,
    knowing,
    landed,
    path_of,
    read,
    request_for,
    rows_of,
    rules_of,
)


def test_records_stand_in_the_order_of_batch_and_row() -> None:
    batch = read(landed([b'{"id":1}', b'{"id":2}'], 1), landed([b'{"id":1,"v":"x"}'], 2, first=2))

    assert rows_of(batch, "id", "v") == [
        {"id": 1, "v": None}, {"id": 2, "v": None}, {"id": 1, "v": "x"},
    ]  # fmt: skip
    assert rows_of(batch, "__ci") == [
        "0" * 19 + "1" + "0" * 15,
        "0" * 19 + "1" + "0" * 14 + "1",
        "0" * 19 + "2" + "0" * 15,
    ]
    assert rows_of(batch, "__ts")[0] == AT
    assert batch.files[path_of(2)].complete


def test_what_a_message_without_content_is() -> None:
    values = [None, b"", b"[]", b'{"id":1,"n":1}']

    by_place, by_column = read(landed(values)), read(landed(values), sequence_by=["n"])

    assert rows_of(by_place, "id") == [None, 1]
    assert rules_of(by_place) == [(1, "bad_json")]
    assert by_place.rows_in == by_column.rows_in == 3
    assert rules_of(by_column) == [(0, "null_sequence"), (1, "bad_json")]


def test_header_columns_are_there_and_no_columns_of_the_table() -> None:
    batch = read(landed([b'{"id":1}'], first=7, keys=["azE="]))

    (row,) = batch.rows.to_pylist()
    assert (row["hdr__kafka_topic"], row["hdr__kafka_offset"]) == ("clicks", 7)
    assert row["hdr__kafka_key"] == "azE="
    assert batch.schema["hdr__kafka_offset"] == BIGINT
    assert not batch.changes
    request = request_for(landed([b'{"id":1}']))
    assert set(request.table.dataset.events.except_columns) >= {"hdr__kafka_offset"}


def test_a_message_with_the_name_of_a_header_is_refused() -> None:
    batch = read(landed([b'{"id":1,"hdr__kafka_offset":5}', b'{"id":2}']))
    again = read_stream(knowing(request_for(landed([b'{"id":1,"hdr__kafka_offset":5}'])), batch))

    assert rules_of(batch) == [(0, "bad_column")]
    assert rules_of(again) == [(0, "bad_column")]


def test_the_settings_may_order_by_a_header() -> None:
    batch = read(
        landed([b'{"id":1,"at":"2020-01-01T00:00:00Z"}'], first=5),
        sequence_by=["hdr__kafka_offset"],
        timestamp="at",
    )

    assert rows_of(batch, "__ci") == [f"{(1 << 63) + 5:035d}"]
    assert rows_of(batch, "__position") == ["0" * 19 + "1" + "0" * 15]
    assert rows_of(batch, "__ts")[0].year == 2020


def test_one_message_may_be_several_records_or_none() -> None:
    batch = read(landed([b'[{"id":1},7,{"id":2}]', b"[]", b"oops", b'{"id":3}']))

    assert rows_of(batch, "id") == [1, 2, 3]
    assert rows_of(batch, "__offset") == [0, 2, 4]
    assert rules_of(batch) == [(1, "not_an_object"), (3, "bad_json")]
    assert rows_of(batch, "hdr__kafka_offset") == [0, 0, 3]
    assert batch.files[path_of(1)].records == 5


def test_a_message_without_a_value_has_its_headers() -> None:
    batch = read(landed([None, b'{"id":2}'], keys=["azE=", None]), mode="append_only", keys=None)

    assert rows_of(batch, "id", "hdr__kafka_key") == [
        {"id": None, "hdr__kafka_key": "azE="}, {"id": 2, "hdr__kafka_key": None},
    ]  # fmt: skip


def test_compressed_messages_are_read() -> None:
    broken = gzip.compress(b'{"id":1}')[:-4]
    batch = read(landed([gzip.compress(b'{"id":1}'), broken]))

    assert rows_of(batch, "id") == [1]
    assert rules_of(batch) == [(1, "bad_archive")]


@pytest.mark.parametrize(
    ("content", "values", "found"),
    [
        ({"type": "csv"}, [b"id,v\n1,2\n3,x", b"id,w\n4,5"], ["1", "3", "4"]),
        ({"type": "csv", "infer_types": True}, [b"id,v\n1,2\n3,x", b"id,w\n4,5"], [1, 3, 4]),
        ({"type": "xml", "infer_types": True}, [b"<r><id>1</id></r>", b"<r id='2'/>"], [1, None]),
        ({"type": "regex", "pattern": r"(?<id>\d+)"}, [b"1\n2", b"3"], ["1", "2", "3"]),
    ],
)  # fmt: skip
def test_every_content_gives_typed_rows(
    content: dict[str, Any], values: list[bytes], found: list[Any]
) -> None:
    batch = read(landed(values, **content))

    assert rows_of(batch, "id") == found
    assert not batch.rejected


def test_a_batch_ends_where_types_settle_in_another_way() -> None:
    files = (
        landed([b"id\n7"], 1, type="csv", infer_types=True),
        landed([b'{"id":8}'], 2),
    )

    batch = read(*files)

    assert rows_of(batch, "id") == [7]
    assert list(batch.files) == [path_of(1)]


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 7])
def test_a_batch_may_end_inside_of_a_landed_batch_and_goes_on_there(limit: int) -> None:
    values = [b'[{"id":0},{"id":1}]', b'{"id":2}', b"oops", b'{"id":4}', b'{"id":5}', b'{"id":6}']
    whole = read(landed(values))
    found, refused, start, known = [], [], 0, None
    for _ in range(10):
        request = request_for(landed(values), start=start, limits=BatchLimits(limit, 1 << 40))
        batch = read_stream(request if known is None else knowing(request, known))
        known, progress = batch, batch.files[path_of(1)]
        found += rows_of(batch, "id", "__ci", "hdr__kafka_offset")
        refused += rules_of(batch)
        start = progress.records
        if progress.complete:
            break

    assert progress == FileProgress(progress.size, 7, complete=True)
    assert found == rows_of(whole, "id", "__ci", "hdr__kafka_offset")
    assert refused == rules_of(whole)


def reread(request: Any, rejected: tuple[Rejected, ...]) -> Any:
    return reread_stream(RereadRequest(request.store, rejected, request.tables))


def test_a_refused_record_is_read_again_by_what_was_kept_of_it() -> None:
    values = [b'{"id":"a"}', b'{"id":1}', b'[{"id":2},{"id":"b"}]', b'{"id":\xff}']
    first = read_stream(request_for(landed([b'{"id":0}'])))
    request = knowing(request_for(landed(values, first=10)), first)
    batch = read_stream(request)

    again = reread(request, batch.rejected)

    assert rules_of(batch) == [(0, "type_mismatch"), (3, "type_mismatch"), (4, "bad_utf8")]
    assert batch.rejected[0].raw.endswith(b'\n{"id":"a"}')
    assert batch.rejected[1].raw.endswith(b'\n{"id":"b"}')
    assert batch.rejected[2].raw.endswith(b'\n{"id":\xff}')
    assert again.rejected == batch.rejected
    assert again.rows_in == 3
    assert not again.files


def test_what_is_right_by_now_gets_the_place_that_it_had() -> None:
    values = [b'{"id":1.5}', b'{"id":7}', None]
    known = replace(read(landed([b'{"id":0}'])), schema={"id": BIGINT, "hdr__kafka_offset": BIGINT})
    request = knowing(request_for(landed(values, first=10)), known)
    batch = read_stream(request)
    wide = knowing(request, replace(known, schema={"id": STRING}))
    wide = knowing(request_for(landed(values), columns={"id": "string"}), replace(known, schema={}))

    again = reread(wide, batch.rejected)

    assert rows_of(again, "id", "__ci", "hdr__kafka_offset") == [
        {"id": "1.5", "__ci": "0" * 19 + "1" + "0" * 15, "hdr__kafka_offset": 10}
    ]
    assert rows_of(again, "__ts", "hdr__landed_at") == [
        {"__ts": AT.replace(second=10), "hdr__landed_at": AT}
    ]


def test_rows_can_be_read_again_too() -> None:
    request = request_for(landed([b'{"id":1}', None, b'[{"id":2},{"id":3}]']))
    first = read_stream(request)
    for batch in (first, read_stream(knowing(request, first))):
        places = batch.rows.select(["__file", "__offset"]).to_pylist()
        assert batch.raw_of is not None
        kept = [
            Rejected(at["__file"], at["__offset"], "null_key", "", batch.raw_of(*at.values()))
            for at in places
        ]

        again = reread(knowing(request, first), tuple(kept))

        names = ["id", "__ci", "__ts", "hdr__kafka_offset", "hdr__kafka_timestamp"]
        assert rows_of(again, *names) == rows_of(batch, *names)


def test_what_was_not_kept_of_a_message_stays_refused() -> None:
    request = request_for(landed([]))
    foreign = [
        b"",
        b"{}\n",
        b'{"source":"kafka"}\n{}',
        b"[]\n",
        b'{"source":"kafka","content":7}\n',
    ]

    again = reread(
        request, tuple(Rejected(path_of(1), at, "x", "", raw) for at, raw in enumerate(foreign))
    )

    assert [one.rule for one in again.rejected] == ["bad_record"] * len(foreign)
    assert [one.raw for one in again.rejected] == foreign


def test_a_file_that_is_no_landed_batch_goes_to_quarantine_whole() -> None:
    batch = read(landed([b'{"id":1}']), b"PAR1 nonsense", landed([b'{"id":2}'], 3))

    assert rows_of(batch, "id") == [1, 2]
    assert [(one.file, one.offset, one.rule) for one in batch.rejected] == [
        (path_of(2), WHOLE_FILE, "unreadable_file")
    ]


def test_a_pattern_that_cannot_be_used_stops_the_batch() -> None:
    request = request_for(landed([b"x"], type="regex", pattern="(?<a>" + "(?:x{1000}){1000}" + ")"))

    with pytest.raises(OperationError) as caught:
        read_stream(request)

    assert caught.value.code == "POLYNYA-STR-021"


def test_a_reload_gives_the_events_the_places_that_they_had() -> None:
    batch = read(landed([b'{"id":1}', b'{"id":2}']), load=True)

    assert rows_of(batch, "__op") == ["L", "L"]
    assert rows_of(batch, "__ci")[1].endswith("1")
    assert batch.of_load
