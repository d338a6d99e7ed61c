"""CSV as other programs write it: one setting of `landing` for each way to differ from RFC 4180."""

from __future__ import annotations

from typing import Any

import pytest

from polynya.formats import limits
from polynya.formats.batch import WHOLE_FILE, BatchLimits
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.settings import Delivery
from tests.formats.helpers import a_dataset, column, read, reread, rules

_COLUMNS = {"id": "int", "n": "int", "x": "string"}


def _dataset(columns: dict[str, str] | None = None, **settings: Any) -> ResolvedDataset:
    return a_dataset("csv", columns=columns or {}, delivery=Delivery(**settings))


@pytest.mark.parametrize(
    ("settings", "text", "values"),
    [
        ({"delimiter": ";"}, 'id;n;x\n1;1;"a;""b"\n2;1;a,b', ['a;"b', "a,b"]),
        ({"delimiter": "\t"}, "id\tn\tx\n1\t1\ta b\n2\t1\t", ["a b", None]),
        ({"delimiter": "|"}, "id|n|x\n1|1|^a-]", ["^a-]"]),
        ({"delimiter": "§"}, "id§n§x\n1§1§ä", ["ä"]),
        ({"quote": "'"}, "id,n,x\n1,1,'a,''b\"'\n2,1,\"", ["a,'b\"", '"']),
        ({"quote": ""}, 'id,n,x\n1,1,"a\n2,1,b"', ['"a', 'b"']),
        ({"escape": "\\"}, 'id,n,x\n1,1,"a\\"b,\\\\"\n2,1,a\\,b', ['a"b,\\', "a,b"]),
        ({"escape": "\\"}, 'id,n,x\n1,1,"two\\"\nlines"\n2,1,""""', ['two"\nlines', '"']),
        ({"escape": '"'}, 'id,n,x\n1,1,"a""b"', ['a"b']),
        ({"null_value": "\\N"}, 'id,n,x\n1,1,\\N\n2,1,"\\N"\n3,1,', [None, "\\N", ""]),
        (
            {"null_value": "\\N", "escape": "\\"},
            'id,n,x\n1,1,\\N\n2,1,\\\\N\n3,1,"\\\\N"',
            [None, "\\N", "\\N"],
        ),
        ({"null_value": ""}, 'id,n,x\n1,1,\n2,1,""', [None, ""]),
        ({"comment": "#"}, '#by x\nid,n,x\n# 9,9,9\n1,1,"a\n#b"\n2,1,#', ["a\n#b", "#"]),
        ({"skip_lines": 2}, 'Report "x\n\nid,n,x\n1,1,a', ["a"]),
        ({}, 'id,n,x\n1,1,5" pipe and 6" pipe\n2,1,""', ['5" pipe and 6" pipe', None]),
    ],
)
def test_a_dialect_is_read_as_it_was_written(
    settings: dict[str, Any], text: str, values: list[Any]
) -> None:
    batch = read(text.encode(), _dataset(_COLUMNS, **settings))

    assert rules(batch) == []
    assert column(batch, "x") == values


def test_lines_inside_of_a_quoted_field_are_never_records() -> None:
    inside = "9,9,overwritten\n" * 120_000
    text = f'id,n,x\n1,1,"{inside}"\n2,1,b\n'

    batch = read(text.encode(), _dataset(_COLUMNS))

    assert rules(batch) == []
    assert column(batch, "id") == [1, 2]
    assert column(batch, "x") == [inside, "b"]


def test_a_quote_that_is_never_closed_refuses_a_file_beyond_the_limit_of_a_record(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "RECORD_BYTES", 1_000)
    text = 'id,n,x\n1,1,"open\n' + "9,9,overwritten\n" * 100

    batch = read(text.encode(), _dataset(_COLUMNS))

    assert rules(batch) == [(WHOLE_FILE, "unreadable_file")]
    assert "more than 1,000 bytes" in batch.rejected[0].error
    assert batch.rows.num_rows == 0


