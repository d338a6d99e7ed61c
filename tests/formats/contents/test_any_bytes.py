"""Whatever comes as a message: nothing is raised, every record is accounted for, others go on."""

from __future__ import annotations

import bz2
import gzip
import json
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polynya.formats import limits
from polynya.formats.batch import DatasetBatch
from polynya.formats.contents import text
from polynya.formats.contents.decoded import OneByOne
from polynya.formats.stream import reading
from polynya.formats.stream.format import reread_stream
from polynya.formats.stream.reading import read_stream
from tests.formats.contents.test_decoders import (
    ROW,
    SCHEMA,
    avro,
    datum,
    orc_file,
    parquet_file,
    records,
    refused,
)
from tests.formats.helpers import rereading
from tests.formats.stream.streams import landed, request_for, rules_of

ROWS = pa.table({"id": [1, 2], "s": ["a", None], "l": [[1], [2, 3]], "d": [{"x": 1}, {"x": 2}]})
UTF_16 = '<?xml version="1.0" encoding="utf-16"?><r>é</r>'.encode("utf-16")
#: A content, and messages that it may have.
CONTENTS: dict[str, tuple[dict[str, Any], list[bytes]]] = {
    "json": ({}, [b'{"id":1,"b":{"c":[1,"x",null,1.5e3]},"t":"\\u00e9"}', b'[{"id":1},{"id":2}]']),
    "csv": ({"infer_types": True}, [b'id,name\n1,"a ""b"" c"\n2,\n', b"id;x\n1;2"]),
    "tsv": ({}, [b"id\tname\n1\ta\n"]),
    "avro": ({}, [avro([ROW, ROW]), *(avro([ROW], codec=one) for one in ("deflate", "snappy"))]),
    "avro datum": ({"schema": json.dumps(SCHEMA)}, [datum(ROW)]),
    "parquet": ({}, [parquet_file(ROWS)]),
    "orc": ({}, [orc_file(ROWS)]),
    "xml": ({"infer_types": True}, [b'<r id="1"><a>x</a><a k="2">2</a><b><c/></b></r>', UTF_16]),
    "xml records": ({"record": "a"}, [b'<r id="1"><a>x</a><a k="1">2</a></r>']),
    "regex": ({"pattern": r"^(?<ip>\S+) (?<rest>.*)$"}, [b"1.2.3.4 GET /\nx y", b"10 2"]),
    "split_lines": ({}, [b"a\nb\r\nc"]),
    "auto": ({}, [avro([ROW]), parquet_file(ROWS), b'{"id":1}']),
}
#: What is put into a message: lengths, numbers and characters at their ends.
HOSTILE = st.sampled_from(
    [b"", b"\0", b"\xff\xff\xff\xff\x0f", b"1e99999999999999999999", b"9" * 400, b"\xed\xa0\x80",
     b"NaN", b"-0", b"\\ud800", b"[", b'"', b"\x80"]
)  # fmt: skip
PLACES = st.integers(0, 1 << 16)
EDITS = st.lists(st.tuples(PLACES, st.integers(0, 9), HOSTILE | st.binary(max_size=6)), max_size=5)
PACKED = st.sampled_from([bytes, bytes, bytes, gzip.compress, bz2.compress])


def read_again(batch: DatasetBatch) -> DatasetBatch:
    """What was refused, as a replay of quarantine reads it."""
    return reread_stream(rereading(batch.rejected, request_for(b"").table.dataset, batch.schema))


def edited(message: bytes, edits: list[tuple[int, int, bytes]]) -> bytes:
    """A message in which some bytes are others."""
    for place, count, new in edits:
        at = place % (len(message) + 1)
        message = message[:at] + new + message[at + count :]
    return message


@pytest.mark.parametrize("name", CONTENTS)
@settings(max_examples=25)
@given(st.lists(st.tuples(PLACES, EDITS, PACKED), min_size=1, max_size=3), st.binary(max_size=40))
def test_no_bytes_stop_a_stream(name: str, seeds: list[Any], noise: bytes) -> None:
    settings_, samples = CONTENTS[name]
    content = {"type": name.split(maxsplit=1)[0], **settings_}
    bad = [pack(edited(samples[at % len(samples)], edits)) for at, edits, pack in seeds]
    messages = [*bad, noise, samples[0]]

    batch = read_stream(request_for(landed(messages, **content)))
    again = read_again(batch)

    assert batch.rows_in == batch.rows.num_rows + len(batch.rejected) + batch.rows_filtered
    assert again.rows_in == len(batch.rejected)
    # A decoder knows why it refuses a message: the net below it caught nothing.
    assert "undecodable" not in {one.rule for one in (*batch.rejected, *again.rejected)}


