"""Records that a real broker loses or deletes, and looks at topics: for `test_real_broker.py`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from polynya.observe.streams import StreamLost
from tests.lab.commands import InProcessDriver
from tests.oracle.packs.driver import CommandFailed
from tests.projects import write_project
from tests.streams.kafka.broker import Broker, kafka_broker
from tests.streams.kafka.real_broker import Zone, numbered

pytestmark = pytest.mark.slow

LANDING = """\
apiVersion: polynya/v1
kind: streaming_landing
name: in
source: {{kafka: {{bootstrap_servers: "{address}", topics: [{topic}]}}}}
"""
FACTS = """\
apiVersion: polynya/v1
kind: streaming_transform
name: facts
from: in
mode: merge
schema: lossy
columns: [{name: n, expression: n, type: bigint, key: 1}]
"""
ROWS = "SELECT n FROM lossy.facts ORDER BY n"


@pytest.fixture(scope="module")
def broker(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with kafka_broker(tmp_path_factory.mktemp("kafka"), spark) as started:
        yield started


def test_a_topic_of_which_all_records_were_deleted_is_counted_and_read_on(
    spark: Any, tmp_path: Path, broker: Broker
) -> None:
    """By DeleteRecords: what was read is no loss, what was not is one in each partition."""
    zone = Zone(spark, tmp_path, broker)
    broker.create("emptied", partitions=2)
    for partition in range(2):
        broker.send("emptied", numbered(5, start=10 * partition), partition=partition)
    zone.run("emptied")
    broker.send("emptied", numbered(4, start=100))
    for partition, before in ((0, 9), (1, 5)):
        broker.expire("emptied", before=before, partition=partition)

    assert zone.run("emptied").failures == {}
    broker.send("emptied", numbered(2, start=200))
    assert zone.run("emptied").failures == {}

    assert sorted(zone.values("emptied")) == sorted(
        [*numbered(5), *numbered(5, start=10), *numbered(2, start=200)]
    )
    found = [(one.at, one.begin, one.end, one.reason) for one in zone.told(StreamLost)]
    assert found == [("emptied/0", "5", "9", "retention")]
    assert zone.footers("emptied")[-1].totals.lost == 4


def test_a_partition_that_lost_its_newest_records_goes_on_at_its_end(
    spark: Any, tmp_path: Path
) -> None:
    """As an unclean election does it: what landed stays and is not landed again, and it is told."""
    (tmp_path / "kafka").mkdir()
    with kafka_broker(tmp_path / "kafka", spark) as own:
        zone = Zone(spark, tmp_path / "landing", own)
        own.create("cut")
        for start in range(0, 40, 10):
            own.send("cut", numbered(10, start=start))
        zone.run("cut")
        own.kill()
        shorten(tmp_path / "kafka/data/cut-0")
        own.start()

        assert zone.run("cut").failures == {}
        own.send("cut", numbered(5, start=100))
        assert zone.run("cut").failures == {}

        assert zone.values("cut") == [*numbered(40), *numbered(5, start=100)]
        [lost] = zone.told(StreamLost)
        assert (lost.at, lost.reason, lost.begin) == ("cut/0", "truncated", "40")
        assert 0 < int(lost.end) < 40


def shorten(partition: Path) -> None:
    """Take the last part of the log of a partition away, as if it was never written."""
    log = partition / f"{0:020d}.log"
    with log.open("r+b") as file:
        file.truncate(log.stat().st_size * 6 // 10)


def test_a_reload_from_a_topic_that_lost_its_begin_is_refused_unless_nothing_is_deleted(
    spark: Any, tmp_path: Path, broker: Broker
) -> None:
    broker.create("young")
    landing = LANDING.format(address=broker.address, topic="young") + "direct: true\n"
    project = write_project(tmp_path, landing=landing, facts=FACTS)
    driver = InProcessDriver(spark)
    broker.send("young", numbered(6))
    driver.run_project(project, "always")
    broker.expire("young", before=4)
    broker.send("young", numbered(2, start=50))

    refused = driver.call("reload", "facts", "--project", str(project))
    kept = driver.query(project, [ROWS])
    done = driver.call(
        "reload", "facts", "--project", str(project),
        "--mode", "compare_and_apply_without_deleted_rows",
    )  # fmt: skip
    driver.run_project(project, "always")

    assert refused.code != 0
    assert "POLYNYA-STR-066" in refused.errors + refused.output
    assert [row["n"] for row in kept[0]] == list(range(6))
    assert done.code == 0, done.errors
    [rows] = driver.query(project, [ROWS])
    assert [row["n"] for row in rows] == [*range(6), 50, 51]


def test_a_landed_table_is_reloaded_from_its_topic_and_nothing_comes_twice(
    spark: Any, tmp_path: Path, broker: Broker
) -> None:
    broker.create("landed_once", partitions=2)
    landing = LANDING.format(address=broker.address, topic="landed_once")
    project = write_project(tmp_path, landing=f"{landing}batch: {{max_records: 3}}\n", facts=FACTS)
    driver = InProcessDriver(spark)
    broker.send("landed_once", [*numbered(6), b"no json"], partition=0)
    broker.send("landed_once", numbered(4, start=10), partition=1)
    driver.run_project(project, "always")
    landed = sorted((project / "landing").rglob("*.parquet"))
    for file in landed[:-1]:
        file.unlink()
    broker.send("landed_once", numbered(2, start=50), partition=1)

    refused = driver.call("reload", "facts", "--project", str(project))
    done = driver.call("reload", "facts", "--from", "source", "--json", "--project", str(project))
    reloaded = driver.query(project, [ROWS])
    driver.run_project(project, "always")
    everything = driver.query(project, [ROWS])
    broker.expire("landed_once", before=2)
    gone = driver.call("reload", "facts", "--from", "source", "--project", str(project))

    assert len(landed) > 2
    assert "POLYNYA-LAKE-014" in refused.errors + refused.output
    assert done.code == 0, done.errors
    figures = json.loads(done.output.splitlines()[-1])
    assert (figures["rows_loaded"], figures["rows_written"]) == (10, 0)
    assert [row["n"] for row in reloaded[0]] == [*range(6), *range(10, 14)]
    assert [row["n"] for row in everything[0]] == [*range(6), *range(10, 14), 50, 51]
    assert "POLYNYA-STR-066" in gone.errors + gone.output


def test_a_preview_of_a_topic_shows_what_has_not_landed_and_writes_nothing(
    spark: Any, tmp_path: Path, broker: Broker
) -> None:
    broker.create("looked_at", partitions=2)
    project = write_project(
        tmp_path, landing=LANDING.format(address=broker.address, topic="looked_at")
    )
    driver = InProcessDriver(spark)
    broker.send("looked_at", [b'{"user": {"id": 1}, "n": 1}', b"no json"])

    first = seen(driver, project)
    assert not (project / "landing").exists() or not any((project / "landing").rglob("*.parquet"))
    driver.run_project(project)
    landed = sorted((project / "landing").rglob("*"))
    broker.send("looked_at", [b'{"user": {"id": 2}, "city": "Ulm"}'], partition=1)
    second = seen(driver, project)

    assert first["messages"] == {
        "source": "kafka", "content": "json", "streams": ["looked_at"], "count": 2, "behind": 0,
        "unit": "records",
    }  # fmt: skip
    assert types(first) == {"user": "struct<id:bigint>", "n": "bigint"}
    assert [row["values"]["user"] for row in first["rows"]] == [{"id": 1}]
    assert first["quarantined"] == {"bad_json": 1}
    assert (second["messages"]["count"], second["quarantined"]) == (1, {})
    assert types(second) == {"user": "struct<id:bigint>", "city": "string"}
    assert sorted((project / "landing").rglob("*")) == landed


def seen(driver: InProcessDriver, project: Path) -> dict[str, Any]:
    """What `preview` says of the only landed table."""
    printed = driver.call("preview", "in", "--json", "--project", str(project))
    if printed.code:
        raise CommandFailed(printed.output + printed.errors, {})
    lines = [json.loads(line) for line in printed.output.splitlines() if line]
    [found] = [line for line in lines if line.get("dataset") == "in/looked_at"]
    return found


def types(preview: dict[str, Any]) -> dict[str, str]:
    """Columns of the messages, without those of headers."""
    columns = {one["name"]: one["type"] for one in preview["columns"]}
    return {name: kind for name, kind in columns.items() if not name.startswith("hdr__")}
