"""Mappings of columns: what is wrong with one is said where it is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from polynya.engine.commands.validate import project_errors
from polynya.model.loader import load_project
from tests.projects import write_project

HEAD = """\
apiVersion: polynya/v1
kind: storage
name: clicks
schema: shop
landing: {path: clicks, format: %s}
"""
TASK = (
    HEAD % "json"
    + """\
datasets:
  - name: clicks
    sequence_by: [ts]
    nested: expand
    where: "not_equal_to(type, 'ping')"
    columns:
      - {name: user_id, expression: "user.id", type: bigint, key: 1}
      - {name: sku, expression: "items[].sku", key: 2}
"""
)


def said(folder: Path, task: str) -> list[str]:
    """Code, place in the task's file and message of all errors."""
    project = load_project(write_project(folder, clicks=task), tolerant=True)
    errors, _ = project_errors(project)
    return [f"{one.code} {str(one.where).partition('.yml:')[2]} {one.message}" for one in errors]


def test_a_mapping_is_right(tmp_path: Path) -> None:
    assert said(tmp_path, TASK) == []


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("name: sku", "name: USER_ID", "POLYNYA-MAP-003 13:10 "),
        ("key: 2", "key: 3", "POLYNYA-MAP-003 13:48 "),
        ("key: 2", "key: 1", "POLYNYA-MAP-003 13:48 "),
        ("nested: expand", "keys: [sku]", "POLYNYA-MAP-003 9:5 "),
        ("nested: expand", "nested: flat", "POLYNYA-CFG-009 9:5 "),
        ("name: sku, ", "", "POLYNYA-CFG-008 13:9 "),
        ("name: sku, ", "name: sku, kind: text, ", "POLYNYA-CFG-007 13:21 "),
        ("type: bigint", "type: bigit", "POLYNYA-CFG-020 12:48 "),
        ("key: 2", "key: first", "POLYNYA-CFG-009 13:48 "),
        ("items[].sku", "items[", "POLYNYA-EXP-001 13:21 "),
        ("items[].sku", "now()", "POLYNYA-EXP-004 13:21 "),
        ("'ping')", "'ping'", "POLYNYA-EXP-001 10:5 "),
        ("'ping')", "tags[].name)", "POLYNYA-MAP-001 10:5 "),
    ],
)
def test_what_is_wrong_is_said_with_its_place(
    tmp_path: Path, old: str, new: str, expected: str
) -> None:
    assert old in TASK
    errors = said(tmp_path, TASK.replace(old, new))
    assert len(errors) == 1
    assert errors[0].startswith(expected)


def test_two_arrays_are_refused_with_both_places(tmp_path: Path) -> None:
    more = '      - {name: tag, expression: "tags[]"}\n'
    (error,) = said(tmp_path, TASK + more)
    assert error.startswith("POLYNYA-MAP-001 14:21 ")
    assert "`tags[]`" in error
    assert "`items[]`" in error
    assert "clicks.yml:13:21" in error


def test_elements_need_a_list_of_columns(tmp_path: Path) -> None:
    task = TASK.partition("    columns:")[0] + "    keys: [id]\n"
    (error,) = said(tmp_path, task.replace("type, 'ping'", "items[].sku, 'x'"))
    assert error.startswith("POLYNYA-MAP-002 10:5 ")


def test_extracts_are_not_mapped(tmp_path: Path) -> None:
    (error,) = said(tmp_path, TASK.replace("sequence_by: [ts]", "extracts: {}"))
    assert error.startswith("POLYNYA-MAP-004 8:")


def test_files_without_a_header_line_have_no_names_to_map(tmp_path: Path) -> None:
    task = TASK.replace("format: json", "format: csv, header: false")
    assert [error.split(" ")[0] for error in said(tmp_path, task)] == ["POLYNYA-MAP-004"]


def test_the_key_of_a_capture_can_only_have_another_name(tmp_path: Path) -> None:
    listed = "defaults: {columns: [{name: a, expression: %s, key: 1%s}]}\n"
    head = HEAD % "debezium"
    assert said(tmp_path, head + listed % ("id", "")) == []
    for text, more in (("upper(id)", ""), ("id", ", type: string")):
        errors = said(tmp_path, head + listed % (text, more))
        assert [error.split(" ")[0] for error in errors] == ["POLYNYA-MAP-004"]


def test_elements_of_a_capture_are_rows_only_where_nothing_is_merged(tmp_path: Path) -> None:
    listed = 'defaults: {mode: %s, columns: [{name: a, expression: "items[].a"}]}\n'
    task = HEAD % "debezium" + listed
    assert said(tmp_path, task % "append_only") == []
    (error,) = said(tmp_path, task % "merge")
    assert error.startswith("POLYNYA-MAP-004 6:")
