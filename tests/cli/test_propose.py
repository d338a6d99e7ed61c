"""`init --from`: the project that is written, and what the command says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from polynya.cli.main import main
from polynya.model.loader import load_project

CHANGES = [
    {"userId": 1, "op": "I", "sequenceNum": 1, "eventTime": "2026-01-01T00:00:01Z", "price": 10},
    {"userId": 1, "op": "D", "sequenceNum": 2, "eventTime": "2026-01-01T00:00:02Z", "price": 11},
]


def test_a_file_becomes_a_project_that_loads(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "users.jsonl"
    file.write_text("".join(json.dumps(record) + "\n" for record in CHANGES))

    assert main(["init", str(tmp_path / "p"), "--from", str(file)]) == 0

    [task] = load_project(tmp_path / "p").tasks
    [dataset] = task.datasets
    assert (dataset.keys, dataset.sequence_by) == (("userId",), ("sequenceNum",))
    assert (tmp_path / "p/landing/users/users.jsonl").read_bytes() == file.read_bytes()
    assert not (tmp_path / "p/tests").exists()
    assert (
        "users: a run copies 2 of 2 records; newer versions with the same key replace 1"
        in capsys.readouterr().err
    )


def test_each_setting_has_its_reason_on_its_line(tmp_path: Path) -> None:
    file = tmp_path / "orders.csv"
    file.write_bytes("# by hand\nid;größe;price\n1;a;7.50\n2;b;1.00\n".encode("cp1252"))

    main(["init", str(tmp_path / "p"), "--from", str(file)])

    text = (tmp_path / "p/tasks/orders.yml").read_text("utf-8")
    settings = [
        line for line in text.splitlines() if line.startswith("  ") and not line.endswith(":")
    ]
    assert all(
        "#" in line for line in settings if "name:" not in line and "path: orders" not in line
    )
    [task] = load_project(tmp_path / "p").tasks
    landing = task.landing
    assert (landing.delimiter, landing.encoding, landing.comment, landing.header) == (
        ";", "windows-1252", "#", True,
    )  # fmt: skip


def test_a_folder_becomes_a_dataset_for_each_family_of_names(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "exports"
    folder.mkdir()
    for day in ("2026-01-01", "2026-01-02"):
        (folder / f"orders_{day}.csv").write_text("id,qty\n1,5\n")
    (folder / "people.tsv").write_text("id\tname\n1\tAna\n")
    (folder / "notes.pdf").write_bytes(b"%PDF-1.7\n")

    assert main(["init", str(tmp_path / "p"), "--from", str(folder), "--json"]) == 0

    tasks = {task.name: task for task in load_project(tmp_path / "p").tasks}
    assert {name: task.datasets[0].path for name, task in tasks.items()} == {
        "orders": "orders_*.csv",
        "people": "*.tsv",
    }
    assert (tmp_path / "p/landing/orders/orders_2026-01-02.csv").is_file()
    shown = capsys.readouterr()
    [result] = [line for line in map(json.loads, shown.out.splitlines()) if "datasets" in line]
    counts = {one["name"]: (one["files"], one["copied"]) for one in result["datasets"]}
    assert counts == {"orders": (2, 2), "people": (1, 1)}
    assert "notes.pdf: cannot propose settings from this file: it is a PDF document" in shown.err


def test_names_of_columns_are_text_and_never_yaml(tmp_path: Path) -> None:
    names = ("no", 'x" #', "no\ncolumn", "a: b}", "smile \N{GRINNING FACE}", "line\u2028end")
    record = dict.fromkeys(names, "2026-01-01T00:00:00Z")
    (tmp_path / "odd.json").write_text(json.dumps({**record, "kept": 1}) + "\n")

    code = main(["init", str(tmp_path / "p"), "--from", str(tmp_path / "odd.json")])

    # A column with a line end in its name cannot be in a table: the record cannot be copied.
    assert code == 2
    del record["no\ncolumn"]
    (tmp_path / "odd.json").write_text(json.dumps({**record, "kept": 1}) + "\n")
    assert main(["init", str(tmp_path / "p"), "--from", str(tmp_path / "odd.json")]) == 0
    [task] = load_project(tmp_path / "p").tasks
    assert set(task.datasets[0].columns or ()) == set(record)


def test_names_that_look_like_references_are_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET", "hunter2")
    key, order = "${env:SECRET}_id", "$${env:SECRET}_version"
    records = [{key: n, order: 1, "op": "${env:SECRET}"} for n in (1, 2)]
    file = tmp_path / "${env:SECRET}.jsonl"
    file.write_text("".join(json.dumps(record) + "\n" for record in records))

    assert main(["init", str(tmp_path / "p"), "--from", str(file)]) == 0

    [dataset] = load_project(tmp_path / "p").tasks[0].datasets
    assert (dataset.keys, dataset.sequence_by) == ((key,), (order,))
    assert dataset.except_columns == (order,)


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("a.xml", b"<a/>", "it is an XML document"),
        ("a.json", b'{"a": ', "not JSON"),
        ("a.csv", b"", "it holds no records"),
        ("a.zip", b"PK\x03\x04", "broken ZIP archive"),
    ],
)
def test_other_files_are_refused_and_nothing_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, content: bytes, why: str
) -> None:
    (tmp_path / name).write_bytes(content)

    assert main(["init", str(tmp_path / "p"), "--from", str(tmp_path / name)]) == 2

    shown = capsys.readouterr().err
    assert "POLYNYA-CLI-005" in shown
    assert f"--> {tmp_path / name}" in shown
    assert why in shown
    assert not (tmp_path / "p").exists()


def test_content_of_a_file_is_not_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.csv").write_text(
        "id,password\n1,hunter2\n2,hunter2\n3,hunter2,hunter2\nhunter2\n"
    )

    main(["init", str(tmp_path / "p"), "--from", str(tmp_path / "a.csv")])

    shown = capsys.readouterr()
    assert "hunter2" not in shown.out + shown.err
    assert "hunter2" not in (tmp_path / "p/tasks/a.yml").read_text()


def test_an_empty_project_has_no_task(tmp_path: Path) -> None:
    assert main(["init", str(tmp_path / "p"), "--empty"]) == 0

    assert list(load_project(tmp_path / "p").tasks) == []
    assert main(["init", str(tmp_path / "q"), "--empty", "--from", "x.csv"]) == 2
