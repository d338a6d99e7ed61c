"""What `polynya doctor` says of captures: the engine, and each database."""

from __future__ import annotations

import pytest

from polynya.capture.source import ConnectionFinding
from polynya.cli.doctor import capture_checks
from polynya.lake.spark import jars
from polynya.model.loader import load_project
from tests.projects import USERS, write_project


@pytest.fixture
def checks(project, database, monkeypatch):
    monkeypatch.setattr(jars, "jar_paths", lambda **_: ["a.jar", "b.jar"])
    return lambda: [*capture_checks(load_project(project, tolerant=True))]


def test_the_engine_and_each_database_have_a_line(checks):
    engine, connection = checks()

    assert (engine.status, engine.detail) == ("ok", "Debezium, 2 jars verified")
    assert (connection.name, connection.status) == ("connection shop", "ok")
    assert connection.detail == "PostgreSQL 15 answers at 127.0.0.1:5432; 1 of 1 right"


def test_what_is_wrong_with_a_database_is_a_failure(checks, database):
    database.findings_ += (
        ConnectionFinding(False, "wal_level is replica", "set it to logical, restart"),
    )

    [_, connection] = checks()

    assert (connection.status, connection.exit_code) == ("fail", 1)
    assert connection.detail == "1 of 2 are wrong; the first: wal_level is replica"
    assert connection.fix == "`polynya connection test shop`"


def test_a_secret_that_is_not_there_is_a_failure(checks, monkeypatch):
    monkeypatch.delenv("SHOP_PW")

    assert "the environment variable SHOP_PW is not set" in checks()[1].detail


def test_a_project_without_captures_is_asked_nothing(tmp_path):
    assert [*capture_checks(load_project(write_project(tmp_path, users=USERS)))] == []
