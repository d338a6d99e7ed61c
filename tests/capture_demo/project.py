"""The project of the demo: a connection, a capture of it, and the tables that it becomes."""

from __future__ import annotations

import re
from pathlib import Path

from tests.capture_demo.bank import Bank, Server

CAPTURE = "bank_db"
PASSWORD = "POLYNYA_DEMO_PASSWORD"

PROJECT = """\
apiVersion: polynya/v1
kind: project
name: bank
targets:
  local: {landing: landing, warehouse: warehouse}
"""
CONNECTION = """\
apiVersion: polynya/v1
kind: connection
type: TYPE
host: HOST
port: PORT
database: DATABASE
user: USER
password: {env: POLYNYA_DEMO_PASSWORD}
tls: {mode: disable}   # loopback
"""
LANDING = """\
apiVersion: polynya/v1
kind: landing
name: bank_db
connection: bank
tables: {include: ["INCLUDE"]}
load: {parallel: 2, chunk_rows: CHUNK, order: {ACCOUNTS: highest}}
write: {roll: {size: 32MB, age: 1s}}
errors: {environment: {retry: forever, from: 1s, to: 5s}, table: {retry: 10, then: suspend}}
"""
STORAGE = """\
apiVersion: polynya/v1
kind: storage
name: bank
landing: {path: bank_db, format: debezium}
schema: bank
"""


def write(folder: Path, bank: Bank, server: Server, chunk: int) -> None:
    """Write the project. The password is where `PASSWORD` names a variable of the environment."""
    for name in ("landing", "tasks", "connections"):
        (folder / name).mkdir(parents=True)
    connection = _filled(
        CONNECTION, TYPE=bank.kind, HOST="127.0.0.1", PORT=server.port, DATABASE=bank.database,
        USER=server.user,
    )  # fmt: skip
    accounts = bank.include.replace("%", "accounts")
    landing = _filled(LANDING, INCLUDE=bank.include, CHUNK=chunk, ACCOUNTS=accounts)
    (folder / "polynya.yml").write_text(PROJECT, "utf-8")
    (folder / "connections" / "bank.yml").write_text(connection, "utf-8")
    (folder / "tasks" / "bank_db.yml").write_text(landing, "utf-8")
    (folder / "tasks" / "bank.yml").write_text(STORAGE, "utf-8")


def _filled(template: str, **given: object) -> str:
    for word, value in given.items():
        template = re.sub(rf"\b{word}\b", str(value), template)
    return template
