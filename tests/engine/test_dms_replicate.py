"""AWS DMS and Qlik Replicate through the engine: loads, changes, deletes, key changes, twice."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from polynya.engine.commands.reload import ReloadRequest, reload
from polynya.engine.commands.replay import replay
from polynya.engine.inventory import inventory
from polynya.engine.ledger import ledger_dataset
from polynya.engine.policy import ApplyMode
from polynya.engine.runner import RunOutcome, run_once, units
from polynya.lake.spark.catalog import python_catalog
from polynya.model.config.dataset import DELETING
from polynya.model.config.sources import dataset_of_source
from polynya.model.config.task import StorageTask
from polynya.model.loader import load_project
from tests.lab.lab import Lab, Look, moment

LOAD, FIRST, SECOND = "LOAD00000001", "20260101-000010000", "20260101-000020000"


class Service:
    """One task over the files of a replication service; its source tables are in schema `s`."""

    def __init__(self, lab: Lab, file_format: str, **settings: Any) -> None:
        self.lab = lab
        self.landing = {"path": lab.schema, "format": file_format, **settings.pop("landing", {})}
        self.settings = settings

    @property
    def task(self) -> StorageTask:
        head = {"apiVersion": "polynya/v1", "kind": "storage", "name": f"{self.lab.schema}_task"}
        document = {**head, "schema": self.lab.schema, "landing": self.landing}
        return StorageTask.model_validate(document | self.settings)

    def land(self, path: str, *rows: str) -> Path:
        return self.land_bytes(path, "".join(f"{row}\n" for row in rows).encode())

    def land_bytes(self, path: str, content: bytes) -> Path:
        file = self.lab.landing / self.lab.schema / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
        return file

    def run(self, apply: ApplyMode = "never") -> RunOutcome:
        context = self.lab.context(apply)
        return run_once(context, units(context, [self.task]))

    def __getitem__(self, table: str) -> Look:
        return Look(self.lab, dataset_of_source(self.task, f"s.{table}"))

    def ledger(self) -> Look:
        return Look(self.lab, ledger_dataset(self.task))

    def replay(self, table: str | None = None) -> tuple[int, int]:
        """Read what is in quarantine again: records, and how many of them were copied."""
        project = replace(load_project(self.lab.project), tasks=(self.task,))
        looked = self.ledger() if table is None else self[table]
        entries = inventory(project, python_catalog(project.target))
        tables = {entry.dataset.relations.internal_table: entry for entry in entries}
        entry = tables[looked.dataset.relations.internal_table]
        result = replay(self.lab.context(), entry, None)
        return result.records, result.copied


@pytest.fixture
def dms(lab: Lab) -> Service:
    defaults = {"keys": ["id"], "history": True}
    return Service(lab, "dms", defaults=defaults, landing={"timestamp_column": "ts"})


def test_dms_loads_then_changes_then_deletes(dms: Service) -> None:
    dms.land(f"s/users/{LOAD}.csv", "ts,id,name", "2026-01-01 00:00:05,1,Ann", ",2,Ben")
    dms.land(
        f"s/users/{FIRST}.csv",
        "Op,ts,id,name",
        "I,2026-01-01 00:00:01,3,Cid",
        "U,2026-01-01 00:00:02,1,Anna",
        "D,2026-01-01 00:00:03,2,Ben",
    )
    dms.land("s/awsdms_status/LOAD00000001.csv", "x", "1")

    assert dms.run("never").failures == {}
    before = dms["users"].current("id", "name")
    assert dms.run("always").failures == {}

    users = dms["users"]
    assert before == users.current("id", "name") == [(1, "Anna"), (3, "Cid")]
    assert {row[:3] for row in users.history("id", "name")} == {
        (1, "Ann", "L"),
        (1, "Anna", "U"),
        (2, "Ben", "L"),
        (2, "Ben", "D"),
        (3, "Cid", "I"),
    }
    assert users.totals() == {"in": 5, "out": 5, "filtered": 0, "quarantined": 0}
    assert dms.ledger().table().state.copy.books.counters == {"control_table_files": 1}
    assert dms.ledger().table().state.copy.membership.members == ["s.users"]


def test_a_new_full_load_retires_what_it_lacks_and_leaves_what_changed_later(
    dms: Service,
) -> None:
    at = "2026-01-01 00:00:00"
    dms.land(f"s/users/{LOAD}.csv", "ts,id,name", f"{at},1,Ann", f"{at},2,Ben", f"{at},3,Cid")
    late = "I,2026-01-01 00:00:30,4,Dot"
    dms.land(f"s/users/{FIRST}.csv", "Op,ts,id,name", "U,2026-01-01 00:00:02,1,Anna", late)
    dms.run("always")
    users = dms["users"]
    dms.land(f"s/users/{LOAD}.csv", "ts,id,name", ",1,Anna", ",2,Benny", ",5,Eve")

    reload(
        dms.lab.context(), ReloadRequest(dms.task, users.dataset, mode=DELETING, as_of=moment(10))
    )
    moved = users.current("id", "name")
    dms.run("always")

    assert (
        moved == users.current("id", "name") == [(1, "Anna"), (2, "Benny"), (4, "Dot"), (5, "Eve")]
    )
    ends = [row[2:] for row in users.history("id", "name") if row[2] in ("u", "d", "i")]
    assert ends == [("u", 10.0, None), ("d", 10.0, None), ("i", 10.0, None)]


def test_dms_moves_a_record_inside_one_commit(dms: Service) -> None:
    """Delete and insert of one key have the same time; only their rows tell which is later."""
    dms.land(f"s/users/{LOAD}.csv", "ts,id,name", ",1,Ann")
    at = "2026-01-01 00:00:02"
    dms.land(f"s/users/{FIRST}.csv", "Op,ts,id,name", f"D,{at},1,Ann", f"I,{at},1,Bea")

    dms.run("always")

    assert dms["users"].current("id", "name") == [(1, "Bea")]


@pytest.mark.slow
def test_dms_rows_that_are_delivered_again_change_nothing(dms: Service) -> None:
    dms.settings["defaults"] = {"keys": ["id"], "history": True, "sequence_by": ["seq"]}
    rows = ["Op,ts,id,name,seq", "I,2026-01-01 00:00:01,1,Ann,10", "D,2026-01-01 00:00:02,1,,20"]
    later = "I,2026-01-01 00:00:03,2,Ben,30"
    dms.land(f"s/users/{FIRST}.csv", *rows, later)
    dms.run("always")
    users = dms["users"]
    before = users.history("id", "name")

    dms.land(f"s/users/{SECOND}.csv", *rows)
    dms.run("always")

    assert users.current("id", "name") == [(2, "Ben")]
    assert users.history("id", "name") == before
    assert users.totals()["in"] == 5


def test_dms_bad_files_and_rows_come_back_after_a_repair(dms: Service) -> None:
    dms.settings["defaults"] = {"keys": ["id"], "columns": {"n": "int"}}
    dms.land(f"s/users/{LOAD}.csv", "ts,id,n", ",1,5")
    dms.land(f"s/users/{FIRST}.csv", "U,2026-01-01 00:00:01,1,6")
    dms.land(f"s/users/{SECOND}.csv", "Op,ts,id,n", "U,2026-01-01 00:00:02,2,many")
    dms.land("odd.csv", "a,b")
    dms.run("always")
    users = dms["users"]
    files = f"{dms.lab.schema}/s/users"
    assert users.rejected() == [
        (f"{files}/{FIRST}.csv", -1, "unreadable_file"),
        (f"{files}/{SECOND}.csv", 0, "bad_value"),
    ]
    assert [rule for _, _, rule in dms.ledger().rejected()] == ["no_dataset"]

    dms.land(f"s/users/{FIRST}.csv", "Op,ts,id,n", "U,2026-01-01 00:00:01,1,6")
    (dms.lab.landing / dms.lab.schema / "odd.csv").unlink()
    assert dms.replay("users") == (2, 0)
    assert dms.replay() == (1, 0)
    dms.run("always")

    assert users.current("id", "n") == [(1, 6)]
    assert [rule for _, _, rule in users.rejected()] == ["bad_value"]
    assert users.totals() == {"in": 3, "out": 2, "filtered": 0, "quarantined": 1}
    assert dms.ledger().rejected() == []


def test_dms_parquet_in_a_path_of_its_own(dms: Service) -> None:
    dms.landing["cdc_path"] = "changes"
    load = pa.table({"id": [1, 2], "ts": ["", ""], "name": ["Ann", "Ben"]})
    rows = pa.table({"Op": ["U"], "id": [1], "ts": ["2026-01-01 00:00:01"], "name": ["Anna"]})
    for path, table in ((f"s/users/{LOAD}", load), (f"changes/s/users/{FIRST}", rows)):
        file = dms.land_bytes(f"{path}.parquet", b"")
        parquet.write_table(table.drop_columns(["ts"]) if "LOAD" in path else table, file)

    dms.run("always")

    assert dms["users"].current("id", "name") == [(1, "Anna"), (2, "Ben")]


def test_a_table_without_keys_is_named_and_the_others_go_on(dms: Service) -> None:
    dms.settings = {"datasets": [{"name": "users", "keys": ["id"]}]}
    dms.land(f"s/users/{LOAD}.csv", "ts,id,name", ",1,Ann")
    dms.land(f"s/people/{LOAD}.csv", "ts,id,name", ",1,Ann")

    (failure,) = dms.run("never").failures.values()

    assert "s.people" in str(failure)
    assert dms["users"].current("id") == [(1,)]


class Replicate(Service):
    """A task over files of Replicate; each is landed with its `.dfm` file."""

    header = (
        ("header__change_seq", "STRING", 0),
        ("header__change_oper", "STRING", 0),
        ("header__change_mask", "BYTES", 0),
        ("header__operation", "STRING", 0),
        ("header__timestamp", "DATETIME", 0),
    )
    columns = (("id", "INT4", 1), ("name", "STRING", 0), ("city", "STRING", 0))

    def load(self, name: str, *rows: str, folder: str = "s.users") -> None:
        self._land(f"{folder}/{name}", rows, self.columns)

    def changes(self, name: str, *rows: str) -> None:
        self._land(f"s.users__ct/{name}", rows, (*self.header, *self.columns))

    def _land(self, path: str, rows: tuple[str, ...], specs: Any, told: int | None = None) -> None:
        self.land(f"{path}.csv", ",".join(name for name, _, _ in specs), *rows)
        columns = [
            {"ordinal": index, "name": name, "type": kind, "primaryKeyPos": key}
            for index, (name, kind, key) in enumerate(specs, 1)
        ]
        info = {"name": path.rpartition("/")[2], "recordCount": len(rows) if told is None else told}
        document = {"fileInfo": info, "dataInfo": {"columns": columns}}
        self.land_bytes(f"{path}.dfm", json.dumps(document).encode())


def change(second: int, operation: str, *values: str, mask: str = "", long: str = "") -> str:
    """A row of changes; its time is `second` after the start of the year."""
    sequence = f"20260101000000{second:02d}{second:019d}"
    at = f"2026-01-01 00:00:{second:02d}"
    return ",".join([sequence, operation, mask, long, at, *values])


@pytest.fixture
def replicate(lab: Lab) -> Replicate:
    return Replicate(lab, "replicate", defaults={"history": True})


def test_replicate_loads_changes_moves_and_deletes(replicate: Replicate) -> None:
    replicate.load("LOAD00001", "1,Ann,Ulm", "2,Ben,Bonn", "3,Cid,")
    replicate.load("LOAD00001", "1,1,1", folder="s.attrep_ddl_history")
    replicate.changes(
        FIRST,
        change(1, "I", "4", "Dot", "Kiel", mask="ff"),
        change(2, "B", "1", "Ann", "Ulm"),
        change(2, "U", "1", "Anna", "", mask="40"),
        change(3, "B", "2", "Ben", ""),
        change(3, "U", "9", "Ben", "", mask="20"),
        change(4, "D", "3", "", "", mask="20"),
    )

    assert replicate.run("never").failures == {}
    before = replicate["users"].current("id", "name", "city")
    assert replicate.run("always").failures == {}

    users = replicate["users"]
    expected = [(1, "Anna", "Ulm"), (4, "Dot", "Kiel"), (9, "Ben", "Bonn")]
    assert users.current("id", "name", "city") == expected == before
    assert {row[:3] for row in users.history("id", "name")} == {
        (1, "Ann", "L"),
        (1, "Anna", "U"),
        (2, "Ben", "L"),
        (2, "Ben", "D"),
        (3, "Cid", "L"),
        (3, "Cid", "D"),
        (4, "Dot", "I"),
        (9, "Ben", "I"),
    }
    assert users.totals() == {"in": 9, "out": 8, "filtered": 1, "quarantined": 0}
    assert users.table().state.copy.books.counters == {"before_images": 1}
    assert replicate.ledger().table().state.copy.books.counters == {"control_table_files": 1}
    assert users.types() == {"id": "int", "name": "string", "city": "string"}


@pytest.mark.slow
def test_replicate_changes_that_are_delivered_again_change_nothing(replicate: Replicate) -> None:
    rows = [
        change(1, "I", "1", "Ann", "Ulm"),
        change(2, "B", "1", "Ann", "Ulm"),
        change(2, "U", "2", "Ann", "Ulm", mask="20"),
        change(3, "D", "2", "", ""),
        change(4, "I", "2", "Bea", ""),
    ]
    replicate.changes(FIRST, *rows)
    replicate.run("always")
    users = replicate["users"]
    before = users.history("id", "name")

    replicate.changes(SECOND, *rows[1:4])
    replicate.run("always")

    assert users.current("id", "name") == [(2, "Bea")]
    assert users.history("id", "name") == before


def test_replicate_truncates(replicate: Replicate) -> None:
    replicate.load("LOAD00001", "1,Ann,Ulm")
    row = change(2, "", "", "", "", long="TRUNCATE")
    replicate.changes(FIRST, row, change(3, "I", "2", "Ben", ""))

    replicate.run("always")

    assert replicate["users"].current("id") == [(2,)]


def test_a_replicate_file_waits_for_its_description_and_a_wrong_one_can_be_repaired(
    replicate: Replicate,
) -> None:
    specs = (*replicate.header, *replicate.columns)
    row = change(1, "I", "1", "Ann", "Ulm")
    replicate.land(f"s.users__ct/{FIRST}.csv", ",".join(name for name, _, _ in specs), row)
    replicate.run("always")
    assert [event.type for event in replicate.lab.events].count("file.waiting") == 1
    assert replicate["users"].totals() == {}

    replicate._land(f"s.users__ct/{FIRST}", (row,), specs, told=2)
    replicate.run("always")
    users = replicate["users"]
    assert [rule for _, _, rule in users.rejected()] == ["unreadable_file"]

    replicate._land(f"s.users__ct/{FIRST}", (row,), specs)
    assert replicate.replay("users") == (1, 0)
    assert replicate.run("always").failures == {}

    assert users.current("id", "name") == [(1, "Ann")]
    assert users.rejected() == []
    assert users.types()["id"] == "int"
