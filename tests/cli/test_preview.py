"""`polynya preview`: all landing formats, nothing written, no Java."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
from pyarrow import parquet

from polynya.cli.main import main
from polynya.engine import session
from polynya.lake.spark.api import SparkSession
from polynya.model.loader import load_project
from polynya.store.clock import SystemClock
from polynya.store.object_store import LocalObjectStore
from polynya.streams.landing import LandedLog, StreamLander
from polynya.streams.registry import source_of
from tests.formats.replicate.files import change, landed
from tests.projects import USERS, write_project

_DMS = """\
apiVersion: polynya/v1
kind: storage
name: orders
schema: shop
landing: {path: dms, format: dms, header: true}
defaults: {keys: [id]}
"""
_REPLICATE = """\
apiVersion: polynya/v1
kind: storage
name: rep
schema: rep
landing: {path: rep, format: replicate}
"""
_BANK = """\
apiVersion: polynya/v1
kind: storage
name: bank
schema: bank
landing: {path: bank, format: debezium}
"""


@pytest.fixture(autouse=True)
def no_java(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing here may start Spark."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a preview started Spark")

    monkeypatch.setattr(session, "start_spark", refuse)


def land(project: Path, path: str, *records: dict[str, Any]) -> Path:
    file = project / "landing" / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    return file


def told(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> dict[str, Any]:
    """The previews as programs read them, by dataset."""
    assert main(["preview", "--json", *arguments]) == code
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    found = {one["dataset"]: one for one in lines if one["type"] == "preview.dataset"}
    errors = [one["code"] for one in lines if one["type"] == "error"]
    return {**found, "errors": errors}


def files_of(folder: Path) -> set[str]:
    return {str(one.relative_to(folder)) for one in folder.rglob("*")}


def test_columns_events_rows_and_quarantine_of_landed_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = USERS + "    columns: {amount: 'decimal(10,2)'}\n    except_columns: [operation]\n"
    project = write_project(tmp_path, users=text)
    land(
        project,
        "users/1.json",
        {"userId": 1, "sequenceNum": 1, "operation": "INSERT", "amount": "1.50"},
        {"userId": 2, "sequenceNum": 2, "operation": "INSERT", "amount": "many"},
        {"userId": 3, "sequenceNum": 3, "operation": "INSERT", "amount": None, "city": "Rome"},
    )
    land(
        project,
        "users/2.json",
        {"userId": 1, "sequenceNum": 5, "operation": "UPDATE", "amount": "2.50"},
        {"userId": 1, "sequenceNum": 4, "operation": "UPDATE", "amount": "9.99"},
        {"userId": 3, "sequenceNum": 6, "operation": "DELETE"},
        {"userId": None, "sequenceNum": 7, "operation": "INSERT"},
    )
    before = files_of(tmp_path)

    found = told(capsys, "-p", str(project))["shop.users"]

    assert files_of(tmp_path) == before
    origins = {one["name"]: (one["type"], one["from"], one["key"]) for one in found["columns"]}
    assert origins == {
        "userId": ("bigint", "inferred", True),
        "sequenceNum": ("bigint", "inferred", False),
        "amount": ("decimal(10,2)", "declared", False),
        "city": ("string", "inferred", False),
    }
    assert found["new"] is True
    assert found["keys"] == ["userId"]
    assert found["except_columns"] == ["operation"]
    assert [one["values"] for one in found["rows"]] == [
        {"userId": 1, "sequenceNum": 5, "amount": "2.50", "city": None}
    ]
    assert found["records"][0] == {
        "file": "users/1.json",
        "record": 1,
        "operation": "U",
        "sequence": {"sequenceNum": 1},
        "key": {"userId": 1},
    }
    assert [one["operation"] for one in found["records"]] == ["U", "U", "U", "U", "D"]
    assert found["quarantined"] == {"bad_value": 1, "null_key": 1}
    bad, nameless = found["quarantine"]
    assert (bad["file"], bad["record"], bad["rule"]) == ("users/1.json", 2, "bad_value")
    assert (nameless["file"], nameless["record"]) == ("users/2.json", 4)


def test_a_setting_that_names_no_column_is_told_as_by_a_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project = write_project(tmp_path, users=USERS.replace("[sequenceNum]", "[sequenceNo]"))
    land(project, "users/1.json", {"userId": 1, "sequenceNum": 1, "operation": "INSERT"})

    assert main(["preview", "-p", str(project)]) == 2

    said = capsys.readouterr().err
    assert "POLYNYA-CFG-030" in said
    assert "did you mean `sequenceNum`?" in said
    assert "`optional_columns`" in said


def test_it_is_readable_at_80_columns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    project = write_project(tmp_path, users=USERS)
    wide = {f"column_{number}": "x" * 60 for number in range(12)}
    land(project, "users/1.json", {"userId": 1, "sequenceNum": 1, "operation": "\x1b[31m", **wide})

    assert main(["preview", "-p", str(project), "-o", "table"]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "shop.users"
    assert max(map(len, lines)) <= 80
    assert not any("\x1b" in line for line in lines)
    assert any(line.split() == ["column_11", "string", "inferred", "from", "the", "values"]
               for line in lines)  # fmt: skip
    assert any("x" * 40 in line for line in lines)


def test_the_next_table_of_each_format(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    typed = USERS.replace("users", "typed").replace("json", "parquet")
    text = USERS.replace("users", "text").replace("json", "csv")
    project = write_project(tmp_path, typed=typed, text=text, dms=_DMS, rep=_REPLICATE, bank=_BANK)
    landing = project / "landing"
    for folder in ("typed", "text", "dms/shop/orders", "rep/s.t", "rep/s.t__ct", "bank"):
        (landing / folder).mkdir(parents=True)
    record = {"userId": [1], "sequenceNum": [1], "operation": ["INSERT"]}
    parquet.write_table(pa.table(record), landing / "typed/1.parquet")
    (landing / "text/1.csv").write_text("userId,sequenceNum,operation\n1,1,INSERT\n")
    (landing / "dms/shop/orders/LOAD00000001.csv").write_text("id,name\n1,ann\n")
    (landing / "dms/shop/orders/20260101-000000001.csv").write_text(
        "Op,id,name\nU,1,anna\nI,2,bob\n"
    )
    files = landed("s.t/LOAD00001.csv", "1,ann,Rome", "2,bob,Rome")
    files |= landed("s.t__ct/20260101-1200000000.csv", change(1, "U", "1", "eve", "", mask="20"))
    for path, content in files.items():
        (landing / "rep" / path).write_bytes(content)
    events = Path("tests/data/debezium/postgres_schemas.jsonl").read_text().splitlines(True)
    (landing / "bank/1.jsonl").write_text("".join(events[:40]))

    found = told(capsys, "-p", str(project))

    assert found.pop("errors") == []
    types = {name: {c["name"]: c["from"] for c in one["columns"]} for name, one in found.items()}
    assert types["shop.typed"]["userId"] == "schema"
    assert types["shop.text"]["userId"] == "inferred"
    rows = {name: [row["values"] for row in one["rows"]] for name, one in found.items()}
    assert rows["shop.orders"] == [{"id": 1, "name": "anna"}, {"id": 2, "name": "bob"}]
    assert rows["rep.t"] == [
        {"id": 1, "name": "eve", "city": "Rome"},
        {"id": 2, "name": "bob", "city": "Rome"},
    ]
    assert [one["operation"] for one in found["rep.t"]["records"]] == ["L", "L", "U"]
    assert found["bank"]["no_table"]
    captured = [name for name in found if name.startswith("bank.")]
    assert captured
    assert all(set(types[name].values()) == {"schema"} for name in captured)


def test_one_file_is_previewed_wherever_it_lies(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    towns = USERS.replace("users", "towns")
    project = write_project(tmp_path / "shop", users=USERS, towns=towns)
    record = {"userId": 1, "sequenceNum": 1, "operation": "INSERT"}
    inside = land(project, "towns/1.json", record)
    outside = tmp_path / "other.json"
    outside.write_text(json.dumps(record))

    assert list(told(capsys, "-p", str(project), "--file", str(inside))) == ["shop.towns", "errors"]
    given = ("-p", str(project), "--file", str(outside))
    assert told(capsys, *given, code=2)["errors"] == ["POLYNYA-CLI-012"]
    found = told(capsys, *given, "users")["shop.users"]
    assert found["rows"][0]["values"] == record
    missing = ("-p", str(project), "--file", str(tmp_path / "no.json"), "users")
    assert told(capsys, *missing, code=2)["errors"] == ["POLYNYA-CLI-011"]


def test_one_file_of_a_table_with_a_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project = write_project(tmp_path / "shop", dms=_DMS)
    folder = tmp_path / "sent" / "shop" / "orders"
    folder.mkdir(parents=True)
    (folder / "20260101-000000001.csv").write_text("Op,id,name\nU,1,anna\n")
    captured = write_project(tmp_path / "captured", rep=_REPLICATE)

    given = ("-p", str(project), "--file", str(folder / "20260101-000000001.csv"))
    assert told(capsys, *given)["shop.orders"]["rows"][0]["values"] == {"id": 1, "name": "anna"}
    # Replicate's folder is `schema.table`.
    elsewhere = ("-p", str(captured), "--file", given[-1])
    assert told(capsys, *elsewhere, code=2)["errors"] == ["POLYNYA-CLI-011"]


def test_without_a_project_settings_are_proposed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{n},2026-01-0{n}T00:00:00Z,x{n}\n" for n in range(1, 6))
    (tmp_path / "orders.csv").write_text(f"id,updated_at,name\n{rows}")

    (found, _) = told(capsys, "--file", "orders.csv").values()

    assert found["row_count"] == 5
    assert files_of(tmp_path) == {"orders.csv"}


def test_nothing_new_and_nothing_of_that_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project = write_project(tmp_path, users=USERS)

    assert main(["preview", "-p", str(project)]) == 0
    assert "nothing new has landed" in capsys.readouterr().out
    assert main(["preview", "-p", str(project), "usres"]) == 2
    assert "did you mean `users`?" in capsys.readouterr().err


def test_mapped_columns_and_fields_take_no_java(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    columns = """\
    columns:
      - {name: user, expression: "person.id", key: 1}
      - {name: sku, expression: "items[].sku", key: 2}
