"""What a command says of a machine that cannot give it what it needs; `doctor` finds each."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from polynya.cli.main import main
from tests.lake.warehouse.tables import make_tables
from tests.projects import write_project


def checks(project: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """What `doctor` finds, by the name of the check."""
    capsys.readouterr()
    main(["doctor", "--project", str(project), "--json"])
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    return {line["name"]: line for line in lines if line["type"] == "check"}


def test_doctor_finds_a_heap_that_does_not_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("POLYNYA_DRIVER_MEMORY", "lots")

    found = checks(write_project(tmp_path), capsys)["memory"]

    assert found["status"] == "fail"
    assert "POLYNYA_DRIVER_MEMORY is not a size" in found["detail"]


def test_a_run_and_doctor_find_a_damaged_catalog_and_repair_mends_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project = write_project(tmp_path)
    make_tables(tmp_path, "users_internal")
    assert checks(project, capsys)["catalog"]["status"] == "ok"
    (tmp_path / "warehouse/catalog.db").write_bytes(b"garbage" * 100)

    for verb in ("run", "status", "plan", "query"):
        arguments = [verb, "--once"] if verb == "run" else [verb]
        arguments += ["SELECT 1"] if verb == "query" else []
        assert main([*arguments, "--project", str(project)]) == 4
        said = capsys.readouterr().err
        assert "error[POLYNYA-LAKE-040]" in said
        assert "java" not in said
    assert checks(project, capsys)["catalog"]["status"] == "fail"

    main(["doctor", "--repair", "--project", str(project)])
    assert "registered: shop_internal.users_internal" in capsys.readouterr().out
    assert checks(project, capsys)["catalog"]["status"] == "ok"


def test_a_warehouse_that_cannot_be_made_or_written_is_no_bug(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project = write_project(tmp_path)
    (tmp_path / "warehouse").write_text("a file is in the way")

    assert main(["run", "--once", "--project", str(project)]) == 4

    assert "error[POLYNYA-DEP-010]" in capsys.readouterr().err
    assert checks(project, capsys)["warehouse"]["status"] == "fail"


def test_a_character_that_cannot_be_printed_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = write_project(tmp_path)
    monkeypatch.setattr("polynya.cli.plan._summary", lambda *_: "valid: \u03b1")
    printed, err = io.TextIOWrapper(io.BytesIO(), encoding="ascii"), io.StringIO()
    monkeypatch.setattr(sys, "stdout", printed)
    monkeypatch.setattr(sys, "stderr", err)

    assert main(["validate", "--project", str(project)]) == 2

    assert "ascii cannot print U+03B1, greek small letter alpha" in err.getvalue()
    assert main(["validate", "--project", str(project), "--json"]) == 0


def test_doctor_warns_of_an_encoding_that_lacks_characters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))

    main(["doctor", "--project", str(write_project(tmp_path)), "--json"])

    sys.stdout.flush()
    lines = [json.loads(line) for line in raw.getvalue().splitlines()]
    (found,) = (line for line in lines if line.get("name") == "output")
    assert found["status"] == "warn"


def test_doctor_looks_where_the_nodes_agree_when_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    project, place = write_project(tmp_path), tmp_path / "agreed"

    assert "coordination" not in checks(project, capsys)
    monkeypatch.setenv("POLYNYA_COORDINATION", str(place))
    found = checks(project, capsys)["coordination"]

    assert found["status"] == "ok"
    assert "written under conditions, compared, deleted; leases of shop: 0" in found["detail"]
    assert [one.name for one in (place / "shop").rglob("*") if one.is_file()] == []
