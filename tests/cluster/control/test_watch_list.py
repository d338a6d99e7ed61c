"""What may wait for an empty cluster at its sources, as its leader writes it."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest

from polynya.cluster.control.leader_document import LeaderDocumentWriter
from polynya.cluster.control.watch_list import (
    SOURCES,
    WRITE_SECONDS,
    WatchedSource,
    WatchList,
    watch_list,
)
from polynya.cluster.coordination.member_state import MemberState
from polynya.cluster.coordination.store import DocumentStore
from polynya.engine.backlog import Backlog, CaptureFigures, ReadPosition
from polynya.model.config.task_kinds import Task
from polynya.model.loader import load_project
from polynya.testing.fakes import FakeClock, MemoryObjectStore
from polynya_constructs.cluster.source_watch import sources_key
from polynya_constructs.coordination import COORDINATION_PREFIX
from polynya_constructs.functions.wake.sources import parsed
from tests.cluster.fakes import PROJECT, task

NOW = datetime(2026, 11, 28, 12, tzinfo=UTC)
HEAD = "apiVersion: polynya/v1\n"
KAFKA = f"""{HEAD}kind: streaming_landing
name: clicks
source:
  kafka:
    bootstrap_servers: "broker:9096"
    topics: [clicks, "orders-%"]
    properties:
      security.protocol: SASL_SSL
      sasl.mechanism: SCRAM-SHA-512
      sasl.jaas.config: >-
        org.apache.kafka.common.security.scram.ScramLoginModule required
        username="polynya" password="PASSWORD";
"""
KINESIS = f"""{HEAD}kind: streaming_landing
name: orders
source: {{kinesis: {{streams: [orders], region: eu-central-1}}}}
"""
CAPTURE = f"""{HEAD}kind: landing
name: shop_db
connection: shop
tables: {{include: ["public.*"]}}
"""
CONNECTION = """kind: connection
type: postgresql
host: db.example.com
database: shop
user: polynya
password: PASSWORD
"""
REFERENCE = "${secret:kafka/clicks#password}"
NODES_OWN = "its password is not an entry of Secrets Manager"
AT = {"lsn_commit": 100, "lsn": 90}

NIGHTLY = 'reload: {schedule: "30 2 * * *", mode: compare_and_apply_with_deleted_rows}\n'
API = f"""{HEAD}kind: streaming_landing
name: shop_api
source:
  http:
    connection: api
    every: 6h
    resources:
      orders: {{path: orders}}
