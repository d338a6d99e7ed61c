"""A long record is read whole, or its file is refused: reading never goes on inside quotes."""

from __future__ import annotations

import io
import tracemalloc
from typing import Any

import pytest

from polynya.formats import limits
from polynya.formats.batch import WHOLE_FILE
from polynya.formats.contents.decoders import decoder_of
from polynya.formats.errors import RecordError, TooLargeError
from polynya.formats.json_columns import blocks
from polynya.formats.records.json import raw_lines
from polynya.model.config.settings import Delivery
from polynya.model.config.stream_content import landed_content
from polynya.streams.files.reading import pieces_of
from tests.formats.dms import files as dms
from tests.formats.helpers import a_dataset, column, read, rules
from tests.formats.native.splits import by_tasks, exactly, request_for
from tests.streams.files.given import content

#: More lines than a record was once allowed, each of which would be a row of its own.
LINES = 100_003
TEXT = "9,1\n" * LINES
#: Opened and never closed, in more bytes than a record may have where a test says so.
OPEN = '"' + "7,1,z\n" * 400
FILE = f'id,n,x\n1,1,"{TEXT}"\n2,1,b\n'.encode()


def test_a_quoted_field_of_many_lines_is_one_value() -> None:
    batch = read(FILE, a_dataset("csv"))

    assert rules(batch) == []
    assert column(batch, "id") == [1, 2]
    assert column(batch, "x") == [TEXT, "b"]


def test_a_load_in_splits_does_not_cut_a_long_quoted_field() -> None:
    request = request_for({"in/1.csv": FILE.replace(b"id,n", b"id,seq")}, "csv")

    assert by_tasks(request, 4096) == exactly(request)


def test_a_long_quoted_field_of_dms_is_one_value() -> None:
    table = dms.a_table({"columns": {"id": "int"}})
    rows = f'Op,id,name\nI,1,"{TEXT}"\nI,2,b\n'.encode()

    batch = dms.read({dms.FIRST: rows}, table)

    assert rules(batch) == []
    assert column(batch, "name") == [TEXT, "b"]


@pytest.mark.parametrize(("kind", "mark"), [("csv", ","), ("tsv", "\t")])
def test_a_message_with_a_long_quoted_field_keeps_it(kind: str, mark: str) -> None:
    message = f'id{mark}x\n1{mark}"{TEXT}"\n2{mark}b\n'.encode()

    (found,) = decoder_of(landed_content({"type": kind})).decode([message])

    assert not isinstance(found, RecordError)
    assert [item["x"] for item in found.items if isinstance(item, dict)] == [TEXT, "b"]


def test_a_message_with_too_large_a_record_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "RECORD_BYTES", 1000)

    (found,) = decoder_of(landed_content({"type": "csv"})).decode([f"id,x\n1,{OPEN}".encode()])

    assert isinstance(found, RecordError)
    assert found.rule == "too_large"


def test_a_file_of_others_is_not_cut_inside_quotes() -> None:
    found = list(pieces_of(io.BytesIO(FILE), content(type="csv")))

    assert [piece.value.count(b"\n") for piece in found] == [1 + LINES, 1]


@pytest.mark.parametrize("tail", ["", '"\n3,1,c\n'])
def test_a_file_with_too_large_a_record_is_refused_as_a_file(
    tail: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "RECORD_BYTES", 1000)
    bad = f"id,n,x\n1,1,a\n2,1,{OPEN}{tail}".encode()

    batch = read({"bad": bad, "good": b"id,n,x\n5,1,e\n"}, a_dataset("csv"))

    assert rules(batch) == [(WHOLE_FILE, "unreadable_file")]
    assert "begins at byte 13" in batch.rejected[0].error
    assert column(batch, "id") == [5]


def test_a_load_refuses_the_same_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "RECORD_BYTES", 1000)
    bad = f"id,seq,x\n1,1,{OPEN}".encode()
    request = request_for({"in/1.csv": bad, "in/2.csv": b"id,seq,x\n5,1,e\n"}, "csv")

    schema, rows, rejected, *_ = by_tasks(request, 64)

    assert [(file, offset) for file, offset, *_ in rejected] == [("in/1.csv", WHOLE_FILE)]
    assert [row["id"] for row in rows] == [5]
    assert set(schema) == {"id", "seq", "x"}


@pytest.mark.parametrize("reader", [raw_lines, lambda file: blocks(file, 1 << 16)])
def test_a_line_without_an_end_does_not_fill_the_memory(
    reader: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "RECORD_BYTES", 1 << 20)
    file = io.BytesIO(b"x" * (32 << 20))
    tracemalloc.start()
    try:
        with pytest.raises(TooLargeError, match="begins at byte 0"):
            list(reader(file))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak < 8 << 20


def test_lines_do_not_join_in_a_field_without_quotes_around_it() -> None:
    batch = read(b'id,n\n1,5" pipe\n2,6" pipe\n', a_dataset("csv", sequence_by=()))

    assert column(batch, "id") == []
    assert rules(batch) == [(0, "bad_csv")]


def test_an_escaped_line_end_stays_in_its_field() -> None:
    dataset = a_dataset("csv", delivery=Delivery(escape="\\"))

    assert column(read(b'id,n,x\n1,1,"a\\"\nb"\n', dataset), "x") == ['a"\nb']
