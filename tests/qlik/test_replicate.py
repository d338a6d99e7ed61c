"""Tasks of Replicate become captures with their tables; logins stay behind."""

from __future__ import annotations

import copy

import yaml

from polynya.qlik.importing import imported
from tests.qlik.exports import REPLICATE, write_replicate

MANIPULATION = "hr.json:$.cmd.replication_definition.tasks[0].manipulations[0].table_manipulation"


def test_a_task_becomes_a_capture_and_its_tables(tmp_path):
    made = imported(write_replicate(tmp_path / "hr.json"))
    files = {path: yaml.safe_load(text) for path, text in made.files().items()}

    capture, storage = files["tasks/HR_to_lake.yml"], files["tasks/HR_to_lake_tables.yml"]
    assert capture["tables"] == {"include": ["hr.people", "hr.jobs"]}
    assert capture["load"] == {"filter": {"hr.people": "active = 1"}}
    assert storage["defaults"] == {"history": True}
    assert storage["rules"] == [
        {"when": {"dataset": "people", "column": "ssn"}, "drop": True},
        {
            "when": {"dataset": "people"},
            "add": {"label": "UPPER(`last`) || ', ' || `first`"},
        },
    ]
    assert files["connections/HR_source.yml"]["host"] == "db.example.com"


def test_a_login_is_never_copied_and_named(tmp_path):
    made = imported(write_replicate(tmp_path / "hr.json"))

    text = "".join(made.files().values()) + made.report.as_text() + made.report.as_markdown("hr")
    assert "hunter2" not in text
    lost = [line for line in made.report.lines if line.what.endswith("db_settings.password")]
    assert [line.code for line in lost] == ["POLYNYA-QLK-016"]


def test_an_expression_without_an_equal_is_named_with_its_path(tmp_path):
    report = imported(write_replicate(tmp_path / "hr.json")).report

    lost = [line for line in report.lines if line.code == "POLYNYA-QLK-014"]
    assert [line.where for line in lost] == [
        f"{MANIPULATION}.transform_columns[2].computation_expression"
    ]


def test_a_connect_descriptor_is_not_taken_for_a_host(tmp_path):
    document = copy.deepcopy(REPLICATE)
    settings = document["cmd.replication_definition"]["databases"][0]["db_settings"]
    settings["server"] = "(DESCRIPTION=(ADDRESS=(HOST=db))) password=x"

    made = imported(write_replicate(tmp_path / "hr.json", document))

    assert "DESCRIPTION" not in made.files()["connections/HR_source.yml"]
