"""`polynya quarantine list` and `show` over many records. Without Spark, and without tables."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pyarrow as pa
import pytest

from polynya.cli.exit_codes import ExitCode
from polynya.cli.main import main
from polynya.cli.quarantine import Quarantine
from tests.projects import USERS, write_project

RULES = ("bad_value", "null_key", "unreadable_file")


def identifier(number: int) -> str:
    """An id whose last digit is not needed to tell it from others."""
    return f"{number * 7919:012x}"


def records(count: int, files: int = 10) -> pa.Table:
    """Made-up records; every third one of each rule."""
    numbers = range(count)
    return pa.table(
        {
            "id": [identifier(number) for number in numbers],
            "file": [f"orders/{number % files}.json" for number in numbers],
            "offset": [-1 if number % 3 == 2 else number for number in numbers],
            "rule": [RULES[number % 3] for number in numbers],
            "error": ["column amount: 123456.00 does not fit decimal(5,2)"] * count,
            "raw": [b'{"id": 1}'] * count,
        }
    )


@pytest.fixture
def many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The arguments that name a project with 50,000 quarantined records."""
    found = [Quarantine("shop.orders", records(50_000)), Quarantine("shop.users", records(3, 1))]
    monkeypatch.setattr(
        "polynya.cli.quarantine._quarantines",
        lambda _, name: [one for one in found if name in (None, one.dataset)],
    )
    monkeypatch.setenv("COLUMNS", "60")
    return ["--project", str(write_project(tmp_path, users=USERS))]


def test_fifty_thousand_are_summed_up_first_and_fast(
    many: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    began = time.process_time()
    assert main(["quarantine", "list", *many]) == 0
    took = time.process_time() - began

    shown = capsys.readouterr()
    lines = shown.out.splitlines()
    assert [part.strip() for part in lines[3].split("│")[1:-1]] == [
        "1,667", "shop.orders", "bad_value", "orders/0.json"
    ]  # fmt: skip
    assert "in 3 more groups" in shown.out
    assert sum(line.startswith("0000") for line in lines) == 20
    assert shown.err == "49,983 more; `--limit`, `--rule` and `--file` choose\n"
    assert took < 3


def test_records_are_readable_on_a_narrow_terminal(
    many: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["quarantine", "list", "shop.users", "--limit", "3", *many]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert lines[-6:] == [
        "000000000000  shop.users  orders/0.json, record 1",
        "  bad_value: column amount: 123456.00 does not fit decimal(5,2)",
        f"{identifier(1)}  shop.users  orders/0.json, record 2",
        "  null_key: column amount: 123456.00 does not fit decimal(5,2)",
        f"{identifier(2)}  shop.users  orders/0.json, whole file",
        "  unreadable_file: column amount: 123456.00 does not fit decimal(5,2)",
    ]
    assert max(map(len, lines[:-6])) <= 60


def test_a_rule_and_a_file_choose(many: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    chosen = ["--rule", "null_key", "--file", "orders/[45].json", "--json"]
    assert main(["quarantine", "list", "shop.orders", *chosen, *many]) == 0

    _, *rows = map(json.loads, capsys.readouterr().out.splitlines())
    assert {(row["rule"], row["file"]) for row in rows} == {
        ("null_key", "orders/4.json"),
        ("null_key", "orders/5.json"),
    }
    assert len(rows) == 3333
    assert main(["quarantine", "list", "--rule", "odd", *many]) == 0
    assert capsys.readouterr().out == "no quarantined record is like that\n"


def test_an_id_may_be_cut_short(many: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["quarantine", "show", identifier(49_999)[:-1], *many]) == 0
    assert capsys.readouterr().out.startswith(identifier(49_999))
    assert main(["quarantine", "show", "0000", *many]) == ExitCode.USAGE
    assert "ids begin with `0000`" in capsys.readouterr().err
    assert main(["quarantine", "show", "f00", *many]) == ExitCode.FAILED
    assert "POLYNYA-QUA-001" in capsys.readouterr().err


def test_a_new_project_has_an_empty_quarantine(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = str(write_project(tmp_path, users=USERS))

    assert main(["quarantine", "list", "--project", folder]) == 0
    assert capsys.readouterr().out == "the quarantine is empty\n"
