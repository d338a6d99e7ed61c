"""`init --from`: settings that a sample of records speaks for."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from polynya.cli.init import propose, read_sample
from polynya.cli.main import main
from polynya.model.loader import load_project

CHANGES = [
    {"userId": 1, "op": "I", "sequenceNum": 1, "eventTime": "2026-01-01T00:00:01Z", "price": 10},
    {"userId": 1, "op": "D", "sequenceNum": 2, "eventTime": "2026-01-01T00:00:02Z", "price": 11},
]


def test_changes_of_records() -> None:
    made = propose(CHANGES, "users")

    assert made.key
    assert made.sequence
    assert made.timestamp
    assert made.deletes
    assert (made.key.value, made.sequence.value) == ("userId", "sequenceNum")
    assert made.key.reason == "by its name; never NULL in 2 records"
    assert (made.timestamp.value, made.deletes.value) == ("eventTime", "op = 'D'")
    assert made.left_out == ("op", "sequenceNum")
    assert {name: one.value for name, one in made.columns.items()} == {
        "eventTime": "timestamp",
        "price": '"decimal(18,4)"',
    }


@pytest.mark.parametrize(
    ("records", "key", "sequence"),
    [
        ([{"code": "a", "updated_at": "2026-01-01 10:00"}] * 2, None, "updated_at"),
        ([{"code": "a", "n": 1}, {"code": "b", "n": 1}], "code", None),
        ([{"id": None, "seq": 1}, {"id": 1, "seq": 2}], "seq", None),
        ([{"id": True, "version": 1.5}], None, None),
        ([{"id": [1], "seq": {"a": 1}}, {}], None, None),
        ([{"OrderID": "7", "conversion": "1", "LSN": "0099"}], "OrderID", "LSN"),
    ],
)
def test_what_is_not_there_is_not_proposed(
    records: list[dict[str, Any]], key: str | None, sequence: str | None
) -> None:
    made = propose(records, "things")

    assert (made.key and made.key.value) == key
    assert (made.sequence and made.sequence.value) == sequence


def test_each_format_becomes_a_project_that_loads(tmp_path: Path) -> None:
    lines = "".join(json.dumps(record) + "\n" for record in CHANGES)
    (tmp_path / "users.jsonl").write_text(lines)
    header = ",".join(CHANGES[0])
    rows = [",".join(map(str, record.values())) for record in CHANGES]
    (tmp_path / "users.csv").write_text("\n".join([header, *rows]) + "\n")
    pq.write_table(pa.Table.from_pylist(CHANGES), tmp_path / "users.parquet")

    for suffix in ("jsonl", "csv", "parquet"):
        folder, file = tmp_path / suffix, tmp_path / f"users.{suffix}"
        assert main(["init", str(folder), "--from", str(file)]) == 0
        [task] = load_project(folder).tasks
        [dataset] = task.datasets
        assert list(dataset.keys or ()) == ["userId"]
        assert list(dataset.sequence_by or ()) == ["sequenceNum"]
        assert (folder / f"landing/users/users.{suffix}").read_bytes() == file.read_bytes()
        assert not (folder / "tests").exists()


def test_names_of_columns_are_text_and_never_yaml(tmp_path: Path) -> None:
    record = dict.fromkeys(("no", 'x" #', "no\ncolumn"), "2026-01-01T00:00:00Z")
    record["a: b} id"] = "1"
    (tmp_path / "odd.json").write_text(json.dumps(record) + "\n")

    assert main(["init", str(tmp_path / "p"), "--from", str(tmp_path / "odd.json")]) == 0

    [task] = load_project(tmp_path / "p").tasks
    assert list(task.datasets[0].keys or ()) == ["a: b} id"]
    assert set(task.datasets[0].columns or ()) == {"no", 'x" #'}


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("a.xml", "<a/>", "does not end in"),
        ("a.json", '{"a": ', "Expecting value"),
        ("a.json", "[1]\n", "not an object"),
        ("a.csv", "", "does not name the columns"),
        ("a.csv", "a,a\n1,2\n", "does not name the columns"),
        ("a.json", "", "no records"),
        ("a.parquet", "no", "Parquet"),
    ],
)
def test_other_files_are_refused_and_nothing_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, text: str, why: str
) -> None:
    (tmp_path / name).write_text(text)

    assert main(["init", str(tmp_path / "p"), "--from", str(tmp_path / name)]) == 2

    shown = capsys.readouterr().err
    assert "POLYNYA-CLI-005" in shown
    assert why in shown
    assert not (tmp_path / "p").exists()


def test_an_empty_project_has_no_task(tmp_path: Path) -> None:
    assert main(["init", str(tmp_path / "p"), "--empty"]) == 0

    assert list(load_project(tmp_path / "p").tasks) == []
    assert main(["init", str(tmp_path / "q"), "--empty", "--from", "x.csv"]) == 2


def test_times_of_96_bits_are_those_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "a.parquet"
    times = pa.array([datetime(1500, 1, 1), datetime(9999, 12, 31)], pa.timestamp("us"))
    pq.write_table(pa.table({"at": times}), file, use_deprecated_int96_timestamps=True)

    assert [one["at"].year for one in read_sample(file).records] == [1500, 9999]
