"""What a batch of a test lands."""

from __future__ import annotations

import pytest

from polynya.formats.files.discovery import glob_pattern
from polynya.model.errors import ConfigError, OperationError
from polynya.model.reading.loader import load_project
from polynya.model.reading.task_test_loader import load_tests
from polynya.testing.given import landing_files
from tests.projects import BANK, USERS, write_project

HEAD = "apiVersion: polynya/v1\nkind: tests\ntests:\n  - name: one\n    expect: {current: []}\n"


def lands(folder, batches, *, path="*.json", task="users"):
    users = USERS.replace("name: users\n    keys", f"name: users\n    path: '{path}'\n    keys")
    write_project(folder, users=users, bank=BANK)
    (folder / "tests").mkdir()
    about = "users" if task == "users" else "bank\n    dataset: accounts"
    (folder / "tests/a.yml").write_text(f"{HEAD}    task: {about}\n    given: [{batches}]\n")
    (test,), errors = load_tests(load_project(folder))
    assert errors == []
    return [dict(landing_files(test, number, folder)) for number in range(len(test.test.given))]


def test_records_become_lines_of_files_that_sort_like_the_batches(tmp_path):
    batches = "{events: [{a: 1}, {a: é}]}, {lines: '{'}"

    assert lands(tmp_path, batches) == [
        {"users/0001.json": '{"a": 1}\n{"a": "é"}\n'.encode()},
        {"users/0002.json": b"{"},
    ]


@pytest.mark.parametrize(
    "glob", ["*", "**/*.json", "a/**/b?.json", "**", "[ab]-*.json", "x{1}/*.gz", "2*/[0-9]*"]
)
def test_a_file_gets_a_name_that_the_dataset_takes(tmp_path, glob):
    names = [
        name for files in lands(tmp_path, "{lines: x}, {lines: y}", path=glob) for name in files
    ]

    assert all(glob_pattern(glob).fullmatch(name.removeprefix("users/")) for name in names)
    assert names == sorted(set(names)) and len(names) == (2 if "*" in glob else 1)


def test_a_name_that_cannot_be_made_has_to_be_given(tmp_path):
    with pytest.raises(ConfigError, match="no file name could be made from the glob") as caught:
        lands(tmp_path, "{lines: x}", path="[!a].json")

    assert caught.value.where == "tests/a.yml:7:13"


def test_a_named_file_and_a_capture_land_below_the_landing_path(tmp_path):
    assert lands(tmp_path / "a", "{lines: x, file: b/c.json}") == [{"users/b/c.json": b"x"}]
    assert lands(tmp_path / "b", "{lines: x}", task="bank") == [{"bank/0001.jsonl": b"x"}]


def test_a_folder_lands_as_it_is(tmp_path):
    (tmp_path / "data/one/deep").mkdir(parents=True)
    (tmp_path / "data/one/deep/x.json").write_bytes(b"x")

    assert lands(tmp_path, "{folder: data/one}") == [{"users/deep/x.json": b"x"}]


def test_a_folder_without_files_or_outside_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="has no files"):
        lands(tmp_path / "a", "{folder: nowhere}")
    (tmp_path / "b").mkdir()
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret/x").write_text("x")
    (tmp_path / "b/link").symlink_to(tmp_path / "secret")
    with pytest.raises(OperationError):
        lands(tmp_path / "b", "{folder: link}")
