"""Records inside JSON documents: the same values as `json.loads`, whatever the file looks like."""

from __future__ import annotations

import gzip
import io
import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polynya.formats import limits
from polynya.formats.batch import WHOLE_FILE, BatchLimits, DatasetBatch, FileProgress
from polynya.formats.errors import RecordError, TooLargeError, UnreadableFileError
from polynya.formats.records import json_documents
from polynya.formats.records.json_documents import open_documents
from polynya.model.config.settings import Delivery
from tests.formats.helpers import a_dataset, column, read, reread, rules
from tests.formats.native.splits import by_tasks, exactly, request_for, same

_KEYS = st.text(max_size=6)
_SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=12)
)
_VALUES = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=3),
    max_leaves=6,
)
_RECORDS = st.dictionaries(_KEYS, _VALUES, max_size=4)
_LAYOUTS = st.sampled_from(
    [{}, {"indent": 2}, {"separators": (",", ":")}, {"ensure_ascii": False, "indent": "\t"}]
)


def _in_pieces(content: bytes, size: int, monkeypatch: pytest.MonkeyPatch) -> io.BytesIO:
    monkeypatch.setattr(json_documents, "_PIECE_BYTES", size)
    return io.BytesIO(content)


def _found(content: bytes, *path: str, start: int = 0) -> list[Any]:
    """Its records, each with its rule where it is bad."""
    opened = open_documents(io.BytesIO(content), start, path)
    return [one.rule if isinstance(one, RecordError) else one for _, one in opened.records]


def _plain(value: Any) -> Any:
    """A value as `json.loads` gives it with exact numbers."""
    return json.loads(json.dumps(value), parse_float=Decimal)


def _exact(value: Any) -> Any:
    """A value that was read, its doubles as the numbers that they spell."""
    match value:
        case dict():
            return {key: _exact(inner) for key, inner in value.items()}
        case list():
            return [_exact(inner) for inner in value]
        case float():
            return Decimal(repr(value))
        case _:
            return value


@given(
    records=st.lists(_RECORDS, max_size=6),
    around=st.dictionaries(_KEYS, _VALUES, max_size=3),
    layout=_LAYOUTS,
    size=st.integers(1, 40),
    start=st.integers(0, 7),
)
@settings(max_examples=60, deadline=None)
def test_records_are_those_of_json_loads_however_the_bytes_are_read(
    records: list[dict[str, Any]],
    around: dict[str, Any],
    layout: dict[str, Any],
    size: int,
    start: int,
) -> None:
    inner = {**around, "the records": records, "last": around}
    content = json.dumps({**around, "data": inner, "last": 1}, **layout).encode()

    with pytest.MonkeyPatch.context() as patch:
        file = _in_pieces(content, size, patch)
        found = list(open_documents(file, start, ["data", "the records"]).records)

    assert [_exact(one) for _, one in found] == _plain(records)[start:]
    assert [json.loads(raw) for raw, _ in found] == json.loads(json.dumps(records))[start:]


@given(
    content=st.text(alphabet='{}[]",:\\ \n1a-', max_size=24).map(str.encode)
    | st.binary(max_size=24),
    size=st.integers(1, 8),
)
@settings(max_examples=200, deadline=None)
def test_what_json_loads_refuses_is_never_read_in_silence(content: bytes, size: int) -> None:
    text = b'[{"a": 1}, ' + content + b"]"
    try:
        with pytest.MonkeyPatch.context() as patch:
            file = _in_pieces(text, size, patch)
            found = [one for _, one in open_documents(file, 0, []).records]
    except UnreadableFileError:
        found = None

    try:
        expected = json.loads(text, parse_constant=lambda _: pytest.fail("JSON has no such word"))
    except (ValueError, RecursionError):
        assert (
            found is None
            or any(isinstance(one, RecordError) for one in found)
            or (_holds_documents(text, found))
        )
    else:
        assert found is not None
        assert [one if isinstance(one, dict) else type(one) for one in found] == [
            one if isinstance(one, dict) else RecordError for one in expected
        ]


def _holds_documents(text: bytes, found: list[Any]) -> bool:
    """Whether a text is several documents in sequence that hold so many records."""
    left, count = text.decode().strip(" \t\r\n"), 0
    while left:
        value, end = json.JSONDecoder().raw_decode(left)
        count += len(value) if isinstance(value, list) else 1
        left = left[end:].strip(" \t\r\n")
    return count == len(found)


def _documents(content: bytes, path: str = "$", **more: Any) -> DatasetBatch:
    return read(content, _dataset(path), **more)


def _dataset(path: str = "$") -> Any:
    return a_dataset(delivery=Delivery(record_path=path))


_TWO = b'[\n  {"id": 1, "n": 1},\n  {"id": 2,\n   "n": 2}\n]\n'


