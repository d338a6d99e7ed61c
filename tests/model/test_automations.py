"""Files of automations: strict, with places, and checked against the tasks."""

from __future__ import annotations

import pytest

from polynya.model.automations import load_automations
from polynya.model.config.aws import AwsAccess
from polynya.model.loader import load_project
from polynya.store.project_archive import export, unpack
from tests.projects import BANK, PROJECT, USERS, write_project

HEAD = "apiVersion: polynya/v1\nkind: automation\n"


def loaded(folder, **automations):
    write_project(folder, users=USERS, bank=BANK)
    (folder / "automations").mkdir()
    for name, text in automations.items():
        (folder / f"automations/{name}.yml").write_text(f"{HEAD}name: {name}\n{text}")
    found, errors = load_automations(load_project(folder), {})
    return found, [(error.code, error.where, error.message) for error in errors]


def of(trigger, action="{validate: true}"):
    return f"triggers: [{trigger}]\nactions: [{action}]\n"


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        (of("{after: [user]}"), "AUT-001", "the project has no task `user`"),
        (of("{overdue: nope, longer_than: 2h}"), "AUT-001", "the project has no task `nope`"),
        (of("{file: a}", "{run: [nope]}"), "AUT-001", "the project has no task `nope`"),
        (of("{schedule: '@daily'}"), "AUT-003", "the schedule has no time zone"),
        (of("{schedule: '@daily', time_zone: Mars/Olympus}"), "CFG", "no time zone `Mars/Olympus`"),
        (of("{schedule: '0 0 30 2 *', time_zone: UTC}"), "CFG", "never comes"),
        (
            of(
                "{schedule: '0 0 1 1 *', time_zone: UTC, start: '2026-02-01T00:00:00Z', "
                "end: '2026-03-01T00:00:00Z'}"
            ),
            "AUT-004",
            "has no moment between",
        ),
        (of("{file: a}", "{maintain: [--help]}"), "CFG", ""),
        (of("{file: a}", "{export: ../a.tar.gz}"), "CFG", ""),
        (of("{file: a}", "{delete: all}"), "CFG", ""),
    ],
)
def test_what_is_wrong_is_named_with_its_place(tmp_path, text, code, message):
    found, errors = loaded(tmp_path, nightly=text)

    assert found == []
    assert errors[0][0].startswith(f"POLYNYA-{code}")
    assert errors[0][1].startswith("automations/nightly.yml:")
    assert message in errors[0][2]


def test_automations_that_start_each_other_are_a_cycle_with_its_path(tmp_path):
    found, errors = loaded(
        tmp_path,
        a=of("{after: [users]}", "{run: [bank]}"),
        b=of("{after: [bank]}", "{run: [users]}"),
        c=of("{after: [users]}"),
    )

    assert [one.settings.name for one in found] == ["c"]
    assert [(code, where) for code, where, _ in errors] == [
        ("POLYNYA-AUT-002", "automations/a.yml:4:1")
    ]
    assert "a → bank → b → users → a" in errors[0][2]


def test_in_a_cluster_a_reload_of_a_task_is_part_of_a_cycle(tmp_path):
    text = of("{after: [users]}", "{reload: users}")
    assert loaded(tmp_path / "laptop", a=text)[1] == []

    cluster = tmp_path / "cluster"
    write_project(cluster, project=f"{PROJECT}cluster: main\n", users=USERS, bank=BANK)
    (cluster / "automations").mkdir()
    (cluster / "automations" / "a.yml").write_text(f"{HEAD}name: a\n{text}")
    _, errors = load_automations(load_project(cluster), {})

    assert [error.code for error in errors] == ["POLYNYA-AUT-002"]


def test_a_name_of_two_automations_is_an_error(tmp_path):
    write_project(tmp_path, users=USERS)
    (tmp_path / "automations").mkdir()
    for file in ("a", "b"):
        text = f"{HEAD}name: nightly\n{of('{file: a}')}"
        (tmp_path / f"automations/{file}.yml").write_text(text)

    found, errors = load_automations(load_project(tmp_path), {})

    assert [one.file for one in found] == ["automations/a.yml"]
    assert [error.where for error in errors] == ["automations/b.yml:3:1"]


def test_automations_go_with_the_archive_of_a_project(tmp_path):
    text = of("{schedule: '@daily', time_zone: Europe/Berlin}")
    found, _ = loaded(tmp_path / "here", nightly=text)

    export(tmp_path / "here", tmp_path / "shop.tar.gz", AwsAccess())
    unpack(tmp_path / "shop.tar.gz", tmp_path / "there")

    there, errors = load_automations(load_project(tmp_path / "there"), {})
    assert (there, errors) == (found, [])
