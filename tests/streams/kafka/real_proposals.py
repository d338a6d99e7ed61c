"""`init --from` with topics of a real broker and a real registry: run by `test_real_broker.py`."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fastavro
import pytest

from tests.lab.commands import InProcessDriver
from tests.registry import RegistryServer, registry_server
from tests.streams.kafka.broker import Broker, kafka_broker

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def broker(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with kafka_broker(tmp_path_factory.mktemp("kafka"), spark) as started:
        yield started


def groups_of(broker: Broker) -> int:
    """How many groups of consumers the broker knows."""
    return int(broker.admin.listConsumerGroups().all().get().size())


def proposed(
    spark: Any, broker: Broker, topic: str, project: Path, more: str = ""
) -> dict[str, Any]:
    """What the command says of a topic, as programs read it."""
    driver = InProcessDriver(spark)
    url = f"kafka://{broker.address}/{topic}{more}"
    made = driver.call("init", str(project), "--from", url, "--json")
    assert made.code == 0, made.errors
    [found] = json.loads(made.output.splitlines()[-1])["topics"]
    return dict(found)


def test_a_topic_is_proposed_and_a_run_makes_the_table_that_was_said(
    spark: Any, broker: Broker, tmp_path: Path
) -> None:
    broker.create("orders", partitions=3)
    records = [{"id": n, "city": "León", "updated_at": f"2026-01-{n:02d}"} for n in range(1, 31)]
    for partition in range(3):
        values = [json.dumps(one).encode() for one in records[partition::3]]
        broker.send("orders", values, partition)
    broker.send("orders", [b'{"id": '], 2)
    groups = groups_of(broker)

    said = proposed(spark, broker, "orders", tmp_path / "p")

    assert (said["partitions"], said["records"], said["copied"]) == (3, 31, 30)
    assert said["quarantined"] == {"bad_json": 1}
    assert groups_of(broker) == groups
    driver = InProcessDriver(spark)
    assert driver.call("run", "--once", "--project", str(tmp_path / "p")).code == 0
    [[counted]] = driver.query(tmp_path / "p", ["SELECT count(*) AS n FROM p.orders"])
    assert counted == {"n": 30}


def test_a_long_topic_is_looked_at_at_both_ends_of_each_partition(
    spark: Any, broker: Broker, tmp_path: Path
) -> None:
    broker.create("long", partitions=2)
    for partition in range(2):
        broker.send("long", [b'{"n": %d}' % n for n in range(1_200)], partition)

    said = proposed(spark, broker, "long", tmp_path / "p")

    assert 1_500 < said["records"] <= 2_000
    assert not said["whole"]


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[RegistryServer]:
    with registry_server(tmp_path) as started:
        yield started


USER = {
    "type": "record",
    "name": "User",
    "fields": [{"name": "id", "type": "long"}, {"name": "city", "type": "string"}],
}


def test_messages_with_schemas_in_a_registry_are_decoded(
    spark: Any, broker: Broker, registry: RegistryServer, tmp_path: Path
) -> None:
    number = registry.register("users-value", USER)
    broker.create("users")
    for n in (1, 2):
        datum = io.BytesIO()
        fastavro.schemaless_writer(datum, USER, {"id": n, "city": "Leon"})
        broker.send("users", [b"\0" + number.to_bytes(4, "big") + datum.getvalue()])

    said = proposed(spark, broker, "users", tmp_path / "p", f"?registry={registry.url}")

    assert (said["content"]["type"], said["copied"]) == ("avro_with_schema", 2)
    driver = InProcessDriver(spark)
    assert driver.call("run", "--once", "--project", str(tmp_path / "p")).code == 0
    found = driver.query(tmp_path / "p", ["SELECT id, city FROM p.users ORDER BY id"])
    assert found == [[{"id": 1, "city": "Leon"}, {"id": 2, "city": "Leon"}]]


def test_a_topic_that_is_not_there_is_refused(spark: Any, broker: Broker, tmp_path: Path) -> None:
    url = f"kafka://{broker.address}/missing"

    made = InProcessDriver(spark).call("init", str(tmp_path / "p"), "--from", url)

    assert made.code != 0
    assert "POLYNYA-STR-006" in made.errors
    assert not (tmp_path / "p").exists()
