"""A project with a capture, and a database that only says what the commands ask for."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import pytest

from polynya.capture.source import Access, ConnectionFinding, Lag, SourceColumn, SourceTable
from polynya.cli.main import main
from polynya.engine.commands import captures
from polynya.model.error_catalogue.machine import NO_SUITABLE_JAVA
from tests.projects import USERS, write_project

CAPTURE = """\
apiVersion: polynya/v1
kind: landing
name: shop_db
connection: shop
tables: {include: ["public.*"], exclude: ["public.tmp_%"]}
mask: {public.people: {name: drop, mail: {truncate: 3}}}
"""
CONNECTION = """\
type: postgresql
host: 127.0.0.1
database: shop
user: reader
password: {env: SHOP_PW}
"""


def column(name: str, type_name: str, *, nullable: bool = True) -> SourceColumn:
    return SourceColumn(name, type_name, nullable, {"type": "string"})


PEOPLE = SourceTable(
    "public.people",
    (column("id", "bigint", nullable=False), column("name", "text"), column("mail", "text")),
    ("id",),
    rows_estimate=1200,
    bytes_estimate=3 * 2**20,
)


LAG = Lag(5 * 2**20, 2.0, ("the slot holds back 5 MiB",))


@dataclass
class FakeDatabase:
    """What a database says."""

    findings_: tuple[ConnectionFinding, ...] = (
        ConnectionFinding(True, "PostgreSQL 15 answers at 127.0.0.1:5432"),
    )
    tables_: tuple[SourceTable, ...] = (PEOPLE,)
    lag_: Lag = LAG
    access: Access | None = None
    did: list[str] = field(default_factory=list)

    def findings(self):
        return self.findings_

    def tables(self, include, exclude):
        return self.tables_

    def lag(self, offset):
        return self.lag_

    def drop(self):
        self.did.append("drop")

    def close(self):
        self.did.append("close")


@pytest.fixture
def database(monkeypatch):
    fake = FakeDatabase()

    def opened(access):
        fake.access = access
        return fake

    monkeypatch.setattr(captures, "open_database", opened)
    monkeypatch.setenv("SHOP_PW", "hunter2")
    return fake


@pytest.fixture
def project(tmp_path):
    folder = write_project(tmp_path, shop_db=CAPTURE, users=USERS)
    (folder / "connections").mkdir()
    (folder / "connections" / "shop.yml").write_text(CONNECTION, encoding="utf-8")
    return folder


@pytest.fixture
def said(project, capsys):
    """What a command says to people, or with `--json` to programs; its exit code is checked."""

    def call(*arguments, code=0):
        assert main([*arguments, "--project", str(project)]) == code
        out, err = capsys.readouterr()
        assert "hunter2" not in out + err
        if "--json" in arguments:
            return [json.loads(line) for line in out.splitlines()][1:]
        return out + err

    return call


@pytest.fixture
def without_java(monkeypatch):
    """Plans that wait for no JVM: they do not compare the types of queries."""

    def start(*_):
        raise NO_SUITABLE_JAVA("Java was not found")

    monkeypatch.setattr("polynya.engine.session.start_spark", start)
