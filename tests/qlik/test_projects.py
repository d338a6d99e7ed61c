"""A Qlik project becomes a project that is valid, and each loss has its place."""

from __future__ import annotations

import json
import zipfile

import pytest
import yaml

from polynya.cli.main import main
from tests.qlik.exports import BINDINGS, DIMENSION, FILES, LANDING, SCHEDULE, write_export


def run(*arguments: object, code: int = 0) -> None:
    assert main([str(argument) for argument in arguments]) == code


@pytest.fixture
def imported(tmp_path, capsys):
    def import_(source=None, code: int = 0, **changed: str):
        source = source or write_export(tmp_path / "export", **changed)
        run("import", source, tmp_path / "shop", "--from", "qlik", "--json", code=code)
        lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        return lines[-1], tmp_path / "shop"

    return import_


def losses(result: dict[str, object], code: str = "") -> list[str]:
    return [
        line["where"] + " " + line["what"]
        for line in result["lines"]
        if line["verdict"] == "lost" and line["code"].endswith(code)
    ]


def test_a_project_becomes_captures_tables_transforms_and_marts_that_are_valid(imported):
    result, folder = imported()

    tasks = {path.stem: yaml.safe_load(path.read_text()) for path in (folder / "tasks").iterdir()}
    assert {name: task["kind"] for name, task in tasks.items()} == {
        "Orders_Landing": "landing", "orders": "storage", "reporting": "transform",
        "mart": "data_mart",
    }  # fmt: skip
    capture = tasks["Orders_Landing"]
    assert capture["tables"] == {
        "include": ["sales.orders", "sales.customers", "sales.line%"], "exclude": ["sales.tmp%"],
    }  # fmt: skip
    assert capture["load"] == {"parallel": 8}
    assert capture["mask"] == {"sales.customers": {"mail": {"hash": {"key": {"env": "HASH_KEY"}}}}}
    storage = tasks["orders"]
    assert storage["landing"] == {"path": "Orders_Landing", "format": "debezium"}
    assert storage["defaults"] == {
        "history": True,
        "schema_evolution": {
            "truncate": "ignore", "incompatible_type": "ignore", "add_column": "ignore",
            "drop_column": "propagate",
        },
    }  # fmt: skip
    assert [rule.get("add") or rule.get("case") or rule["when"] for rule in storage["rules"]] == [
        "lower", {"label": "UPPER(`STATUS`) || '-' || `ID`"},
        {"dataset": "customers", "column": "notes"},
        {"dataset": "customers", "column": "fullname"},
    ]  # fmt: skip
    assert tasks["mart"]["relationships"] == [
        {"from": "orders.s_orders", "to": "orders.s_customers", "on": {"customer_id": "id"}}
    ]
    assert not losses(result, "017")
    run("validate", "--project", folder)


def test_each_loss_has_its_place_and_what_to_do(imported):
    result, folder = imported()

    found = losses(result)
    assert "qtcp_tasks/Orders Landing/task.yaml:4:3 settings.maximumLobSize" in found
    assert any("week_of_fiscal_year" in loss and ":18:" in loss for loss in found)
    report = folder.with_name("shop-import.md").read_text()
    assert "| lost | qtcp&#95;tasks/Orders Landing/task.yaml:4:3 |" in report
    assert result["lost"] == len(found)


def test_a_schedule_becomes_an_automation_that_is_off_and_valid(imported):
    berlin = SCHEDULE.replace("Etc/UTC", "Europe/Berlin")
    result, folder = imported(**{"qtcp_tasks/reporting/schedule.yaml": berlin})

    automation = yaml.safe_load((folder / "automations" / "reporting.yml").read_text())
    assert automation["enabled"] is False
    assert automation["triggers"] == [
        {"schedule": "FREQ=HOURLY;INTERVAL=6", "time_zone": "Europe/Berlin"}
    ]
    assert automation["actions"] == [{"run": ["reporting"]}]
    assert not [line for line in losses(result) if "schedule.yaml" in line]
    run("validate", "--project", folder)


def test_the_schedule_of_a_full_load_is_that_of_its_capture(imported):
    full = LANDING.replace("settings:\n", "settings:\n  fullLoadOnly: true\n", 1)
    weekly = SCHEDULE.replace("HOURLY;INTERVAL=6", "WEEKLY;BYDAY=MO").replace(
        "Etc/UTC", "Asia/Tokyo"
    )
    files = {"task.yaml": full, "schedule.yaml": weekly}
    _, folder = imported(
        **{f"qtcp_tasks/Orders Landing/{name}": one for name, one in files.items()}
    )

    landing = yaml.safe_load((folder / "tasks" / "Orders_Landing.yml").read_text())
    assert landing["update_method"] == "reload"
    assert landing["schedule"] == (
        "DTSTART;TZID=Asia/Tokyo:20260101T000000 RRULE:FREQ=WEEKLY;BYDAY=MO"
    )
    run("validate", "--project", folder)


