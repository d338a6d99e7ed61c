"""Loading a project: every error at once, each with file, line, column and a way out."""

from __future__ import annotations

import json

import pytest

from polynya.model.errors import ConfigErrors
from polynya.model.loader import load_project
from tests.projects import BANK, PROJECT, USERS, write_project


def errors_of(folder, **options):
    with pytest.raises(ConfigErrors) as caught:
        load_project(folder, **options)
    return [str(error) for error in caught.value.errors]


def codes_of(folder):
    with pytest.raises(ConfigErrors) as caught:
        load_project(folder)
    return [error.code for error in caught.value.errors]


def test_a_project_loads_as_written(tmp_path):
    project = load_project(write_project(tmp_path, users=USERS, bank=BANK))

    assert project.project.name == "shop"
    assert project.files == {"users": "tasks/users.yml", "bank": "tasks/bank.yml"}
    assert [dataset.relations.view for dataset in project.datasets()] == ["users"]
    assert project.target.landing == tmp_path.resolve() / "landing"
    assert project.target.catalog_uri == f"jdbc:sqlite:{tmp_path.resolve()}/warehouse/catalog.db"
    assert project.where("users", "datasets", 0, "keys") == "tasks/users.yml:8:5"


def test_json_files_are_accepted_everywhere(tmp_path):
    (tmp_path / "tasks").mkdir()
    target = {"landing": "landing", "warehouse": "warehouse"}
    project = {
        "apiVersion": "polynya/v1",
        "kind": "project",
        "name": "shop",
        "targets": {"local": target},
    }
    task = {
        "apiVersion": "polynya/v1",
        "kind": "storage",
        "name": "bank",
        "schema": "bank",
        "landing": {"path": "bank", "format": "debezium"},
    }
    (tmp_path / "polynya.json").write_text(json.dumps(project, indent="\t"))
    (tmp_path / "tasks/bank.json").write_text(json.dumps(task))

    assert [task.name for task in load_project(tmp_path).tasks] == ["bank"]


def test_an_unknown_key_is_answered_with_the_nearest_one(tmp_path):
    text = USERS.replace("format: json", "formt: json").replace("keys:", "key:")

    found = errors_of(write_project(tmp_path, users=text))

    assert found[0].startswith(
        "tasks/users.yml:5:1: landing: missing key `format`; add it. `format`: `json` (one object"
    )
    assert found[1] == (
        "tasks/users.yml:5:24: landing.formt: unknown key `formt`; did you mean `format`? "
        "allowed here: add_fields, add_fields_prefix, cdc_path, comment, decimal_separator, "
        "delimiter, encoding, escape, flattened, format, header, null_value, path, quote, "
        "record_path, schema_registry, sheet, skip_lines, thousands_separator, timestamp_column, "
        "unsent_value, wrapped, zip_member"
    )
    assert found[2].startswith(
        "tasks/users.yml:8:5: datasets[0].key: unknown key `key`; did you mean `keys`? allowed here"
    )


def test_errors_of_all_files_come_together_in_the_order_of_lines(tmp_path):
    bad = USERS.replace("schema: shop", "schema: 1").replace("path: users", "path: ../users")
    worse = "apiVersion: polynya/v1\nkind: storage\n  name: x\n"

    found = errors_of(write_project(tmp_path, users=bad, worse=worse))

    assert [error.split(": ")[0] for error in found] == [
        "tasks/users.yml:4:1",
        "tasks/users.yml:5:11",
        "tasks/worse.yml:3:7",
    ]


def test_a_wrong_choice_names_the_choices(tmp_path):
    found = errors_of(write_project(tmp_path, users=USERS.replace("json}", "jsonl}")))

    choices = "avro, csv, debezium, dms, excel, json, orc, parquet, replicate"
    assert f"did you mean `json`? allowed here: {choices}" in found[0]


def test_a_broken_file_does_not_stop_the_valid_ones(tmp_path):
    folder = write_project(tmp_path, users=USERS, bank=BANK, broken="kind: [")

    project = load_project(folder, tolerant=True)

    assert sorted(task.name for task in project.tasks) == ["bank", "users"]
    assert [error.where for error in project.errors] == ["tasks/broken.yml:1:8"]


def test_a_key_that_is_written_twice_is_an_error_beside_others(tmp_path):
    folder = write_project(tmp_path, users=USERS + "name: again\nnonsense: 1\n")

    assert codes_of(folder) == ["POLYNYA-CFG-005", "POLYNYA-CFG-007"]


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ("", "POLYNYA-CFG-009", "must be a mapping"),
        ("[1]", "POLYNYA-CFG-009", "must be a mapping"),
        ("kind: storage", "POLYNYA-CFG-008", "missing key `apiVersion`"),
        (
            USERS.replace("kind: storage", "kind: painting"),
            "POLYNYA-CFG-018",
            "kind: `painting` is not supported in this file",
        ),
        (USERS.replace("/v1", "/v2"), "POLYNYA-CFG-018", "`polynya/v2` is not supported"),
        (USERS.replace("name: users", "name: 'a;b'", 1), "POLYNYA-CFG-010", "name: `a;b` is not"),
        (USERS.replace("[userId]", "[hdr__x]"), "POLYNYA-CFG-010", "reserved for Polynya"),
        (
            USERS.replace("[userId]", "userId"),
            "POLYNYA-CFG-009",
            "a list is expected here, not the text",
        ),
        (USERS.replace("[userId]", "[]"), "POLYNYA-CFG-014", "keys"),
        (USERS.replace("path: users", "path: /etc"), "POLYNYA-CFG-011", "is not relative"),
        (USERS + "    path: '..\\x'\n", "POLYNYA-CFG-011", "backslash"),
        (USERS + "    columns: {a: varint}\n", "POLYNYA-CFG-020", "unknown type `varint`"),
        (USERS + "    columns: {a: array<void>}\n", "POLYNYA-CFG-020", "cannot be declared"),
        (USERS + "    tombstone_retention: 30\n", "POLYNYA-CFG-009", "has no unit"),
        (USERS + "    tombstone_retention: 1y\n", "POLYNYA-CFG-009", "is not a duration"),
        (USERS + "    changes_retention: 30\n", "POLYNYA-CFG-009", "has no unit"),
        (USERS + "    changes_retention: kept\n", "POLYNYA-CFG-009", "is not a duration"),
        (USERS + "batch: {max_rows: 0}\n", "POLYNYA-CFG-009", "`0` is out of range"),
        (USERS + "batch: {max_bytes: 1XB}\n", "POLYNYA-CFG-009", "is not a size"),
        (USERS + "prefix: '${env:NOT_SET}'\n", "POLYNYA-CFG-006", "`NOT_SET` is not set"),
    ],
)
def test_what_is_wrong_has_a_code_and_says_so(tmp_path, text, code, message):
    found = write_project(tmp_path, users=text)

    with pytest.raises(ConfigErrors) as caught:
        load_project(found, environment={})

    first = caught.value.errors[0]
    assert (first.code, message in first.message) == (code, True), first
    assert first.where
    assert first.where.startswith("tasks/users.yml:")


