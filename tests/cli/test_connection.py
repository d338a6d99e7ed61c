"""`polynya connection test`: every finding is a line, and nothing is changed."""

from __future__ import annotations

from polynya.capture.source import ConnectionFinding


def test_a_database_that_can_be_captured(said, database):
    text = said("connection", "test", "shop")

    assert "ok    PostgreSQL 15 answers at 127.0.0.1:5432" in text
    assert "shop can be captured" in text
    assert (database.access.user, database.access.password) == ("reader", "hunter2")
    assert database.did == ["close"]


def test_what_is_wrong_comes_with_what_helps(said, database):
    database.findings_ += (
        ConnectionFinding(False, "wal_level is replica", "set it to logical, restart"),
    )

    text = said("connection", "test", "shop", code=1)
    *findings, verdict = said("connection", "test", "shop", "--json", code=1)

    assert "FAIL  wal_level is replica\n      fix: set it to logical, restart" in text
    assert [one["ok"] for one in findings] == [True, False]
    assert (verdict["type"], verdict["ok"]) == ("connection", False)


def test_what_is_well_and_could_be_better_is_a_note(said, database):
    database.findings_ += (ConnectionFinding(True, "1 table has no key: public.log", "exclude it"),)

    assert "note  1 table has no key: public.log\n      fix: exclude it" in said(
        "connection", "test", "shop"
    )


def test_a_name_that_nobody_has(said, database):
    assert "did you mean `shop`" in said("connection", "test", "shopp", code=2)


def test_a_connection_with_an_error_says_it(said, database, project):
    (project / "connections" / "shop.yml").write_text("type: postgresql\n")

    text = said("connection", "test", "shop", code=2)

    assert "connections/shop.yml:1:1" in text
    assert database.access is None


def test_a_secret_that_is_not_there_is_named(said, database, monkeypatch):
    monkeypatch.delenv("SHOP_PW")

    assert "the environment variable SHOP_PW is not set" in said(
        "connection", "test", "shop", code=1
    )


def test_publication_and_slot_are_those_of_the_tasks_and_each_thing_is_said_once(
    said, database, project
):
    (project / "tasks" / "b.yml").write_text(
        "apiVersion: polynya/v1\nkind: landing\nname: b\nconnection: shop\n"
        "tables: {include: [b.*]}\npublication: mine\n"
    )
    asked = []
    database.findings = lambda: asked.append(database.access) or database.findings_

    findings = said("connection", "test", "shop", "--json")

    assert {(one.task, one.publication) for one in asked} == {("b", "mine"), ("shop_db", None)}
    assert len(findings) == 2


def test_of_a_connection_that_is_only_loaded_from_less_is_asked(said, database, project):
    file = project / "tasks" / "shop_db.yml"
    file.write_text(file.read_text() + "update_method: reload\nschedule: '@daily'\n")

    said("connection", "test", "shop")

    assert database.access.follows is False
