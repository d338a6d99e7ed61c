"""The function that looks at the sources of an empty cluster, on a stand-in for AWS."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any
from urllib.request import Request, urlopen

import pytest

from polynya_constructs.functions.wake import sources
from polynya_constructs.functions.wake.probe import kafka_finding
from polynya_constructs.functions.wake.sources import WOKEN_TAG, Secrets, WatchListReader, act
from tests.aws import REGION, aws_server, client

NOW = datetime.now(UTC)
GROUP, BUCKET, KEY = "shop", "configuration", "coordination/shop/sources"
MINUTE = timedelta(minutes=1)
PASSWORD = "correct horse"

KAFKA = {
    "task": "clicks", "kind": "kafka", "unwatched": None,
    "position": {"clicks": {"0": 2}}, "read_at": NOW.isoformat(),
    "place": {"brokers": "b:9092", "topics": ["clicks"], "takes_new": True,
              "user": "polynya", "password": "${secret:kafka/clicks#password}"},
}  # fmt: skip
KINESIS = {
    "task": "orders", "kind": "kinesis", "unwatched": None,
    "position": {"orders": {}}, "read_at": (NOW - 10 * MINUTE).isoformat(), "more": False,
    "place": {"streams": ["orders"], "region": None, "takes_new": True},
}  # fmt: skip


class Network:
    """The function in the network; topics end where a test says."""

    def __init__(self) -> None:
        self.ends: dict[str, dict[str, int]] = {"clicks": {"0": 2}}
        self.asked: list[dict[str, Any]] = []
        self.fails: str | None = None

    def invoke(self, FunctionName: str, Payload: bytes) -> dict[str, Any]:
        assert FunctionName == "probe"
        self.asked = json.loads(Payload)["sources"]
        if self.fails is not None:
            answer: dict[str, Any] = {"errorMessage": self.fails}
            return {
                "FunctionError": "Unhandled",
                "Payload": io.BytesIO(json.dumps(answer).encode()),
            }
        found = [
            kafka_finding(one["task"], self.ends, one["position"], takes_new=True)
            for one in self.asked
        ]
        answer = {"findings": [asdict(each) for each in found]}
        return {"Payload": io.BytesIO(json.dumps(answer).encode())}


class Cluster:
    """An empty group, what its leader wrote, and the function."""

    def __init__(self, client: Any) -> None:
        self.network, self._client = Network(), client
        self._reader = WatchListReader(BUCKET, KEY)
        self.autoscaling = client("autoscaling")
        self.autoscaling.create_launch_configuration(
            LaunchConfigurationName=GROUP, ImageId="ami-12c6146b", InstanceType="m7g.xlarge"
        )
        self.autoscaling.create_auto_scaling_group(
            AutoScalingGroupName=GROUP, LaunchConfigurationName=GROUP, MinSize=0, MaxSize=4,
            AvailabilityZones=[f"{REGION}a"],
        )  # fmt: skip
        place = {"LocationConstraint": REGION}
        client("s3").create_bucket(Bucket=BUCKET, CreateBucketConfiguration=place)
        secret = json.dumps({"password": PASSWORD})
        client("secretsmanager").create_secret(Name="kafka/clicks", SecretString=secret)

    def writes(self, *watched: Mapping[str, Any], **due: datetime) -> None:
        """What the leader wrote before the last node went."""
        moments = {task: moment.isoformat() for task, moment in due.items()}
        document = json.dumps({"v": 1, "sources": watched, "due": moments})
        self._client("s3").put_object(Bucket=BUCKET, Key=KEY, Body=document)

    def counts(self, stream: str, records: int, at: datetime) -> None:
        """What Kinesis publishes of a minute."""
        self._client("cloudwatch").put_metric_data(
            Namespace="AWS/Kinesis",
            MetricData=[
                {
                    "MetricName": "IncomingRecords",
                    "Dimensions": [{"Name": "StreamName", "Value": stream}],
                    "Timestamp": at,
                    "Value": records,
                }
            ],
        )

    def client(self, service: str, _region: str | None = None) -> Any:
        return self.network if service == "lambda" else self._client(service)

    def looks(self, now: datetime = NOW) -> str:
        """One run of the function."""
        return act(self.group, self._reader.read(self.client), self.client, now)  # type: ignore[arg-type]

    @property
    def group(self) -> dict[str, Any]:
        found = self.autoscaling.describe_auto_scaling_groups(AutoScalingGroupNames=[GROUP])
        group: dict[str, Any] = found["AutoScalingGroups"][0]
        return group

    def empties(self) -> None:
        """The last node has gone."""
        self.autoscaling.set_desired_capacity(AutoScalingGroupName=GROUP, DesiredCapacity=0)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with aws_server() as endpoint:
        yield endpoint


@pytest.fixture
def cluster(server: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    monkeypatch.setenv("PROBE_FUNCTION", "probe")
    sources._secrets.cache_clear()
    urlopen(Request(f"{server}/moto-api/reset", method="POST")).close()
    yield Cluster(cache(lambda service: client(service, server)))
    sources._secrets.cache_clear()


def test_records_that_wait_in_kafka_start_one_node(cluster: Cluster) -> None:
    cluster.writes(KAFKA)
    assert cluster.looks() == "none: nothing waits"

    cluster.network.ends = {"clicks": {"0": 5}}
    said = cluster.looks()

    assert said.startswith("woken: clicks: 1 partitions end elsewhere")
    assert cluster.group["DesiredCapacity"] == 1


def test_the_function_in_the_network_gets_the_secret_and_nobody_else_does(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.writes(KAFKA)
    cluster.network.fails = "no route"

    cluster.looks()

    assert cluster.network.asked[0]["place"]["password"] == PASSWORD
    assert PASSWORD not in capsys.readouterr().out


def test_a_schedule_that_is_due_starts_one_node_and_asks_nobody(cluster: Cluster) -> None:
    cluster.writes(KAFKA, shop_db=NOW - MINUTE)

    assert cluster.looks().startswith("woken: shop_db: due since")
    assert cluster.group["DesiredCapacity"] == 1
    assert cluster.network.asked == []


def test_records_that_kinesis_counts_since_it_was_read_start_one_node(cluster: Cluster) -> None:
    cluster.writes(KINESIS)
    cluster.counts("orders", 7, NOW - 30 * MINUTE)
    assert cluster.looks() == "none: nothing waits"

    cluster.counts("orders", 3, NOW - 2 * MINUTE)

    assert cluster.looks() == "woken: orders: 3 records have come to orders"


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"position": None}, "it is not known up to where it is read"),
        ({"more": True}, "it had more when it was read last"),
        ({"position": {}}, "orders is a new stream"),
    ],
)
def test_a_kinesis_stream_that_was_not_read_to_its_end_waits(
    more: dict[str, Any], why: str, cluster: Cluster
) -> None:
    cluster.writes({**KINESIS, **more})

    assert cluster.looks() == f"woken: orders: {why}"


def test_streams_with_a_wildcard_are_asked_for(cluster: Cluster) -> None:
    cluster.client("kinesis").create_stream(StreamName="orders-de", ShardCount=1)
    place = {**KINESIS["place"], "streams": ["orders-%"]}  # type: ignore[dict-item]
    cluster.writes({**KINESIS, "place": place, "position": {}})

    assert cluster.looks() == "woken: orders: orders-de is a new stream"


def test_a_source_that_does_not_answer_is_counted_and_hides_no_other_one(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.network.fails = "Task timed out after 40.00 seconds"
    cluster.writes(KAFKA, KINESIS)
    assert cluster.looks() == "none: nothing waits"
    line = json.loads(capsys.readouterr().out)
    assert (line["SourcesUnseen"], line["Cluster"]) == (1, GROUP)
    assert "Task timed out" in line["unseen"]["clicks"]

    cluster.counts("orders", 1, NOW)

    assert cluster.looks().startswith("woken: orders")


def test_a_source_that_nothing_can_watch_is_counted(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.writes({**KAFKA, "unwatched": "its certificates are files of the nodes"})

    assert cluster.looks() == "none: nothing waits"
    assert "files of the nodes" in json.loads(capsys.readouterr().out)["unseen"]["clicks"]


def test_a_kind_of_source_of_a_later_version_is_counted(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.writes({**KAFKA, "kind": "pulsar"})

    assert cluster.looks() == "none: nothing waits"
    assert "does not know pulsar" in json.loads(capsys.readouterr().out)["unseen"]["clicks"]


def test_a_secret_that_cannot_be_read_is_named_by_its_task(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    place = {**KAFKA["place"], "password": "${secret:gone}"}  # type: ignore[dict-item]
    cluster.writes({**KAFKA, "place": place})

    assert cluster.looks() == "none: nothing waits"
    unseen = json.loads(capsys.readouterr().out)["unseen"]
    assert unseen["clicks"].startswith("a secret cannot be read: ResourceNotFound")


def test_without_a_list_a_node_starts_once_and_again_after_an_hour(cluster: Cluster) -> None:
    """At the first start of a cluster, or when its leader could not write."""
    assert cluster.looks().startswith("woken: all tasks: what to look at is not known")
    cluster.empties()

    assert cluster.looks(NOW + 30 * MINUTE).startswith("kept: a node was there for it")
    assert cluster.looks(NOW + 61 * MINUTE).startswith("woken: all tasks")


@pytest.mark.parametrize("document", [b"", b"[]", b'{"v": 2}', b'{"v": 1, "sources": 5}'])
def test_a_list_that_cannot_be_understood_starts_a_node(document: bytes, cluster: Cluster) -> None:
    cluster.client("s3").put_object(Bucket=BUCKET, Key=KEY, Body=document)

    assert cluster.looks().startswith("woken: all tasks: what to look at is not known")


def test_while_the_list_cannot_be_read_what_was_read_last_holds(cluster: Cluster) -> None:
    cluster.writes(KAFKA)
    cluster.looks()
    cluster.client("s3").delete_object(Bucket=BUCKET, Key=KEY)

    assert cluster.looks() == "none: nothing waits"


def test_what_a_node_left_is_remembered_with_the_group(cluster: Cluster) -> None:
    cluster.writes(KAFKA)
    cluster.network.ends = {"clicks": {"0": 5}}
    cluster.looks()
    cluster.empties()

    assert cluster.looks(NOW + MINUTE).startswith("kept: a node was there for it")
    assert WOKEN_TAG in {tag["Key"] for tag in cluster.group["Tags"]}
    # More of it is another reason.
    cluster.network.ends = {"clicks": {"0": 6}}
    assert cluster.looks(NOW + 2 * MINUTE).startswith("woken: clicks")


@pytest.mark.parametrize(
    ("desired", "maximum", "said"),
    [(1, 4, "none: the group has nodes"), (0, 0, "none: a schedule allows no node now")],
)
def test_a_group_with_nodes_or_without_room_is_left_alone(
    desired: int,
    maximum: int,
    said: str,
    cluster: Cluster,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster.autoscaling.update_auto_scaling_group(
        AutoScalingGroupName=GROUP, MaxSize=maximum, DesiredCapacity=desired
    )
    monkeypatch.setenv("GROUP_NAME", GROUP)
    monkeypatch.setattr(sources, "_clients", lambda: cluster.client)

    assert sources.handle({}, None) == {"action": said}
    assert cluster.network.asked == []


def test_a_secret_is_asked_for_again_after_five_minutes(cluster: Cluster) -> None:
    now = 0.0
    secrets = Secrets(lambda: now)
    place = {"user": "polynya", "password": "${secret:kafka/clicks}", "host": "db"}

    first = secrets.opened(place, cluster.client)  # type: ignore[arg-type]
    cluster.client("secretsmanager").put_secret_value(SecretId="kafka/clicks", SecretString="new")

    assert secrets.opened(place, cluster.client) == first  # type: ignore[arg-type]
    now = 301.0
    assert secrets.opened(place, cluster.client)["password"] == "new"  # type: ignore[arg-type]


def test_an_escaped_reference_is_text(cluster: Cluster) -> None:
    opened = Secrets().opened({"user": "$${secret:x}"}, cluster.client)  # type: ignore[arg-type]

    assert opened == {"user": "${secret:x}"}
