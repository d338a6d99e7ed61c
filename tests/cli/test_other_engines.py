"""`polynya validate` names settings that other engines take otherwise, with their place."""

from __future__ import annotations

from pathlib import Path

from polynya.cli.doctor_tables import settings_for_other_engines
from polynya.model.loader import load_project
from tests.projects import USERS, aws_project, write_project

NESTED = USERS.replace(
    "apply_as_deletes: \"operation = 'DELETE'\"",
    'format_version: 3\n    columns: {tags: "array<string>", userId: bigint}',
)


def test_a_table_of_version_3_on_glue_is_named_with_who_cannot_read_it(tmp_path: Path) -> None:
    project = aws_project("http://127.0.0.1:9")
    (one,) = settings_for_other_engines(
        load_project(write_project(tmp_path, project=project, users=NESTED))
    )

    assert one.startswith("tasks/users.yml:10:5: the table of shop.users has version 3")
    assert "Athena documents version 2 only" in one
    assert one.endswith("Redshift reads no `tags` in it")
    local = load_project(write_project(tmp_path / "local", users=NESTED))
    assert list(settings_for_other_engines(local)) == []


def test_schemas_that_differ_in_case_only_are_one_to_other_engines(tmp_path: Path) -> None:
    other = USERS.replace("schema: shop", "schema: Shop").replace("users", "people")
    (one,) = settings_for_other_engines(
        load_project(write_project(tmp_path, people=other, users=USERS))
    )

    assert one == (
        "tasks/users.yml:4:1: schema `shop` and `Shop` of tasks/people.yml:4:1 are one to "
        "Snowflake, Redshift, Athena and Glue"
    )