@pytest.mark.parametrize(
    ("path", "content", "ids"),
    [
        ("$", _TWO, [1, 2]),
        ("$", b"\xef\xbb\xbf" + _TWO, [1, 2]),
        ("$", b'{"id": 1,\n "n": 1}', [1]),
        ("$", b'{"id":1,"n":1}\n{"id":2,"n":1}\n', [1, 2]),
        ("$", _TWO + b'[{"id":3,"n":1}]', [1, 2, 3]),
        ("$", b"[]", []),
        ("$", b" \n", []),
        ("$", b"", []),
        ("$.results", b'{"next": [1, {"x": "]"}], "results": ' + _TWO + b', "n": 2}', [1, 2]),
        ("$.results", b'{"results": {"id": 1, "n": 1}}', [1]),
        ("$.results", b'{"results": null}', []),
        ("$.results", b'{"results":[{"id":1,"n":1}]}\n{"results":[{"id":2,"n":1}]}\n', [1, 2]),
        ("$.data.my items", b'{"data": {"my items": ' + _TWO + b"}}", [1, 2]),
        ("$.r\u00e9sum\u00e9", b'{"r\\u00e9sum\\u00e9": [{"id": 7, "n": 1}]}', [7]),
    ],
)  # fmt: skip
def test_records_are_at_the_path(path: str, content: bytes, ids: list[int]) -> None:
    batch = _documents(content, path)

    assert (column(batch, "id"), rules(batch)) == (ids, [])
    assert batch.files["f"].complete


def test_values_are_as_exact_as_those_of_lines() -> None:
    record = b'{"id":1,"n":1,"x":0.12345678901234567890,"y":9007199254740993,"z":"\\ud83d\\ude00"}'

    inside, line = _documents(b"[" + record + b"]"), read(record)

    assert inside.rows.to_pylist() == line.rows.to_pylist()
    assert inside.schema == line.schema


def test_a_bad_element_is_rejected_alone_with_its_own_text() -> None:
    bad = [
        b'{"id":2,"n":\xff}',
        b'{"id":3,"id":3}',
        b"[1, 2]",
        b'"}{"',
        b"12",
        b"nul",
        b'{"a":"\n"}',
    ]
    content = b'[{"id":1,"n":1},' + b" , ".join(bad) + b',{"id":9,"n":9}]'

    batch = _documents(content)

    assert column(batch, "id") == [1, 9]
    assert [(one.offset, one.rule, one.raw) for one in batch.rejected] == list(
        zip(
            range(1, 8),
            ["bad_utf8", "duplicate_key", *["not_an_object"] * 3, "bad_json", "bad_json"],
            bad,
            strict=True,
        )
    )


def test_reading_goes_on_at_a_record() -> None:
    content = b"[" + b",".join(b'{"id":%d,"n":1}' % n for n in range(7)) + b"]"
    few = BatchLimits(max_rows=3)

    first = _documents(content, limits=few)
    last = _documents(content, limits=few, starts={"f": 6})

    assert first.files == {"f": FileProgress(len(content), 3, complete=False)}
    assert (column(last, "id"), column(last, "__offset")) == ([6], [6])
    assert last.files == {"f": FileProgress(len(content), 7, complete=True)}


def test_a_rejected_record_of_several_lines_is_read_again() -> None:
    raw = b'{\n  "id": 1,\n  "n": 1\n}'

    assert column(reread(raw, _dataset()), "id") == [1]


@pytest.mark.parametrize(
    ("path", "content", "reason"),
    [
        ("$", _TWO[:-3], "cut off: the file ends at byte"),
        ("$", b'[{"id":1,"n":1},', "cut off"),
        ("$", b'[{"id":1,"n":1},{"id":"x', "cut off"),
        ("$", b'[{"id":1,"n":1} {"id":2}]', "`{` at byte 16 where `,` or `]` is expected"),
        ("$", b'[{"id":1,"n":1},]', "`]` at byte 16 where a value is expected"),
        ("$", b'[{"id":1,"n":[1}]', "`}` at byte 15 where the other closing bracket"),
        ("$", b'[{"id":1}], [{"id":2}]', "`,` at byte 10 where a value is expected"),
        ("$", b'"text"', "`$` is a string, not an array of records"),
        ("$.a", b'{"b": 1, "c": {"a": []}}', "`record_path` says; its keys are `b`, `c`"),
        ("$.a.b", b'{"a": {"x": 1}}', "`$.a` has no key `b`, as `record_path` says; its keys are"),
        ("$.a", b"{}", "it is empty"),
        ("$.a", b"[1]", "`$` is an array, not an object with the key `a`; `record_path: $` reads"),
        ("$.a", b'{"a": 7}', "`$.a` is a number"),
        ("$.a", b'{"a": [{"id":1,"n":1}], "\\u0061": []}', "has the key `a` twice"),
        ("$.a", b'{"x": ' + b"[" * 70 + b"]" * 70 + b', "a": []}', "nested deeper than 64"),
        ("$.a", b"{a: []}", "`a` at byte 1 where a key is expected"),
    ],
)  # fmt: skip
def test_a_damaged_document_is_rejected_whole(path: str, content: bytes, reason: str) -> None:
    batch = _documents(content, path)

    (one,) = batch.rejected
    assert (one.offset, one.rule) == (WHOLE_FILE, "unreadable_file")
    assert reason in one.error
    assert batch.rows.num_rows == 0


