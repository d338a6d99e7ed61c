"""The function that looks at Kafka and at databases from the network of the nodes."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from examples.servers.kafka import UnavailableError, broker_with
from examples.servers.kafka_clients import kafka_clients
from examples.servers.mariadb import Server
from examples.servers.postgresql import PostgresServer
from polynya_constructs.cluster.source_watch import _with_clients
from polynya_constructs.functions.wake import probe
from polynya_constructs.functions.wake.decision import Finding
from polynya_constructs.functions.wake.probe import (
    MOST_LOG_BYTES,
    MOST_SECONDS_BEHIND,
    kafka_finding,
    look_at,
    mysql_finding,
    postgresql_finding,
)
from tests.absent import absent
from tests.mariadb import new_server
from tests.postgresql import postgres_server


@pytest.mark.parametrize(
    ("ends", "waits"),
    [
        ({"clicks": {"0": 5, "1": 0}}, False),
        ({"clicks": {"0": 6, "1": 0}}, True),
        # A partition that was added, empty and not.
        ({"clicks": {"0": 5, "1": 0, "2": 0}}, False),
        ({"clicks": {"0": 5, "1": 0, "2": 1}}, True),
        # Another topic of that name, which has fewer records.
        ({"clicks": {"0": 1, "1": 0}}, True),
        # A topic that a wildcard meets, and one that is gone.
        ({"clicks": {"0": 5, "1": 0}, "clicks-de": {"0": 0}}, False),
        ({"clicks": {"0": 5, "1": 0}, "clicks-de": {"0": 1}}, True),
        ({}, False),
    ],
)
def test_topics_wait_that_end_elsewhere_than_they_are_read(
    ends: dict[str, dict[str, int]], waits: bool
) -> None:
    position = {"clicks": {"0": 5, "1": 0}}

    assert kafka_finding("web", ends, position, takes_new=True).waits is waits


def test_topics_that_a_landing_leaves_out_do_not_wait() -> None:
    ends = {"clicks": {"0": 5}, "clicks-de": {"0": 9}}

    assert kafka_finding("web", ends, {"clicks": {"0": 5}}, takes_new=False).waits is False


def test_topics_that_were_never_read_wait_as_soon_as_they_are_there() -> None:
    assert kafka_finding("web", {"clicks": {"0": 0}}, None, takes_new=True).waits is True
    assert kafka_finding("web", {}, None, takes_new=True).waits is False


LANDED = {"lsn_commit": 0x200, "lsn": 0x1F0}


def transaction(number: str, change: str | None, commit: str | None) -> list[Any]:
    return [number, change, commit, 3]


@pytest.mark.parametrize(
    ("rows", "more", "waits"),
    [
        ([], {}, False),
        # The slot may be behind what has landed.
        ([transaction("7", "0/1F0", "0/200")], {}, False),
        ([transaction("8", "0/2F0", "0/300")], {}, True),
        # It began before the one that has landed, and ended after it.
        ([transaction("8", "0/100", "0/300")], {}, True),
        # Nothing in it is captured; a transaction that has not ended is none yet.
        ([transaction("8", None, "0/300")], {}, False),
        ([transaction("8", "0/2F0", None)], {}, False),
        # A batch has landed a part of it, or all.
        ([transaction("8", "0/2F0", "0/300")], {"passed": ["8", 0x280]}, True),
        ([transaction("8", "0/2F0", "0/300")], {"passed": ["8", 0x2F0]}, False),
        ([transaction("9", "0/2F0", "0/300")], {"passed": ["8", 0x2F0]}, True),
        ([transaction("8", "1/0", "1/1")], {}, True),
    ],
)
def test_transactions_wait_that_were_committed_behind_what_has_landed(
    rows: list[list[Any]], more: dict[str, Any], waits: bool
) -> None:
    assert postgresql_finding("shop", rows, {**LANDED, **more}).waits is waits


def test_a_slot_that_is_too_far_behind_to_be_seen_whole_counts_as_waiting() -> None:
    rows = [["7", "0/1F0", "0/200", 20_000]]

    assert postgresql_finding("shop", rows, LANDED).waits is True


BINLOG = {
    "task": "shop",
    "kind": "mysql",
    "place": {"include": ["shop.%"], "exclude": ["shop.secret"]},
    "position": {"file": "log.000001", "pos": 100},
    "age_seconds": 60.0,
}


def event(kind: str, info: str) -> tuple[Any, ...]:
    return ("log.000001", 100, kind, 1, 200, info)


@pytest.mark.parametrize(
    ("events", "waits"),
    [
        ([event("Table_map", "table_id: 18 (shop.orders)")], True),
        ([event("Table_map", "table_id: 18 (shop.secret)")], False),
        ([event("Table_map", "table_id: 18 (other.orders)")], False),
        ([event("Gtid", "BEGIN GTID 0-1-5"), event("Xid", "COMMIT /* xid=17 */")], False),
        ([event("Query", "BEGIN")], False),
        ([event("Query", "use `shop`; TRUNCATE orders")], True),
        ([event("Transaction_payload", "compression='ZSTD'")], True),
    ],
)
def test_events_of_captured_tables_and_statements_wait(
    events: list[tuple[Any, ...]], waits: bool
) -> None:
    probe._scanned.clear()

    found = mysql_finding(BINLOG, [("log.000001", 200)], lambda _: events)

    assert found.waits is waits


def test_a_binlog_that_has_not_moved_is_not_read() -> None:
    def refuse(_: str) -> Sequence[Sequence[Any]]:
        raise AssertionError

    assert mysql_finding(BINLOG, [("log.000001", 100)], refuse).waits is False


def test_a_place_whose_file_is_gone_or_old_waits() -> None:
    """A server deletes old files, so a capture that sleeps has to move on."""
    old = {**BINLOG, "age_seconds": MOST_SECONDS_BEHIND + 1}

    assert mysql_finding(BINLOG, [("log.000002", 100)], lambda _: []).waits is True
    assert mysql_finding(old, [("log.000001", 200)], lambda _: []).waits is True


def test_each_event_is_looked_at_once() -> None:
    probe._scanned.clear()
    asked: list[str] = []

    def rows(statement: str) -> Sequence[Sequence[Any]]:
        asked.append(statement)
        return [event("Xid", "")] if "FROM 100" in statement else []

    for _ in range(2):
        assert mysql_finding(BINLOG, [("log.000001", 300)], rows).waits is False

    assert [one.split("FROM ")[1].split()[0] for one in asked] == ["100", "200"]


def test_a_source_that_is_slow_or_fails_hides_no_other_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def slow(_: Any) -> Finding:
        time.sleep(1)
        raise AssertionError

    def fails(_: Any) -> Finding:
        raise OSError("no route for user with hunter2")

    def answers(_: Any) -> Finding:
        return Finding("c", waits=True, why="a record")

    monkeypatch.setattr(probe, "_LOOKS", {"slow": slow, "fails": fails, "answers": answers})
    place = {"password": "hunter2"}
    sources = [
        {"task": task, "kind": kind, "place": place}
        for task, kind in (("a", "slow"), ("b", "fails"), ("c", "answers"))
    ]

    found = look_at(sources, seconds=0.2)

    assert [(one.task, one.waits) for one in found] == [("a", None), ("b", None), ("c", True)]
    assert found[0].why == "no answer in 0 seconds"
    assert found[1].why == "OSError: no route for user with ***"


def test_the_package_of_the_function_has_all_that_it_imports() -> None:
    folder = str(_with_clients())
    code = (
        f"import sys; sys.path.insert(0, {folder!r}); "
        "import wake.probe, kafka, pg8000.native, pymysql; print(wake.probe.__file__)"
    )

    done = subprocess.run([sys.executable, "-B", "-S", "-c", code], capture_output=True, text=True)

    assert done.stdout.startswith(folder), done.stderr
    files = [path for path in Path(folder).rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 10_000_000
    assert not [path for path in files if path.suffix in {".so", ".pyc"}]


def waits(source: dict[str, Any]) -> tuple[bool | None, str]:
    """What a look finds."""
    (found,) = look_at([source])
    return found.waits, found.why


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    with postgres_server() as server:
        server.run("CREATE TABLE orders (id int PRIMARY KEY)", "CREATE TABLE other (id int)")
        server.run("CREATE PUBLICATION polynya_shop FOR TABLE orders")
        server.run("SELECT pg_create_logical_replication_slot('polynya_shop', 'pgoutput')")
        yield server


def place_of(server: PostgresServer | Server, **more: Any) -> dict[str, Any]:
    return {
        "host": "127.0.0.1", "port": server.port, "user": server.user, "tls": "disable",
        "password": server.password, "database": "postgres", **more,
    }  # fmt: skip


@pytest.mark.slow
def test_a_real_postgresql_waits_when_a_captured_table_changes(postgres: PostgresServer) -> None:
    place = place_of(postgres, slot="polynya_shop", publication="polynya_shop")
    source = {"task": "shop", "kind": "postgresql", "place": place, "position": None}

    def landed() -> None:
        ((end,),) = postgres.run("SELECT pg_current_wal_lsn()::text")
        source["position"] = {"lsn_commit": probe._lsn(end), "log_bytes": 0}

    assert waits(source) == (True, "it is not known up to where it is read")
    landed()
    postgres.run("INSERT INTO other SELECT generate_series(1, 1000)")
    assert waits(source) == (False, "nothing that is captured has changed")
    postgres.run("INSERT INTO orders VALUES (1)")
    assert waits(source) == (True, "1 transactions or more have changes")
    # It is a look: the slot still has the change for its capture.
    assert waits(source)[0] is True
    landed()
    assert waits(source)[0] is False
    postgres.run("TRUNCATE orders")
    assert waits(source)[0] is True


@pytest.mark.slow
def test_a_real_postgresql_that_keeps_too_much_log_waits(postgres: PostgresServer) -> None:
    place = place_of(postgres, slot="polynya_shop", publication="polynya_shop")
    position = {"lsn_commit": 1 << 60, "log_bytes": -MOST_LOG_BYTES - 1}
    source = {"task": "shop", "kind": "postgresql", "place": place, "position": position}

    assert waits(source) == (True, "the server keeps 1.0 GiB more of its log for the slot")


@pytest.mark.slow
def test_a_real_postgresql_without_the_slot_or_the_password_is_not_seen(
    postgres: PostgresServer,
) -> None:
    place = place_of(postgres, slot="gone", publication="polynya_shop")
    source = {"task": "shop", "kind": "postgresql", "place": place, "position": LANDED}

    assert waits(source) == (None, "the slot gone is not there")
    found, why = waits({**source, "place": {**place, "password": "wrong"}})
    assert found is None
    assert "password authentication failed" in why


@pytest.mark.slow
def test_a_real_mariadb_waits_when_a_captured_table_changes(tmp_path: Path) -> None:
    server = new_server(tmp_path)
    try:
        server.start()
        server.execute("CREATE DATABASE shop", "CREATE TABLE shop.orders (id int)")
        server.execute("CREATE DATABASE other", "CREATE TABLE other.rows (id int)")
        place = place_of(server, include=["shop.%"], exclude=[])
        source: dict[str, Any] = {"task": "shop", "kind": "mysql", "place": place}

        def landed() -> None:
            ((file, position, *_),) = server.execute("SHOW MASTER STATUS")
            source.update(position={"file": file, "pos": position}, age_seconds=1.0)

        landed()
        assert waits(source) == (False, "all was read")
        server.execute("INSERT INTO other.rows VALUES (1)", "FLUSH BINARY LOGS")
        assert waits(source) == (False, "nothing that is captured has changed")
        server.execute("INSERT INTO shop.orders VALUES (1)")
        assert waits(source) == (True, "shop.orders has changed")
        landed()
        assert waits(source)[0] is False
        server.execute("ALTER TABLE shop.orders ADD note text")
        assert waits(source) == (True, "there are statements that define tables")
    finally:
        server.close()


@pytest.mark.slow
def test_a_real_broker_waits_when_a_record_comes(tmp_path: Path) -> None:
    try:
        with kafka_clients() as clients, broker_with(tmp_path, clients) as broker:
            broker.create("clicks", 2)
            place = {
                "brokers": broker.address, "topics": ["clicks", "orders-%"], "mechanism": "",
                "protocol": "PLAINTEXT", "checks_host": True, "committed": True, "takes_new": True,
            }  # fmt: skip
            source: dict[str, Any] = {"task": "web", "kind": "kafka", "place": place}
            source["position"] = {"clicks": {"0": 0, "1": 0}}
            assert waits(source) == (False, "all was read")

            broker.send("clicks", [b"a", b"b"], partition=1)
            assert waits(source)[0] is True
            source["position"] = {"clicks": {"0": 0, "1": 2}}
            assert waits(source)[0] is False
            broker.create("orders-de")
            broker.send("orders-de", [b"c"])
            assert waits(source)[0] is True

            broker.kill()
            found, why = waits(source)
            assert found is None
            assert "Unable to bootstrap" in why
    except UnavailableError as error:
        absent(str(error))
