"""What an agent is put together from: its source, and its work folder for itself."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest

from polynya.cli.format import to_json
from polynya.cluster.agent import AgentPace
from polynya.cluster.messages import JarsFetched
from polynya.cluster.start import AgentSettings, fetch_in_background, make_agent
from polynya.cluster.submit.configured import source_of
from polynya.model.config.aws import AwsAccess
from polynya.model.errors import ConflictError, DependencyError
from polynya.store.aws.kinesis import KinesisStream
from polynya.store.clock import Retry
from polynya.store.config_bucket import ConfigBucket, Origin
from polynya.store.object_store import LocalObjectStore
from tests.aws import REGION, aws_server, client
from tests.cluster.fakes import GOOD, snapshot

FILES = snapshot(GOOD).files
OUTAGE = DependencyError("POLYNYA-AWS-003", "no answer")
ORIGIN = Origin("a test", datetime(2026, 1, 1, tzinfo=UTC))


def test_a_folder_is_read_as_it_is_and_is_what_places_are_relative_to(tmp_path: Path) -> None:
    for path, content in FILES.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_bytes(content)

    source, base = source_of(str(tmp_path), tmp_path / "work")

    assert source.read().files == FILES
    assert base == tmp_path


def test_a_folder_that_was_pushed_into_is_read_as_a_bucket_is(tmp_path: Path) -> None:
    ConfigBucket(LocalObjectStore(tmp_path), str(tmp_path)).push(FILES, ORIGIN)

    source, _ = source_of(str(tmp_path), tmp_path / "work")

    assert source.read().files == FILES
    assert source.read().revision


def test_aws_gives_the_configuration_and_takes_the_reports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with aws_server("acme-config") as endpoint:
        monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
        monkeypatch.setenv("AWS_REGION", REGION)
        source, base = source_of("s3://acme-config/shop", tmp_path)
        for path, content in FILES.items():
            s3 = client("s3", endpoint)
            s3.put_object(Bucket="acme-config", Key=f"shop/current/{path}", Body=content)

        read = source.read()

        assert read.files == FILES
        assert sorted(read.edited) == sorted(FILES)
        assert base == tmp_path

        kinesis = client("kinesis", endpoint)
        kinesis.create_stream(StreamName="workload", ShardCount=1)
        access = AwsAccess(region=REGION, endpoint=endpoint)
        KinesisStream("workload", access).put("n1", b"{}")
        shard = kinesis.get_shard_iterator(
            StreamName="workload",
            ShardId=kinesis.list_shards(StreamName="workload")["Shards"][0]["ShardId"],
            ShardIteratorType="TRIM_HORIZON",
        )
        records = kinesis.get_records(ShardIterator=shard["ShardIterator"])["Records"]
        assert [(one["PartitionKey"], one["Data"]) for one in records] == [("n1", b"{}")]
        with pytest.raises(DependencyError, match="no such workload stream"):
            KinesisStream("nowhere", access, retry=Retry(deadline=0.1)).put("n1", b"{}")


def test_a_work_folder_is_for_one_agent(tmp_path: Path) -> None:
    settings = AgentSettings(
        config=str(tmp_path),
        work=tmp_path / "work",
        node_id="n1",
        target=None,
        cluster=None,
        stream=None,
        metrics=None,
        encode=to_json,
        pace=AgentPace(),
    )
    make_agent(settings, lambda _event: None, SimpleQueue())

    with pytest.raises(ConflictError) as caught:
        make_agent(settings, lambda _event: None, SimpleQueue())

    assert caught.value.code == "POLYNYA-AGT-001"


def test_jars_are_fetched_until_they_are_there_and_what_is_wrong_is_said_once() -> None:
    tries = [OUTAGE, OUTAGE, DependencyError("POLYNYA-DEP-002", "no network"), None]
    inbox: SimpleQueue[Any] = SimpleQueue()
    pauses: list[float] = []

    def fetch(_project: object) -> None:
        problem = tries.pop(0)
        if problem is not None:
            raise problem

    project: Any = None
    fetch_in_background(project, inbox, "n1", fetch=fetch, sleep=pauses.append).join(10)

    said = [inbox.get_nowait() for _ in range(inbox.qsize())]
    assert [str(one.event.error) for one in said[:-1]] == ["no answer", "no network"]
    assert said[-1] == JarsFetched()
    assert len(pauses) == 3