def test_a_load_by_tasks_reads_the_same_records() -> None:
    element = b'{"id":%d,\n"seq":1,"x":%s}'
    good = b'{"r":[' + b",".join(element % (n, b"1.5") for n in range(40)) + b",7]}"
    files = {
        "1": good,
        "2.gz": gzip.compress(good, mtime=0),
        "3": good[:-9],
        "4": b'{"s":[]}',
        "5": b'{"r":[' + element % (99, b"2") + b"]}",
    }
    request = request_for(files, landing={"record_path": "$.r"})

    outcome = by_tasks(request, 100)

    assert same(outcome, exactly(request))
    assert len(outcome[1]) == 81
    assert [one[:3] for one in outcome[2]] == [
        ("1", 40, "not_an_object"),
        ("2.gz", 40, "not_an_object"),
        ("3", WHOLE_FILE, "unreadable_file"),
        ("4", WHOLE_FILE, "unreadable_file"),
    ]


def test_a_load_by_tasks_refuses_documents_where_lines_are_expected() -> None:
    line = b'{"id":1,"seq":1}\n'
    files = {"1": line, "2": b"[" + line + b"]", "3.gz": gzip.compress(b"[]", mtime=0), "4": line}
    request = request_for(files, keys=[], mode="append_only")

    outcome = by_tasks(request, 10)

    assert same(outcome, exactly(request))
    assert [(one[0], one[2]) for one in outcome[2]] == [
        ("2", "unreadable_file"),
        ("3.gz", "unreadable_file"),
    ]


def test_no_more_than_one_record_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "RECORD_BYTES", 5_000)
    element = b'{"text": "' + b"x" * 3_000 + b'"}'
    skipped = b'{"large": [' + b'"y",' * 50_000 + b'"y"], "r": '
    content = skipped + b"[" + b",".join([element] * 100) + b"]}"
    held: list[int] = []

    class _Watched(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            held.append(size or 0)
            return super().read(size)

    monkeypatch.setattr(json_documents, "_PIECE_BYTES", 1_000)
    records = list(open_documents(_Watched(content), 0, ["r"]).records)

    assert len(records) == 100
    assert max(held) < 10_000
    with pytest.raises(TooLargeError):
        list(open_documents(io.BytesIO(b'[{"a":"' + b"x" * 9_000 + b'"}]'), 0, []).records)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (_TWO, "a JSON array, not one object per line; `record_path: $` under `landing` reads"),
        (b'[{"id":1,"n":1},{"id":2,"n":2}]', "a JSON array"),
        (b'[{"id":1}]\n[{"id":2}]\n', "a JSON array"),
        (b'[{"id":1},\n{"id":2},\n{"id', "a JSON array"),
        (b"[]\n", "a JSON array"),
        (b'{\n "id": 1,\n "n": 1\n}', "`record_path: $` under `landing` reads it as one record"),
        (b'{"id":1}{"id":2}', "objects that follow each other on one line, not one object per l"),
        (b'{"id":1} {"id":2}{"id"\n', "`record_path: $` under `landing` reads each as a record"),
        (b'{"id":1,"n":{}}' * 2_000, "objects that follow each other"),
        (b'{"next": null, "ids": [\n], "my-rows": [\n{"id":1}]}', "`record_path: $.my-rows`"),
        (b'{\n"rows":\n {}}', "a JSON object over several lines, not one object per line; "),
        (b'{\n"rows": [' + b'{"id": 1},\n' * 120_000 + b'{"id": 2}]}', "`record_path: $.rows`"),
    ],
)  # fmt: skip
def test_a_document_where_lines_are_expected_names_the_setting(content: bytes, reason: str) -> None:
    (one,) = read(content).rejected

    assert (one.offset, one.rule) == (WHOLE_FILE, "unreadable_file")
    assert reason in one.error


@pytest.mark.parametrize(
    "first",
    [b"[", b'[{"id":7}]', b"[1]", b"{", b'{"id":7,', b'{"id":', b'[{"id":', b"garbage", b'{"a":"x'],
)
def test_a_broken_first_line_leaves_the_other_lines_alone(first: bytes) -> None:
    batch = read(first + b'\n{"id":1,"n":1}\n{"id":2,"n":2}\n')

    assert (column(batch, "id"), [offset for offset, _ in rules(batch)]) == ([1, 2], [0])