content: {{type: json}}
"""


def tasks_of(
    folder: Path, *texts: str, connection: str = CONNECTION, authority: str = ""
) -> list[Task]:
    """The tasks of these files of one project."""
    (folder / "tasks").mkdir()
    (folder / "connections").mkdir(exist_ok=True)
    (folder / "polynya.yml").write_text(PROJECT)
    (folder / "connections/shop.yml").write_text(connection.replace("PASSWORD", REFERENCE))
    (folder / "connections/rds.pem").write_text(authority)
    for number, text in enumerate(texts):
        (folder / f"tasks/{number}.yml").write_text(text)
    return list(load_project(folder, environment={"PW": "hunter2"}).works)


def watched(tasks: list[Task], **more: Any) -> WatchedSource:
    (only,) = watch_list(tasks, more.pop("positions", {}), more.pop("captures", {}), NOW).sources
    return only


def read_to(**topics: dict[int, int]) -> ReadPosition:
    """A landing that has read topics up to offsets, ten seconds ago."""
    known = {name: {"id": "x", "partitions": offsets} for name, offsets in topics.items()}
    return ReadPosition({"topics": known}, 10.0)


def test_a_landing_of_kafka_is_watched_from_where_all_its_tables_are_read(tmp_path: Path) -> None:
    tasks = tasks_of(tmp_path, KAFKA.replace("PASSWORD", REFERENCE))
    positions = {"clicks": [read_to(clicks={0: 5}), read_to(orders={0: 7, 1: 8})]}

    source = watched(tasks, positions=positions)

    assert (source.kind, source.unwatched) == ("kafka", None)
    assert source.position == {"clicks": {0: 5}, "orders": {0: 7, 1: 8}}
    assert source.read_at == NOW - timedelta(seconds=10)
    assert source.place["brokers"] == "broker:9096"
    assert source.place["topics"] == ["clicks", "orders-%"]
    assert source.place["mechanism"] == "SCRAM-SHA-512"
    assert (source.place["user"], source.place["password"]) == ("polynya", REFERENCE)


def test_a_landing_that_was_never_read_has_no_position(tmp_path: Path) -> None:
    assert watched(tasks_of(tmp_path, KAFKA.replace("PASSWORD", REFERENCE))).position is None


def test_a_kinesis_stream_is_watched_and_says_whether_it_had_more(tmp_path: Path) -> None:
    position = {"streams": {"orders": {"created": "…", "shards": {}}}, "behind": 1}

    source = watched(
        tasks_of(tmp_path, KINESIS), positions={"orders": [ReadPosition(position, 1.0)]}
    )

    assert (source.kind, source.position, source.more) == ("kinesis", {"orders": {}}, True)


@pytest.mark.parametrize("secret", ["${env:PW}", "${file:/etc/polynya/secrets/pw}"])
def test_a_secret_that_only_nodes_have_is_not_written_and_said_to_be_theirs(
    secret: str, tmp_path: Path
) -> None:
    found = watch_list(tasks_of(tmp_path, KAFKA.replace("PASSWORD", secret)), {}, {}, NOW)

    assert found.sources[0].unwatched == NODES_OWN
    assert "hunter2" not in found.model_dump_json()


def test_a_secret_of_a_connection_that_only_nodes_have_is_not_written(tmp_path: Path) -> None:
    connection = CONNECTION.replace("PASSWORD", "{env: PW}")

    source = watched(tasks_of(tmp_path, CAPTURE, connection=connection))

    assert (source.unwatched, "password" in source.place) == (NODES_OWN, False)


def test_a_capture_is_watched_from_the_place_that_has_landed(tmp_path: Path) -> None:
    figures = CaptureFigures(landed=AT, log_bytes=17)

    source = watched(tasks_of(tmp_path, CAPTURE), captures={"shop_db": figures})

    assert (source.kind, source.unwatched) == ("postgresql", None)
    assert source.position == {**AT, "log_bytes": 17}
    assert source.place == {
        "host": "db.example.com", "port": 5432, "database": "shop", "tls": "verify",
        "user": "polynya", "password": REFERENCE,
        "slot": "polynya_shop_db", "publication": "polynya_shop_db",
    }  # fmt: skip


def test_a_binlog_is_watched_with_the_tables_that_are_captured(tmp_path: Path) -> None:
    connection = CONNECTION.replace("postgresql", "mariadb")
    landed = {"file": "binlog.000001", "pos": 4}

    source = watched(
        tasks_of(tmp_path, CAPTURE, connection=connection),
        captures={"shop_db": CaptureFigures(landed=landed)},
    )

    assert (source.kind, source.place["include"]) == ("mysql", ["public.*"])
    assert source.read_at == NOW


def test_a_capture_that_an_operator_holds_is_not_watched(tmp_path: Path) -> None:
    captures = {"shop_db": CaptureFigures(landed=AT, held=True)}

    assert watch_list(tasks_of(tmp_path, CAPTURE), {}, captures, NOW) == WatchList()


def test_a_database_that_nothing_else_can_look_at_says_so(tmp_path: Path) -> None:
    connection = CONNECTION.replace("postgresql", "sqlserver")

    source = watched(tasks_of(tmp_path, CAPTURE, connection=connection))

    assert (source.kind, source.unwatched) == ("other", "nothing but a node can look at sqlserver")


def test_the_authorities_that_came_with_the_project_go_along(tmp_path: Path) -> None:
    authority = "-----BEGIN CERTIFICATE-----\n"
    connection = f"{CONNECTION}tls: {{ca: connections/rds.pem}}\n"

    source = watched(tasks_of(tmp_path, CAPTURE, connection=connection, authority=authority))

    assert (source.unwatched, source.place["authorities"]) == (None, authority)


def test_authorities_that_are_gone_leave_the_other_sources_watched(tmp_path: Path) -> None:
    connection = f"{CONNECTION}tls: {{ca: connections/rds.pem}}\n"
    tasks = tasks_of(tmp_path, CAPTURE, KINESIS, connection=connection)
    (tmp_path / "connections/rds.pem").unlink()

    found = watch_list(tasks, {}, {}, NOW).sources

    assert {one.task: one.unwatched for one in found} == {
        "shop_db": "its certificates cannot be read", "orders": None,
    }  # fmt: skip


def test_the_next_load_of_a_schedule_is_due_and_its_source_is_not_watched(tmp_path: Path) -> None:
    text = CAPTURE + 'update_method: reload\nschedule: "30 2 * * *"\n'

    found = watch_list(tasks_of(tmp_path, text), {}, {}, NOW)

    assert found.due == {"shop_db": datetime(2026, 11, 29, 2, 30, tzinfo=UTC)}
    assert found.sources == ()


def test_a_load_that_compares_is_due_beside_the_changes_that_are_watched(tmp_path: Path) -> None:
    found = watch_list(tasks_of(tmp_path, CAPTURE + NIGHTLY), {}, {}, NOW)

    assert found.due == {"shop_db": datetime(2026, 11, 29, 2, 30, tzinfo=UTC)}
    assert [one.task for one in found.sources] == ["shop_db"]


def test_a_capture_that_may_not_read_now_is_due_when_it_may(tmp_path: Path) -> None:
    window = "{rrule: FREQ=DAILY;BYHOUR=20;BYMINUTE=0, duration: 2h}"
    tasks = tasks_of(tmp_path, CAPTURE + f"active: {window}\n")

    noon = watch_list(tasks, {}, {}, datetime(2026, 11, 28, 12, 0, tzinfo=UTC))
    evening = watch_list(tasks, {}, {}, datetime(2026, 11, 28, 21, 0, tzinfo=UTC))

    assert noon == WatchList(due={"shop_db": datetime(2026, 11, 28, 20, 0, tzinfo=UTC)})
    assert evening.due == {}
    assert [one.task for one in evening.sources] == ["shop_db"]


def test_a_dataset_of_files_is_due_at_its_next_reload(tmp_path: Path) -> None:
    settings = f'initial_load: "full/*.json", {NIGHTLY.strip()}, path:'

    found = watch_list(
        tasks_of(tmp_path, task("a").replace('path: "*', settings + ' "*')), {}, {}, NOW
    )

    assert found.due == {"a": datetime(2026, 11, 29, 2, 30, tzinfo=UTC)}


def test_an_api_is_due_when_its_pause_ends(tmp_path: Path) -> None:
    (tmp_path / "connections").mkdir()
    api = f"{HEAD}kind: connection\ntype: http\nurl: https://api.example.com\n"
    (tmp_path / "connections/api.yml").write_text(api)

    found = watch_list(tasks_of(tmp_path, API), {}, {}, NOW)

    assert found == WatchList(due={"shop_api": NOW + timedelta(hours=6)})


def test_a_task_that_reads_files_is_woken_by_their_bucket_alone(tmp_path: Path) -> None:
    assert watch_list(tasks_of(tmp_path, task("a")), {}, {}, NOW) == WatchList()


def test_a_stream_is_read_up_to_where_it_had_nothing_left() -> None:
    backlog = Backlog()
    backlog.read_to("clicks/clicks", {"topics": {}}, now=100.0)
    backlog.read_to("clicks/clicks", {"topics": {"clicks": {}}}, now=130.0)

    assert backlog.positions(now=140.0) == [ReadPosition({"topics": {"clicks": {}}}, 10.0)]


def test_a_leader_writes_at_most_once_a_minute_what_the_function_reads(tmp_path: Path) -> None:
    store, clock = MemoryObjectStore(), FakeClock()
    writer = LeaderDocumentWriter(
        DocumentStore(store, "shop", Random(1)),
        clock,
        WatchList,
        SOURCES,
        every_seconds=WRITE_SECONDS,
    )
    tasks = tasks_of(
        tmp_path,
        KAFKA.replace("PASSWORD", REFERENCE),
        CAPTURE + 'update_method: reload\nschedule: "30 2 * * *"\n',
    )

    written = []
    for offset in range(13):
        positions = {"clicks": [read_to(clicks={0: offset})]}
        writer.know(watch_list(tasks, positions, {}, NOW))
        writer(MemberState("n1.aa", leading=True))
        (path,) = (info.path for info in store.list())
        known = parsed(store.get(path))
        written.append(known["sources"][0]["position"]["clicks"]["0"])
        clock.sleep(10.0)

    assert written == [0] * 6 + [6] * 6 + [12]
    assert path == sources_key("shop").removeprefix(COORDINATION_PREFIX)
    assert known["due"] == {"shop_db": datetime(2026, 11, 29, 2, 30, tzinfo=UTC)}
    assert json.loads(store.get(path))["v"] == 1


def test_moments_of_automations_wake_the_cluster_as_those_of_tasks() -> None:
    more = {"automation checks": NOW + timedelta(hours=1)}

    assert watch_list((), {}, {}, NOW, more).due == more
