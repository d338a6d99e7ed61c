"""The commands of mirrors, over a target in memory and tables that exist in name only."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from polynya.cli.main import main
from polynya.engine.backlog import Backlog, MirrorFigures
from polynya.engine.commands.plan_project import ProjectPlan
from polynya.engine.tasks.mirror import MirrorWork, mirror_unit
from polynya.engine.unit import TimeSlice
from polynya.mirror.rounds import MirrorSource
from polynya.model.errors import DependencyError
from polynya.model.loader import load_project
from polynya.testing.fakes import FakeClock
from tests.mirror.faked import STARTED, FakeTarget, commit, shown, storage
from tests.mirror.test_settings import ACCOUNT, MIRROR, REDSHIFT, WORKGROUP
from tests.mirror.warehouses import WarehouseSchema, WarehouseSession
from tests.projects import USERS, write_project

pytestmark = pytest.mark.usefixtures("translated_once")
NOTHING = ProjectPlan((), (), ())


@pytest.fixture
def project(tmp_path):
    """A project with a storage task and a mirror of it."""
    write_project(tmp_path, users=USERS, sales=MIRROR)
    (tmp_path / "connections").mkdir()
    (tmp_path / "connections" / "sf.yml").write_text(ACCOUNT)
    return tmp_path


@pytest.fixture
def target(monkeypatch):
    """The target in memory, whose mirrors find one table here."""
    target = FakeTarget()
    users = MirrorSource(shown(storage("users"), "users"), commit(1))

    def sources(work):
        work._is_complete = True
        return [users]

    monkeypatch.setattr(MirrorWork, "sources", sources)
    monkeypatch.setattr(MirrorWork, "_session", lambda _: target.connect())
    return target


def test_sql_writes_the_statements_of_the_next_round_and_changes_nothing(
    project, target, tmp_path, capsys
):
    script = tmp_path / "mirror.sql"
    assert main(["mirror", "sql", "sales", "-p", str(project)]) == 3
    printed = capsys.readouterr().out
    assert "create USERS_INTERNAL" in printed
    assert 'CREATE VIEW "LAKE"."SHOP"."USERS__HISTORY"' in printed

    assert main(["mirror", "sql", "sales", "--dry-run", str(script), "-p", str(project)]) == 3
    assert "4 statements in" in capsys.readouterr().out
    assert script.read_text().count("\n-- shop.users: create USERS") == 3
    assert target.statements == []


def test_a_refused_dataset_fails_sql_and_a_wrong_name_is_refused(project, target, capsys):
    target.objects["USERS"] = ("TABLE", "of finance")
    assert main(["mirror", "sql", "sales", "-p", str(project)]) == 1
    assert "POLYNYA-MIR-004" in "".join(capsys.readouterr())
    assert main(["mirror", "sql", "sale", "-p", str(project)]) != 0
    assert "sales" in "".join(capsys.readouterr())


def test_a_round_tells_the_agent_how_far_the_target_is(project, target):
    loaded = load_project(project)
    clock, backlog = FakeClock(STARTED), Backlog()
    (project / "warehouse").mkdir()
    work = MirrorWork(loaded.mirrors[0], loaded.target, clock=clock, sink=lambda _: None)
    context: Any = SimpleNamespace(clock=clock, backlog=backlog)
    unit = mirror_unit(work, context)

    target.down = True
    with pytest.raises(DependencyError):
        unit.step(TimeSlice(at_once=True))

    (users,) = backlog.mirrors(clock.monotonic()).values()
    assert (users.failures, users.stale, users.code) == (1, True, "POLYNYA-MIR-002")
    assert "no route to host" in (users.error or "")
    clock.sleep(40)
    with pytest.raises(DependencyError):
        unit.step(TimeSlice(at_once=True))
    assert backlog.mirrors(clock.monotonic())["shop.users"].behind_seconds == 40

    target.down = False
    clock.sleep(3600)
    unit.step(TimeSlice(at_once=True))
    assert backlog.mirrors(clock.monotonic()) == {"shop.users": MirrorFigures()}


def test_plan_shows_the_sql_of_a_mirror_without_logging_in(project, target, monkeypatch, capsys):
    target.down = True
    assert main(["plan", "-p", str(project)]) == 3
    assert "mirror sales: its SQL is known when a run has made the tables" in (
        capsys.readouterr().out
    )

    monkeypatch.setattr("polynya.lake.spark.catalog.has_tables", lambda _: True)
    monkeypatch.setattr("polynya.cli.plan.make_plan", lambda context: (context.load(), NOTHING))
    assert main(["plan", "-p", str(project)]) == 0
    printed = capsys.readouterr().out
    assert "`polynya mirror sql sales` shows the difference" in printed
    assert 'CREATE VIEW "LAKE"."SHOP"."USERS__HISTORY"' in printed

    assert main(["plan", "-p", str(project), "--json"]) == 0
    (said,) = [
        one for one in map(json.loads, capsys.readouterr().out.splitlines())
        if one["type"] == "plan.mirror"
    ]  # fmt: skip
    assert [one["action"] for one in said["statements"]] == ["create"] * 4
    assert "polynya mirror sql sales" in said["needs"]
    assert target.sessions == 0


@pytest.mark.usefixtures("target")
def test_status_shows_what_is_here_and_not_there(project, capsys):
    assert main(["mirror", "status", "--json", "-p", str(project)]) == 3
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    (row,) = next(line for line in lines if line["type"] == "mirror.status")["tables"]
    assert (row["mirror"], row["dataset"], row["stale"]) == ("sales", "shop.users", True)
    assert (row["snapshot_here"], row["snapshot_there"]) == (1, None)


def test_setup_prints_sql_and_terraform(project, capsys):
    assert main(["mirror", "setup", "sales", "-p", str(project)]) == 0
    assert "CREATE EXTERNAL VOLUME" in capsys.readouterr().out
    assert main(["mirror", "setup", "sales", "--terraform", "-p", str(project)]) == 0
    assert 'resource "snowflake_execute"' in capsys.readouterr().out


def test_setup_refuses_an_option_that_means_nothing_to_the_target(project, capsys):
    assert main(["mirror", "setup", "sales", "--user", "loader", "-p", str(project)]) != 0
    assert "--user means nothing to snowflake" in "".join(capsys.readouterr())


def test_status_and_sql_of_a_mirror_in_redshift(project, monkeypatch, capsys):
    (project / "tasks" / "sales.yml").write_text(REDSHIFT)
    (project / "connections" / "sf.yml").write_text(WORKGROUP)
    schema = WarehouseSchema("redshift")
    users = MirrorSource(shown(storage("users"), "users"), commit(1))
    monkeypatch.setattr(MirrorWork, "sources", lambda _: [users])
    monkeypatch.setattr(MirrorWork, "_session", lambda _: WarehouseSession(schema))
    assert main(["mirror", "sql", "sales", "-p", str(project)]) == 3
    assert 'RENAME TO "users"' in capsys.readouterr().out
    assert main(["mirror", "status", "-p", str(project)]) == 0, "it is never behind"
    assert main(["mirror", "setup", "sales", "-p", str(project)]) == 0
    assert "CREATE EXTERNAL SCHEMA" in capsys.readouterr().out


def test_a_secret_that_cannot_be_read_is_an_error_of_the_mirror(project, monkeypatch):
    pytest.importorskip("snowflake.connector")
    users = MirrorSource(shown(storage("users"), "users"), commit(1))
    monkeypatch.setattr(MirrorWork, "sources", lambda _: [users])
    loaded = load_project(project)
    (task,) = loaded.mirrors
    told = []
    work = MirrorWork(task, loaded.target, clock=FakeClock(STARTED), sink=told.append)
    with pytest.raises(DependencyError) as caught:
        work.step(TimeSlice(at_once=True))
    assert caught.value.code == "POLYNYA-MIR-007"
    assert "snowflake.pem" in caught.value.why


def test_a_run_of_a_mirror_alone_makes_its_objects_without_a_jvm(project, target, capsys):
    assert main(["run", "sales", "--once", "-p", str(project)]) == 0
    assert "1 mirrored in" in "".join(capsys.readouterr())
    assert set(target.objects) == {"USERS_INTERNAL", "USERS", "USERS__HISTORY", "USERS__CHANGES"}
    assert main(["mirror", "status", "-p", str(project)]) == 0
    assert main(["mirror", "sql", "sales", "-p", str(project)]) == 0

    target.down = True
    assert main(["run", "sales", "--once", "-p", str(project)]) == 0, "nothing was due"
