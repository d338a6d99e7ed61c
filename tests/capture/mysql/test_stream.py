"""A capture of MariaDB or MySQL that is killed: load and stream agree, and nothing is lost.

Its user has the rights that the page gives, and no other; the server proves itself by a certificate
of an authority of its own, to the load and to Debezium; a table has masks.
One server and two captures for all tests here: starting them is what takes long.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from examples.servers.mariadb import Server
from tests.capture.mysql.capturing import (
    LIMITED,
    Process,
    fill,
    finish,
    folded,
    lines,
    rights,
    settings_of,
    source_rows,
)
from tests.capture.mysql.cases import CASES, ROWS, cases_of, create, insert, insert_nulls
from tests.mariadb import new_server
from tests.streams.kafka.certificates import Authority

pytestmark = pytest.mark.also_mysql
UTC = "SET sql_mode = '', time_zone = '+00:00'"
#: The instants that are written are others when the session's clock is.
ELSEWHERE = "SET sql_mode = '', time_zone = '-03:30'"


PERSON = "'078-05-1120', 'ann@example.org', '+49 170 555 0199', 'a secret note'"
HIDDEN = ("078-05-1120", "ann@example.org", "170 555 0199", "a secret note")
MASKS = {
    "shop.people": {
        "ssn": "drop", "mail": {"hash": {"key": "a-key"}}, "phone": {"truncate": 3},
        "note": {"replace": "hidden"},
    }
}  # fmt: skip


@dataclass(frozen=True)
class Captured:
    """What has landed, and what the source has."""

    kind: str
    tables: dict[str, dict[str, dict[str, Any]]]
    source: dict[str, dict[str, dict[str, Any]]]
    streamed: list[dict[str, Any]]
    landed: str

    def kinds(self) -> dict[int, dict[str, Any]]:
        """The rows of all types: 1 and 2 were loaded, 3 to 5 streamed."""
        return {row["id"]: row for row in self.tables["shop.kinds"].values()}


@pytest.fixture(scope="module")
def captured(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Captured]:
    """Killed within its load; then what was changed meanwhile comes too, and a new table."""
    folder = tmp_path_factory.mktemp("capture")
    authority = Authority.of(folder, "ours")
    whole = str(authority.signs("server", host="DNS:localhost", is_rsa=True))
    settings = {"ssl_cert": whole, "ssl_key": whole}
    server = new_server(folder / "server", settings, kind=request.param)
    trust = {"host": "localhost", "tls": "verify", "ca": str(authority.certificate)}
    landing, access = folder / "landing", LIMITED | trust
    try:
        server.start()
        server.execute("CREATE DATABASE shop", *rights(server))
        server.execute("ALTER USER polynya@'%' REQUIRE SSL")
        server.execute(
            UTC, create(server.kind), insert(server.kind, 1), insert_nulls(server.kind, 2),
            "CREATE TABLE people (id INT PRIMARY KEY, ssn CHAR(11) NOT NULL, mail VARCHAR(50),"
            " phone VARCHAR(20), note TEXT)",
            f"INSERT INTO people VALUES (1, {PERSON}), (2, {PERSON})",
            database="shop",
        )  # fmt: skip
        fill(server)
        killed_at_batch(server, landing, 6, access)
        change(server)
        finish(server, landing, access=access, masks=MASKS)
        names = ("shop.orders", "shop.notes", "shop.later")
        streamed = [one["value"] for one in lines(landing) if one["value"].get("op") != "r"]
        source = {name: source_rows(server, name) for name in names}
        landed = "".join(map(json.dumps, lines(landing)))
        yield Captured(server.kind, folded(landing), source, streamed, landed)
    finally:
        server.close()


def killed_at_batch(
    server: Server, landing: Path, number: int, access: Mapping[str, object]
) -> None:
    settings = settings_of(server, landing, chunk_rows=300, access=access, masks=MASKS)
    process = Process(settings)
    process.wait_until_landed(number)
    process.kill()


def change(server: Server) -> None:
    server.execute(
        UTC, insert(server.kind, 3), insert_nulls(server.kind, 4),
        ELSEWHERE, insert(server.kind, 5),
        "UPDATE orders SET n = -n WHERE id % 2 = 0", "DELETE FROM orders WHERE id < 50",
        "UPDATE orders SET id = id + 100000 WHERE id BETWEEN 100 AND 200",
        "DELETE FROM notes WHERE a = 7",
        "CREATE TABLE later (id INT PRIMARY KEY, d DECIMAL(5,2))",
        "INSERT INTO later VALUES (1, 1.25)",
        f"INSERT INTO people VALUES (3, {PERSON})", "UPDATE people SET id = 4 WHERE id = 1",
        "UPDATE people SET note = 'a secret note, too' WHERE id = 2",
        database="shop",
    )  # fmt: skip


@pytest.mark.parametrize("row", ROWS)
def test_a_type_is_the_same_in_load_and_stream(captured: Captured, row: str) -> None:
    kinds = captured.kinds()

    for number, case in cases_of(captured.kind).items():
        if case in ROWS[row]:
            name = f"c{number}"
            assert kinds[3][name] == kinds[1][name] == case.value, case
            assert kinds[4][name] == kinds[2][name], case


def test_an_instant_depends_on_the_clock_of_the_session_and_nothing_else_does(
    captured: Captured,
) -> None:
    here, elsewhere = captured.kinds()[3], captured.kinds()[5]

    different = {
        CASES[int(name[1:])].ddl.split("(")[0].split()[0]
        for name in here
        if name != "id" and here[name] != elsewhere[name]
    }

    assert different == {"timestamp"}
    assert "2024-02-29T16:04:56Z" in elsewhere.values()


def test_a_kill_within_the_load_loses_and_doubles_nothing(captured: Captured) -> None:
    for name, rows in captured.source.items():
        assert captured.tables[name] == rows, name
    places = [
        (one["source"]["file"], one["source"]["pos"], one["source"]["row"], one["op"])
        for one in captured.streamed
        if "op" in one
    ]
    assert len(places) == len(set(places)) > 1400


def test_masks_hide_the_same_in_load_and_stream(captured: Captured) -> None:
    digest = hmac.new(b"a-key", b"ann@example.org", hashlib.sha256).hexdigest()
    hidden = {"mail": digest, "phone": "+49", "note": "hidden"}

    people = captured.tables["shop.people"].values()

    assert sorted(people, key=lambda row: row["id"]) == [{"id": n, **hidden} for n in (2, 3, 4)]
    assert {
        one["op"] for one in captured.streamed if one.get("source", {}).get("table") == "people"
    } == {"c", "d", "u"}
    assert [text for text in HIDDEN if text in captured.landed] == []
