"""Files of users' tests: strict, with places, and checked against the tasks."""

from __future__ import annotations

import pytest

from polynya.model.loader import load_project
from polynya.model.task_tests import load_tests
from tests.projects import BANK, USERS, write_project

HEAD = "apiVersion: polynya/v1\nkind: tests\ntests:\n"
GOOD = """\
  - name: one
    task: users
    given: [{events: [{userId: 1}]}]
    expect: {current: []}
"""


def loaded(folder, text, **tasks):
    write_project(folder, **(tasks or {"users": USERS, "bank": BANK}))
    (folder / "tests").mkdir()
    (folder / "tests/a.yml").write_text(HEAD + text)
    tests, errors = load_tests(load_project(folder), {"CITY": "Leon"})
    return tests, [(error.code, error.where, str(error)) for error in errors]


def test_a_test_knows_its_task_its_dataset_and_its_place(tmp_path):
    (test,), errors = loaded(tmp_path, GOOD.replace("userId: 1", "userId: 1, city: '${env:CITY}'"))

    assert errors == []
    assert (test.task.name, test.dataset.name) == ("users", "users")
    assert test.test.given[0].events == ({"userId": 1, "city": "Leon"},)
    assert (test.where(), test.where("expect", "current")) == (
        "tests/a.yml:4:5",
        "tests/a.yml:7:14",
    )


def test_a_project_without_tests_has_none(tmp_path):
    assert load_tests(load_project(write_project(tmp_path, users=USERS))) == ([], [])


def test_a_discovered_table_is_named_by_the_test(tmp_path):
    text = GOOD.replace("users", "bank\n    dataset: accounts")
    (test,), errors = loaded(tmp_path, text)

    assert (errors, test.dataset.name) == ([], "accounts")


@pytest.mark.parametrize(
    ("was", "becomes", "code", "where", "says"),
    [
        ("task: users", "task: userz", "POLYNYA-TEST-001", "5:5", "did you mean `users`?"),
        (
            "- name: one",
            "- nmae: x\n    name: one",
            "POLYNYA-CFG-007",
            "4:5",
            "did you mean `name`?",
        ),
        ("task: users", "task: bank", "POLYNYA-CFG-008", "4:5", "missing key `dataset`"),
        (
            "task: users",
            "task: users\n    dataset: user",
            "POLYNYA-TEST-001",
            "6:5",
            "did you mean `users`?",
        ),
        ("current: []", "curent: []", "POLYNYA-CFG-007", "7:14", "did you mean `current`?"),
        ("{current: []}", "{}", "POLYNYA-CFG-009", "7:5", "nothing is expected"),
        ("current: []", "history: []", "POLYNYA-TEST-001", "7:14", "keeps no history"),
        ("current: []", "current: [1]", "POLYNYA-CFG-009", "7:24", "a mapping of keys"),
        (
            "{events: [{userId: 1}]}",
            "{events: [{userId: 1}], lines: x}",
            "POLYNYA-CFG-016",
            "6:13",
            "a batch has one of",
        ),
        ("events: [{userId: 1}]", "apply: true", "POLYNYA-CFG-016", "6:13", "a batch has one of"),
        (
            "{events: [{userId: 1}]}",
            "{folder: data, file: x}",
            "POLYNYA-CFG-016",
            "6:28",
            "no meaning with `folder`",
        ),
        ("events: [{userId: 1}]", "folder: ../data", "POLYNYA-CFG-011", "6:14", "`..`"),
        (
            "{events: [{userId: 1}]}",
            "{events: [{userId: 1}], load: true}",
            "POLYNYA-CFG-016",
            "6:37",
            "has no `initial_load`",
        ),
        (
            "{events: [{userId: 1}]}",
            "{events: [{userId: 1}], clock: 2026-01-01}",
            "POLYNYA-CFG-009",
            "6:37",
            "with its zone",
        ),
    ],
)
def test_what_is_wrong_has_a_place(tmp_path, was, becomes, code, where, says):
    tests, errors = loaded(tmp_path, GOOD.replace(was, becomes))

    assert tests == []
    assert [(error[0], error[1]) for error in errors] == [(code, f"tests/a.yml:{where}")]
    assert says in errors[0][2]


def test_two_tests_of_one_name_are_refused(tmp_path):
    tests, errors = loaded(tmp_path, GOOD + GOOD)

    assert len(tests) == 1
    assert errors[0][:2] == ("POLYNYA-CFG-012", "tests/a.yml:8:5")


@pytest.mark.parametrize("format_", ["csv", "avro"])
def test_records_cannot_be_written_for_every_format(tmp_path, format_):
    task = USERS.replace("format: json", f"format: {format_}")
    _, errors = loaded(tmp_path, GOOD, users=task)

    assert errors[0][0] == "POLYNYA-CFG-019"
    assert f"`json`, `parquet`, `stream`, and the task reads `{format_}`" in errors[0][2]