"""
    task = USERS.replace("    keys: [userId]\n", columns)
    monkeypatch.chdir(write_project(tmp_path, users=task))
    record = {"person": {"id": 1}, "items": [{"sku": "a"}, {"sku": "b"}], "sequenceNum": 1}
    land(tmp_path, "users/1.json", {**record, "operation": "INSERT"})

    seen = told(capsys)["shop.users"]

    assert seen["keys"] == ["user", "sku"]
    assert [(one["user"], one["sku"]) for one in map(_values, seen["rows"])] == [(1, "a"), (1, "b")]
    origins = {one["name"]: one["from"] for one in seen["columns"]}
    assert (origins["sku"], origins["person"]) == ("expression", "inferred")


def _values(row: dict[str, Any]) -> dict[str, Any]:
    return row.get("values", row)


_EXPORTS = """\
apiVersion: polynya/v1
kind: streaming_landing
name: exports
source:
  files: {url: in, pattern: "<yyyy>/part-*.json", delete_after_load: true}
"""
_FACTS = """\
apiVersion: polynya/v1
kind: streaming_transform
name: facts
from: exports
schema: web
mode: merge
columns: [{name: user_id, expression: "user.id", key: 1}]
"""


def _drop(project: Path, name: str, *lines: str) -> Path:
    """A file of others in the source of the landing."""
    file = project / "in/2025" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(f"{line}\n" for line in lines))
    return file


def _land_next(project: Path) -> None:
    """Put the next landed batch of the exports, as a run does. What it read is deleted later."""
    loaded = load_project(project)
    (task,) = loaded.landings
    clock, spark = SystemClock(), cast("SparkSession", None)
    log = LandedLog(LocalObjectStore(project / "landing"), task.place, "exports")
    lander = StreamLander(task, source_of(spark, task, loaded.target.aws, clock), log)
    assert lander.land(lander.decide(("exports",), once=True), clock.now()) is not None


def test_a_landing_that_is_named_shows_messages_that_have_not_landed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project = write_project(tmp_path, exports=_EXPORTS, facts=_FACTS)
    _drop(project, "part-1.json", '{"user":{"id":1},"n":1}', "no json", '{"user":{"id":2}}')
    before = files_of(tmp_path)

    found = told(capsys, "exports", "-p", str(project))["exports/exports"]

    assert files_of(tmp_path) == before, "nothing is put, and nothing deleted"
    assert found["messages"] == {
        "source": "files", "content": "json", "streams": ["exports"], "count": 3, "behind": 0,
        "unit": "files",
    }  # fmt: skip
    types = {one["name"]: one["type"] for one in found["columns"]}
    assert types == {"user": "struct<id:bigint>", "n": "bigint"}
    assert [row["values"]["user"] for row in found["rows"]] == [{"id": 1}, {"id": 2}]
    assert found["quarantined"] == {"bad_json": 1}
    assert "exports/exports" not in told(capsys, "-p", str(project)), "only when it is named"
    assert main(["preview", "exports", "-p", str(project)]) == 0
    text = capsys.readouterr().out
    assert "exports/exports: messages that have not landed" in text
    assert "3 read of exports" in text
    assert "2 records of these messages" in text


def test_a_preview_deletes_no_file_that_has_landed_and_shows_what_follows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project = write_project(tmp_path, exports=_EXPORTS, facts=_FACTS)
    file = _drop(project, "part-1.json", '{"user":{"id":1}}')
    _land_next(project)

    seen = told(capsys, "exports", "facts", "-p", str(project))

    assert file.exists()
    assert seen["exports/exports"]["messages"]["count"] == 0
    assert [row["values"]["user_id"] for row in seen["web.facts"]["rows"]] == [1]


def test_a_source_that_is_missing_is_an_error_of_its_landing_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project = write_project(tmp_path, exports=_EXPORTS, facts=_FACTS, users=USERS)

    found = told(capsys, "exports", "users", "-p", str(project), code=4)

    assert found["errors"] == ["POLYNYA-STR-042"]
    assert "shop.users" in found