@pytest.mark.parametrize(
    "change",
    [
        {"TIME_BASED": "EVENT_BASED"},
        {"HOURLY": "SOMETIMES"},
        {"Etc/UTC": "Nowhere/None"},
        {"'RRULE:FREQ=HOURLY;INTERVAL=6'": "7"},
    ],
)
def test_a_schedule_without_an_equal_is_a_loss(imported, change):
    text = SCHEDULE
    for old, new in change.items():
        text = text.replace(old, new)
    result, folder = imported(**{"qtcp_tasks/reporting/schedule.yaml": text})

    assert not (folder / "automations").exists()
    assert len([line for line in losses(result) if "schedule.yaml" in line]) == 3


def test_an_archive_of_github_gives_the_same_project_as_its_folder(imported, tmp_path):
    with zipfile.ZipFile(tmp_path / "export.zip", "w") as archive:
        for path, text in FILES.items():
            archive.writestr(f"repo-main/{path}", text)
        archive.writestr("repo-main/README.md", "# Orders")

    result, folder = imported(tmp_path / "export.zip")

    assert sorted(path.name for path in (folder / "tasks").iterdir()) == [
        "Orders_Landing.yml", "mart.yml", "orders.yml", "reporting.yml",
    ]  # fmt: skip
    assert "repo-main/README.md file" in losses(result) or "README.md file" in "".join(
        losses(result)
    )


def test_a_source_that_no_capture_reads_is_a_loss_with_all_that_follows(imported):
    types = {"task.orders_landing-a1b2.sourceConnection": {"type": "external_data_provider"}}
    bindings = json.dumps(BINDINGS | {"connectionProperties": types})

    result, folder = imported(**{"bindings.json": bindings})

    assert {loss.split("/")[1] for loss in losses(result, "012")} == {
        "Orders Landing", "orders", "reporting", "mart",
    }  # fmt: skip
    assert not (folder / "tasks").exists()


def test_a_task_that_the_check_refuses_is_left_out_with_the_message(imported):
    versions = DIMENSION.replace("TYPE1", "TYPE2")

    result, folder = imported(**{"qtcp_tasks/mart/datasets/dim_customer.yaml": versions})

    # The import of the fixture turns the history of customers off.
    assert "qtcp_tasks/mart/task.yaml:1:1 task mart" in losses(result, "017")
    assert "qtcp_tasks/mart/datasets/dim_customer.yaml:3:3 properties.name" in losses(result)
    assert not (folder / "tasks" / "mart.yml").exists()


def test_names_that_are_no_identifiers_and_markup_stay_text(imported):
    name = "x](javascript:alert(1)) <b>${env:HOME}</b> | `rm`"
    landing = LANDING.replace("Orders Landing", json.dumps(name)[1:-1]).replace(
        "{name: x", '{name: "x'
    ).replace("`rm`,", '`rm`",')  # fmt: skip

    _, folder = imported(**{"qtcp_tasks/Orders Landing/task.yaml": landing})

    report = folder.with_name("shop-import.md").read_text()
    assert "<b>" not in report
    assert "](" not in report
    written = "".join(path.read_text() for path in (folder / "tasks").iterdir())
    assert "env:HOME" not in written
    run("validate", "--project", folder)


def test_an_export_without_bindings_names_each_variable_that_has_no_value(imported, tmp_path):
    source = write_export(tmp_path / "export")
    (source / "bindings.json").unlink()

    result, _ = imported(source)

    assert "qtcp_project.yaml:2:3 properties.name" in losses(result, "015")
    assert "qtcp_tasks/Orders Landing/task.yaml:1:1 task" in losses(result, "012")


def test_the_command_says_what_a_repository_does_not(tmp_path):
    source = write_export(tmp_path / "export")
    (source / "bindings.json").unlink()

    run("import", source, tmp_path / "shop", "--from", "qlik", "--database", "mysql")

    assert "type: mysql" in "".join(
        path.read_text() for path in (tmp_path / "shop" / "connections").iterdir()
    )


def test_a_folder_that_is_not_empty_stays_as_it_was(imported, tmp_path):
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "mine").touch()

    source = write_export(tmp_path / "export")
    run("import", source, tmp_path / "shop", "--from", "qlik", code=2)

    assert [path.name for path in (tmp_path / "shop").iterdir()] == ["mine"]
    assert not (tmp_path / "shop-import.md").exists()
