"""Files that the settings of a dataset do not fit: which settings would."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from polynya.cli.main import main
from polynya.model.config.settings import Delivery
from polynya.proposal.misfits import misfits
from polynya.store.object_store import LocalObjectStore
from tests.formats.helpers import a_dataset
from tests.projects import write_project

TASK = """\
apiVersion: polynya/v1
kind: storage
name: users
schema: shop
landing: {path: users, format: csv}
datasets: [{name: users, path: "*", mode: append_only, columns: {day: date}}]
"""


@pytest.mark.parametrize(
    ("file_format", "settings", "content", "advice"),
    [
        ("csv", {}, b"id\tn\n1\t2\n2\t3\n",
         [r'set `delimiter: "\t"`: tabs between the fields']),
        ("csv", {"delimiter": ";"}, b"id,n\n1,2\n2,3\n",
         ['`delimiter: ";"` does not fit: leave it out']),
        ("csv", {}, b"# note\nid,n\n1,2\n", ['set `comment: "#"`: begins 1 line']),
        ("csv", {}, "id,city\n1,Köln\n2,Besançon\n".encode("cp1252"),
         ['set `encoding: "windows-1252"`: not UTF-8; its bytes fit this one: check accents']),
        ("csv", {}, "id,n\n1,2\n".encode("utf-16"),
         ['set `encoding: "utf-16"`: it begins with the byte order mark of UTF-16']),
        ("json", {}, b'[{"id": 1}, {"id": 2}]',
         ['set `record_path: "$"`: the file is one array, of 2 records']),
        ("json", {}, b"id,n\n1,2\n2,3\n",
         ["it looks like csv: set `format: csv` (text with 2 columns)"]),
        ("csv", {"delimiter": ";", "header": True}, b"id;price\n1;1.234,50\n2;7,25\n",
         ['set `decimal_separator: ","`: numbers such as 1.234,50',
          'set `thousands_separator: "."`: numbers such as 1.234,50']),
        ("csv", {}, b"id,n\n1,2\n", []),
    ],
)  # fmt: skip
def test_advice(
    tmp_path: Path, file_format: str, settings: dict[str, Any], content: bytes, advice: list[str]
) -> None:
    (tmp_path / "a").write_bytes(content)
    dataset = a_dataset(file_format, delivery=Delivery(**settings))

    found = misfits(LocalObjectStore(tmp_path), "a", dataset)

    assert found == [f"a: {text}" for text in advice]


def test_a_file_of_another_kind_is_named(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"%PDF-1.7\n%\xe2\xe3")

    (found,) = misfits(LocalObjectStore(tmp_path), "a", a_dataset("csv"))

    assert found.startswith("a: it is a PDF document; fix: ask for the data")


def test_a_file_that_is_gone_says_nothing(tmp_path: Path) -> None:
    assert misfits(LocalObjectStore(tmp_path), "gone", a_dataset("json")) == []


def test_a_preview_says_what_would_fit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    project = write_project(tmp_path, users=TASK)
    (project / "landing/users").mkdir(parents=True)
    (project / "landing/users/1.csv").write_text("id,day\n1,31.12.2026\n2,01.02.2026\n")

    main(["preview", "--json", "--project", str(project)])

    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    [notes] = [one["notes"] for one in lines if one["type"] == "preview.dataset"]
    assert notes == [
        'users/1.csv: set `format: "dd.MM.yyyy"` for the column day: dates of one style'
    ]