def test_environment_variables_fill_settings_and_are_converted(tmp_path):
    text = USERS + "    history: ${env:HISTORY}\nbatch: {max_rows: '${env:ROWS:-7}'}\n"

    project = load_project(write_project(tmp_path, users=text), environment={"HISTORY": "true"})

    assert next(project.datasets()).kept.history is True
    assert project.tasks[0].batch.max_rows == 7


def test_two_tasks_with_one_name_name_both_files(tmp_path):
    folder = write_project(tmp_path, a=USERS, b=USERS.replace("name: users", "name: Users", 1))

    assert errors_of(folder) == [
        "tasks/b.yml:3:1: name: task `Users` is already defined in tasks/a.yml; rename one of them"
    ]


def test_two_datasets_that_want_one_table_name_both_files(tmp_path):
    other = USERS.replace("name: users", "name: more", 1)

    found = errors_of(write_project(tmp_path, a=USERS, b=other))

    expected = (
        "tasks/b.yml:7:5: datasets[0].name: `shop_internal.users_internal` belongs to dataset "
        "`users` in tasks/a.yml and to dataset `users` in tasks/b.yml; give one of the tasks its "
        "own `prefix` or another `schema`"
    )
    assert found == [expected]
    write_project(tmp_path, a=USERS, b=other + "prefix: b_\n")
    assert len(load_project(tmp_path).tasks) == 2


def test_a_view_counts_as_a_clash_too(tmp_path):
    other = USERS.replace("name: users", "name: more", 1).replace(
        "- name: users", "- name: users__history"
    )

    assert codes_of(write_project(tmp_path, a=USERS, b=other)) == ["POLYNYA-CFG-013"]


def test_names_of_all_views_clash_in_any_case_and_across_tasks(tmp_path):
    headers = USERS + "views: {headers: true, headers_suffix: _H, changes: _c}\n"
    for other in ("USERS_h", "Users_C", "users__History"):
        text = USERS.replace("name: users", "name: more", 1).replace(
            "- name: users", f"- name: {other}"
        )
        assert codes_of(write_project(tmp_path / other, a=headers, b=text)) == ["POLYNYA-CFG-013"]
    same = USERS + "views: {history: __x, changes: __X}\n"
    assert codes_of(write_project(tmp_path / "same", a=same)) == ["POLYNYA-CFG-013"]
    text = text.replace("users__History", "users__whdr")
    assert len(load_project(write_project(tmp_path / "fine", a=USERS, b=text)).tasks) == 2


def test_defaults_of_the_project_lie_under_those_of_the_task(tmp_path):
    project = PROJECT + "defaults: {history: true, delete_mode: soft}\n"
    task = USERS + "defaults: {delete_mode: hard}\n"

    dataset = next(load_project(write_project(tmp_path, project=project, users=task)).datasets())

    assert (dataset.kept.history, dataset.kept.delete_mode) == (True, "hard")


def test_a_folder_without_a_project_says_how_to_get_one(tmp_path):
    [error] = errors_of(tmp_path)

    assert "this folder has no polynya.yml" in error
    assert "polynya init DIR" in error


def test_targets_are_chosen_by_name_else_local_else_the_only_one(tmp_path):
    two = PROJECT + "  prod: {landing: ./l2, warehouse: ./w2}\n"
    write_project(tmp_path, project=two)

    assert load_project(tmp_path).target.name == "local"
    assert load_project(tmp_path, "prod").target.warehouse.name == "w2"
    assert (
        "the project has no target `prd`; did you mean `prod`?"
        in errors_of(tmp_path, target="prd")[0]
    )

    write_project(tmp_path, project=two.replace("local:", "dev:"))
    assert "choose one with `--target`: dev, prod" in errors_of(tmp_path)[0]

    write_project(tmp_path, project=PROJECT.replace("local:", "only:"))
    assert load_project(tmp_path).target.name == "only"


@pytest.mark.parametrize(
    ("landing", "message"),
    [("hdfs://host/x", "neither a local folder nor on S3"), ("./warehouse", "the same folder")],
)
def test_targets_that_cannot_work_are_refused(tmp_path, landing, message):
    write_project(tmp_path, project=PROJECT.replace("./landing", landing))

    assert message in errors_of(tmp_path)[0]