def test_a_decoder_that_fails_refuses_one_message(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: Any, message: bytes) -> Any:
        if b"odd" in message:
            raise ZeroDivisionError("by chance")
        return whole(self, message)

    whole = text.JsonDecoder.one
    assert issubclass(text.JsonDecoder, OneByOne)
    monkeypatch.setattr(text.JsonDecoder, "one", broken)

    batch = read_stream(request_for(landed([b'{"id":1}', b"odd", b'{"id":2}'])))

    assert rules_of(batch) == [(1, "undecodable")]
    assert "ZeroDivisionError by chance" in batch.rejected[0].error
    assert batch.rows.num_rows == 2


@pytest.mark.parametrize("number", ["1e99999999999999999999", "-1E-99999999999999999999", "1e401"])
def test_a_number_that_no_type_holds_is_refused(number: str) -> None:
    assert refused(b'{"a":%s}' % number.encode(), type="json").startswith("bad_number: ")


def test_names_are_compared_once_however_many_they_are() -> None:
    names = [f"n{number}" for number in range(200_000)]
    json_keys = ",".join(f'"{name}":1' for name in [*names, "n199999"])

    twice = refused(f"{{{json_keys}}}".encode(), type="json")
    header = refused(",".join([*names, "n199999"]).encode(), type="csv")

    assert twice.startswith("duplicate_key: key 'n199999'")
    assert header.startswith("bad_csv: column 'n199999'")
    lines = ",".join([*["a"] * 20_000]) + "\n" + ",".join(["1"] * 20_000)
    (row,) = records(lines.encode(), type="csv", duplicate_header=True)
    assert list(row)[:3] == ["a", "a_2", "a_3"]
    assert len(row) == 20_000


def test_a_record_of_very_many_fields_is_refused() -> None:
    wide = {"id": 1, **{f"n{number}": 1 for number in range(limits.RECORD_FIELDS)}}
    nested = {"id": 2, "in": [{f"n{number}": 1} for number in range(limits.RECORD_FIELDS)]}
    long = {"id": 3, "in": [{"a": 1, "b": [1, 2]}] * limits.RECORD_FIELDS}
    messages = [json.dumps(one).encode() for one in (wide, nested, long)]

    batch = read_stream(request_for(landed(messages)))

    assert rules_of(batch) == [(0, "too_large"), (1, "too_large")]
    again = read_again(batch)
    assert rules_of(again) == [(0, "too_large"), (1, "too_large")]


def test_far_more_values_than_bytes_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "RECORD_VALUES", 1000)
    text = "," * 2000

    assert refused(b"[" + b"{}," * 1000 + b"{}]", type="json").startswith("too_large: ")
    assert records(json.dumps({"a": text, "b": '"' + text}).encode(), type="json")[0]["a"] == text


def test_messages_that_expand_are_decoded_so_many_as_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "_EXPANDED_BYTES", 1000)
    most = 0
    random = Random(1)
    original = reading.ready_message
    waiting: list[int] = []

    def counted(value: bytes | None, content: Any) -> Any:
        nonlocal most
        ready = original(value, content)
        waiting.append(len(ready))
        most = max(most, sum(waiting))
        return ready

    class Counting(text.JsonDecoder):
        def one(self, message: bytes) -> Any:
            waiting.clear()
            return super().one(message)

    monkeypatch.setattr(reading, "ready_message", counted)
    monkeypatch.setattr("polynya.formats.contents.decoders.JsonDecoder", Counting)
    texts = ["x" * 400 + str(random.random()) for _ in range(200)]
    messages = [gzip.compress(json.dumps({"id": at, "t": one}).encode(), 1)
                for at, one in enumerate(texts)]  # fmt: skip

    batch = read_stream(request_for(landed(messages)))

    assert batch.rows["t"].to_pylist() == texts
    assert most < 2000