@pytest.mark.parametrize("settings", [{}, {"escape": "\\"}, {"null_value": "-"}])
@pytest.mark.parametrize("row", ["1,1", "1,1,x,y", '1,1,"x"y', '1,1,"open', '1,1,"a","b'])
def test_a_ragged_row_is_refused_alone(settings: dict[str, Any], row: str) -> None:
    batch = read(f"id,n,x\n0,1,a\n{row}".encode(), _dataset(**settings))

    assert rules(batch) == [(1, "bad_csv")]
    assert column(batch, "id") == [0]


def test_files_without_header_line_take_the_declared_columns() -> None:
    dataset = _dataset(_COLUMNS, header=False, delimiter=";", skip_lines=1)
    batch = read(b"made today\n1;1;a\n2;1\n3;1;c\n", dataset, starts={"f": 1})

    assert rules(batch) == [(1, "bad_csv")]
    assert (column(batch, "id"), column(batch, "x")) == ([3], ["c"])
    assert column(batch, "__raw") == [b"3;1;c"]


@pytest.mark.parametrize(
    ("encoding", "codec"),
    [("iso-8859-1", "latin-1"), ("windows-1252", "cp1252"), ("utf-16", "utf-16")],
)
def test_another_encoding_becomes_utf_8(encoding: str, codec: str) -> None:
    content = "id,n,größe\n1,1,café\n".encode(codec)

    batch = read(content, _dataset(encoding=encoding))

    assert column(batch, "größe") == ["café"]
    assert column(batch, "__raw") == ["id,n,größe\n1,1,café".encode()]


def test_a_byte_without_meaning_spoils_its_record_only() -> None:
    content = b"id,n,x\n1,1,\x81\n2,1,\x80\n"

    batch = read(content, _dataset(encoding="windows-1252"))

    assert rules(batch) == [(0, "bad_utf8")]
    assert column(batch, "x") == ["€"]


@pytest.mark.parametrize(
    ("encoding", "content"),
    [
        ("utf-16", b"id,n\n1,1\n"),
        ("utf-16", "id,n\n1,1\n".encode("utf-16")[:-1]),
        ("utf-16", b"\xff\xfe\x00\xd8\x00\xd8"),
        ("iso-8859-1", b"\xef\xbb\xbfid,n\n1,1\n"),
        ("windows-1252", "id,n\n1,1\n".encode("utf-16")),
    ],
)
def test_a_file_in_another_encoding_than_said_is_refused_whole(
    encoding: str, content: bytes
) -> None:
    batch = read(content, _dataset(encoding=encoding))

    assert rules(batch) == [(WHOLE_FILE, "unreadable_file")]


def test_a_record_is_read_again_from_its_raw_bytes() -> None:
    """Skipped lines and the file's encoding are no part of them."""
    settings: dict[str, Any] = {"delimiter": ";", "skip_lines": 3, "encoding": "utf-16"}
    batch = read("a\nb\nc\nid;n;x\n1;bad;ü\n".encode("utf-16"), _dataset({"n": "int"}, **settings))
    (one,) = batch.rejected

    again = reread(one.raw, _dataset({"n": "string"}, **settings))

    assert (column(again, "n"), column(again, "x")) == (["bad"], ["ü"])


def test_batches_of_one_record_give_what_one_batch_gives() -> None:
    content = b'# c\nid;n;x\n1;1;"a\n2"\n# c\n\n2;1\n3;1;\\N\n'
    dataset = _dataset(delimiter=";", comment="#", null_value="\\N")
    whole = read(content, dataset)

    parts = [
        read(content, dataset, starts={"f": start}, limits=BatchLimits(max_rows=1))
        for start in range(3)
    ]

    assert [column(part, "id") for part in parts] == [[1], [], [3]]
    assert [rules(part) for part in parts] == [[], [(1, "bad_csv")], []]
    assert (column(whole, "x"), rules(whole)) == (["a\n2", None], [(1, "bad_csv")])
