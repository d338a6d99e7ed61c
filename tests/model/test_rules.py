"""Rules in files: where each stands, whose come first, and what is refused by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from polynya.engine.commands.validate import project_errors
from polynya.model.config.dataset import recorded
from polynya.model.errors import ConfigErrors
from polynya.model.loader import LoadedProject, load_project
from tests.projects import CLICKS, PROJECT, USERS, write_project

RULES = """\
rules:
  - {when: {column: "*mail*"}, mask: {hash: {key: {env: MAIL_KEY}}}}
"""
OF_TASK = """\
rules:
  - {when: {column: note}, drop: true}
  - filter: "age > 0"
"""
TRANSFORM = """\
apiVersion: polynya/v1
kind: streaming_transform
name: orders
from: clicks
stream: clicks
mode: append_only
rules:
  - {when: {column: card}, mask: redact}
"""


def loaded(folder: Path, *, project: str = PROJECT, **tasks: str) -> LoadedProject:
    return load_project(write_project(folder, project=project, **tasks), tolerant=True)


def said(folder: Path, *, project: str = PROJECT, **tasks: str) -> list[str]:
    """Code, place and message of all errors."""
    errors, _ = project_errors(loaded(folder, project=project, **tasks))
    return [f"{one.code} {one.where} {one.message}" for one in errors]


def test_rules_of_the_project_come_first_and_all_have_their_place(tmp_path: Path) -> None:
    project = loaded(tmp_path, project=PROJECT + RULES, users=USERS + OF_TASK)
    assert project.errors == ()
    assert [(rule.place, rule.does) for rule in project.tasks[0].rules] == [
        ("polynya.yml:7:5", "mask: hash"),
        ("tasks/users.yml:12:5", "drop"),
        ("tasks/users.yml:13:5", "filter: age > 0"),
    ]


def test_a_table_remembers_its_rules_without_a_secret(tmp_path: Path) -> None:
    project = loaded(tmp_path, project=PROJECT + RULES, users=USERS)
    (dataset,) = project.datasets()
    assert recorded(dataset, {}, has_rows=False)["rules"] == ["mask: hash (column *mail*)"]
    assert dataset.withholds


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("{when: {column: a}}", "POLYNYA-CFG-009 tasks/users.yml:12:5 rules[0]: the rule does"),
        ("{drop: true, prefix: x_}", "POLYNYA-CFG-009 tasks/users.yml:12:5 rules[0]: the rule has"),
        ("{when: {column: a}, filter: b}", "POLYNYA-CFG-009 tasks/users.yml:12:5 rules[0]: `fil"),
        ("{mask: {truncate: 1, replace: x}}", "POLYNYA-CFG-009 tasks/users.yml:12:5 rules[0]: a "),
        ("{drop: true, hash: x}", "POLYNYA-CFG-007 tasks/users.yml:12:18 "),
        ("{filter: 'now() > a'}", "POLYNYA-EXP-004 tasks/users.yml:12:5 "),
        ("{mask: {hash: {key: abc}}}", "POLYNYA-CFG-035 tasks/users.yml:12:20 "),
        ("{when: {column: userId}, mask: redact}", "POLYNYA-CFG-076 tasks/users.yml:12:5 "),
    ],
)  # fmt: skip
def test_a_wrong_rule_is_said_where_it_stands(tmp_path: Path, rule: str, expected: str) -> None:
    (error,) = said(tmp_path, users=f"{USERS}rules:\n  - {rule}\n")
    assert error.startswith(expected), error


def test_a_key_in_the_project_file_is_a_secret_in_a_file(tmp_path: Path) -> None:
    rules = 'rules: [{mask: {hash: {key: "${file:/run/key}"}}}]\n'
    assert said(tmp_path, project=PROJECT + rules, users=USERS) == []
    written = rules.replace("${file:/run/key}", "abc")
    with pytest.raises(ConfigErrors, match=r"rules\[0\].mask.hash.key: a key is written") as caught:
        loaded(tmp_path, project=PROJECT + written)
    assert "abc" not in str(caught.value)


def test_a_mask_of_what_the_project_lands_before_is_refused(tmp_path: Path) -> None:
    (error,) = said(tmp_path, clicks=CLICKS, orders=TRANSFORM)
    assert error.startswith("POLYNYA-CFG-078 tasks/orders.yml:8:5 ")
    assert "landing `clicks` writes the values" in error


def test_a_mask_of_a_stream_that_lands_nothing_is_right(tmp_path: Path) -> None:
    direct = f"{CLICKS}direct: true\n"
    errors = said(tmp_path, clicks=direct, orders=TRANSFORM)
    assert [error for error in errors if "POLYNYA-CFG-07" in error] == []


def test_other_rules_change_what_a_landing_has_landed(tmp_path: Path) -> None:
    rule = TRANSFORM.replace("mask: redact", "drop: true")
    assert said(tmp_path, clicks=CLICKS, orders=rule) == []
