"""What becomes tables out of a real broker: run by `test_real_broker.py`."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from polynya.lake.read import inspect
from polynya.lake.spark.catalog import has_tables, python_catalog
from polynya.model.loader import LoadedProject, load_project
from tests.e2e.test_capture import mismatches, shuffled_steps
from tests.lab.commands import InProcessDriver
from tests.oracle.packs.conformance import Group, groups
from tests.oracle.packs.driver import command, environment
from tests.oracle.packs.pack import Landing, alternating
from tests.oracle.packs.streams import StreamPack, captured, stream_pack, streamable
from tests.projects import write_project
from tests.streams.kafka.broker import Broker, kafka_broker

pytestmark = pytest.mark.slow

LANDING = """\
apiVersion: polynya/v1
kind: streaming_landing
name: in
source: {{kafka: {{bootstrap_servers: "{address}", topics: [{topics}]}}}}
interval: 1s
batch: {{max_records: 200}}
"""
FACTS = """\
apiVersion: polynya/v1
kind: streaming_transform
name: facts
from: in
mode: append_only
schema: direct
"""
COUNTED = "SELECT count(*) AS rows, count(DISTINCT n) AS numbers, max(n) AS last FROM direct.facts"


@pytest.fixture(scope="module")
def broker(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with kafka_broker(tmp_path_factory.mktemp("kafka"), spark) as started:
        yield started


def batches(project: LoadedProject) -> int:
    """How many batches the table has read, as its state says."""
    if not has_tables(project.target):
        return 0
    [dataset] = project.datasets()
    table = inspect.load(python_catalog(project.target), dataset)
    stream = None if table is None else inspect.states(table)[0].position.stream
    return 0 if stream is None else stream.number


def test_a_process_that_is_killed_at_any_moment_loses_and_doubles_nothing(
    spark: Any, broker: Broker, tmp_path: Path
) -> None:
    broker.create("direct", partitions=2)
    landing = LANDING.format(address=broker.address, topics="direct") + "direct: true\n"
    folder = write_project(tmp_path, landing=landing, facts=FACTS)
    project = load_project(folder)
    for round_ in range(2):
        values = [b'{"n": %d}' % number for number in range(round_ * 2000, (round_ + 1) * 2000)]
        broker.send("direct", [*values[:1000], b"no json"], partition=0)
        broker.send("direct", values[1000:], partition=1)
        before = batches(project)
        process = subprocess.Popen(
            [*command(), "run", "--project", str(folder)],
            env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True,
        )  # fmt: skip
        deadline = time.monotonic() + 300
        # Some of the batches that it reads are enough, and then at no moment in particular.
        while batches(project) < before + 2 and time.monotonic() < deadline:
            time.sleep(0.1)
        time.sleep(0.17 * round_)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        assert batches(project) >= before + 2

    driver = InProcessDriver(spark)
    driver.run_project(folder, "always")
    [[row]] = driver.query(folder, [COUNTED])
    bad = driver.call("quarantine", "list", "--json", "--project", str(folder)).output

    assert row == {"rows": 4000, "numbers": 4000, "last": 3999}
    assert bad.count('"kafka:direct/0/') == 2


@pytest.mark.parametrize(("chosen", "least"), [(streamable, 50), (captured, 1)])
def test_conformance_cases_through_a_broker_have_the_results_of_files(
    spark: Any,
    broker: Broker,
    tmp_path: Path,
    chosen: Callable[[Sequence[Group]], list[Group]],
    least: int,
) -> None:
    several = chosen(groups("given", alone=False))
    driver = InProcessDriver(spark)

    send_and_run(broker, stream_pack(tmp_path, several), driver)

    results = driver.query(tmp_path, [group.statement() for group in several])
    found = [
        text
        for group, rows in zip(several, results, strict=True)
        for text in group.mismatches(rows)
    ]
    assert not found, "\n".join(found)
    assert sum(len(group.cases) for group in several) >= least


def test_a_real_capture_of_postgresql_through_a_broker_is_the_fold_of_its_events(
    spark: Any, broker: Broker, tmp_path: Path
) -> None:
    """Keys that change, values that were not sent, duplicates; in random order, in partitions."""
    steps = shuffled_steps()
    settings = {"history": True}
    landings = [
        Landing("w", "accounts", steps, settings, format="debezium"),
        Landing("w", "lines", [[], [], []], settings, format="debezium"),
    ]
    driver = InProcessDriver(spark)

    send_and_run(broker, StreamPack(tmp_path, landings), driver)

    found = mismatches(driver, tmp_path, steps)
    assert not found, "\n".join(found)[:8000]


def send_and_run(broker: Broker, pack: StreamPack, driver: InProcessDriver) -> None:
    """Send a step, land and copy it, and so on until everything is in tables."""
    names = ", ".join(pack.topics)
    pack.write_project(landing=LANDING.format(address=broker.address, topics=names))
    for name in pack.topics:
        broker.create(name, partitions=3)
    for step in range(pack.steps):
        with broker.producer() as producer:
            for one in chain(*pack.messages(step).values()):
                partition = 0 if one.key is None else None
                record = broker.record(
                    one.topic, one.value, partition, key=one.key, headers=dict(one.headers)
                )
                producer.send(record)
        driver.run_project(pack.directory, alternating(step))
    driver.run_project(pack.directory, "always")
