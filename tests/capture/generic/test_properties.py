"""Databases that Debezium alone loads and follows: their settings, and what they cannot do."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from polynya.capture.generic import GenericDatabase, properties
from polynya.capture.landing.position import position_of_offset, position_of_rows
from polynya.capture.source import Access, open_database
from polynya.capture.wire import WorkerSettings
from polynya.capture.worker.capture import own_jars
from polynya.model.errors import OperationError

ACCESS = Access("sqlserver", "db", 1433, "shop", "reader", "word", task="shop_db")


@pytest.mark.parametrize("kind", ["sqlserver", "oracle", "db2", "mongodb"])
def test_each_type_has_its_connector_and_a_load_of_its_own(kind: str) -> None:
    access = replace(ACCESS, type=kind, properties={"driver.secure": "yes", "own": "x"})

    given = properties(access, ["dbo.%"], [])

    assert isinstance(open_database(access), GenericDatabase)
    assert given["connector.class"].startswith(f"io.debezium.connector.{kind}.")
    assert given["snapshot.mode"] == "initial"
    assert given["own"] == "x"
    listed = "collection" if kind == "mongodb" else "table"
    assert given[f"{listed}.include.list"] == r"(?:dbo\x{2e}.*)"


def test_a_table_that_was_given_up_is_not_read_and_its_name_is_no_pattern() -> None:
    given = properties(ACCESS, ["dbo.%"], ["dbo.b"], without={"dbo.a%"})

    listed = given["table.include.list"].replace(r"\x{", r"\u{").replace("{", "00").replace("}", "")
    names = ["dbo.a%", "dbo.ab", "dbo.b", "dbo.c"]
    assert [one for one in names if re.fullmatch(listed, one)] == ["dbo.ab", "dbo.c"]


def test_the_way_is_secured_as_the_connection_says() -> None:
    verified = properties(ACCESS, ["dbo.a"], [])
    trusting = properties(replace(ACCESS, tls="require"), ["dbo.a"], [])

    assert (verified["driver.encrypt"], verified["driver.trustServerCertificate"]) == (
        "true", "false",
    )  # fmt: skip
    assert trusting["driver.trustServerCertificate"] == "true"


@pytest.mark.parametrize(
    "access",
    [replace(ACCESS, type="oracle"), replace(ACCESS, type="db2"), replace(ACCESS, ca="/ca.pem"),
     replace(ACCESS, type="mongodb", ca="/ca.pem")],
)  # fmt: skip
def test_a_way_that_only_the_user_can_secure_is_refused_until_it_is_said(access: Access) -> None:
    with pytest.raises(OperationError) as caught:
        properties(access, ["dbo.a"], [])

    assert caught.value.code == "POLYNYA-GTW-055"


@pytest.fixture(autouse=True)
def folder_of_connectors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POLYNYA_CONNECTORS", str(tmp_path / "connectors"))
    (tmp_path / "connectors").mkdir()


def test_a_test_of_the_connection_says_what_is_not_known(tmp_path: Path) -> None:
    missing = str(tmp_path / "connectors" / "driver.jar")

    findings = GenericDatabase(replace(ACCESS, jars=(missing,))).findings()

    assert "not tried" in findings[0].what
    assert [one.what for one in findings if not one.ok] == [f"{missing} is not there"]
    assert "no jars" in GenericDatabase(ACCESS).findings()[-1].what


def test_jars_of_a_folder_are_all_of_its_jars(tmp_path: Path) -> None:
    folder = tmp_path / "connectors" / "sqlserver"
    folder.mkdir()
    for name in ("b.jar", "a.jar", "readme.txt"):
        (folder / name).touch()

    found = own_jars(replace(ACCESS, jars=("sqlserver", str(folder / "b.jar"))))

    assert [Path(one).name for one in found] == ["a.jar", "b.jar", "b.jar"]
    with pytest.raises(OperationError, match="does not exist") as caught:
        own_jars(replace(ACCESS, jars=("none",)))
    assert caught.value.code == "POLYNYA-GTW-053"


def test_only_jars_that_the_machine_has_as_connectors_are_loaded(tmp_path: Path) -> None:
    inside = tmp_path / "connectors"
    (tmp_path / "landed.jar").touch()
    (inside / "link.jar").symlink_to(tmp_path / "landed.jar")
    (inside / "own.jar").touch()

    assert [Path(one).name for one in own_jars(replace(ACCESS, jars=(".",)))] == ["own.jar"]
    for outside in (str(tmp_path / "landed.jar"), "link.jar", "../landed.jar"):
        with pytest.raises(OperationError, match="cannot be used: it is not below") as caught:
            own_jars(replace(ACCESS, jars=(outside,)))
        assert "POLYNYA_CONNECTORS" in caught.value.render()
        findings = GenericDatabase(replace(ACCESS, jars=(outside,))).findings()
        assert any("POLYNYA_CONNECTORS" in one.what for one in findings if not one.ok)


def test_jars_and_settings_reach_the_process_and_are_not_shown() -> None:
    access = replace(ACCESS, jars=("a.jar",), properties={"x": "y"})
    settings = WorkerSettings("shop_db", "follow", access, "/landing", "shop_db", ("dbo.%",))

    assert WorkerSettings.of_line(settings.line()).access == access
    assert "word" not in repr(access)


def test_only_whether_the_load_is_over_is_known_of_its_place() -> None:
    target = position_of_rows("sqlserver", {})

    assert position_of_offset("sqlserver", {}) < target
    assert position_of_offset("sqlserver", {"commit_lsn": "0:0:1", "snapshot": True}) < target
    assert position_of_offset("sqlserver", {"commit_lsn": "0:0:1"}) == target


def test_nothing_is_loaded_without_its_changes() -> None:
    database = GenericDatabase(ACCESS)

    with pytest.raises(OperationError) as caught:
        database.look(database.tables(["dbo.%"], []), None)

    assert caught.value.code == "POLYNYA-GTW-052"
