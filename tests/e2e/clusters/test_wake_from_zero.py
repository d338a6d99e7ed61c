"""A cluster at zero nodes, a record in a real broker, and the function that starts the next node.

The agent agrees in a bucket of a stand-in for AWS, in which the function reads what it wrote.
"""

from __future__ import annotations

import io
import json
import os
import signal
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from examples.servers.kafka import UnavailableError, broker_with
from examples.servers.kafka_clients import kafka_clients
from polynya_constructs.cluster.source_watch import sources_key
from polynya_constructs.functions.wake import probe, sources
from polynya_constructs.functions.wake.sources import WatchListReader, act
from tests.absent import absent
from tests.aws import REGION, aws_server, client, s3_whose_conditions_hold
from tests.e2e.agents import Agent, running_agent
from tests.projects import write_project

pytestmark = [pytest.mark.spark, pytest.mark.slow]

GROUP, BUCKET = "shop", "configuration"
CLICKS = """\
apiVersion: polynya/v1
kind: streaming_landing
name: clicks
source: {{kafka: {{bootstrap_servers: "{address}", topics: [clicks]}}}}
interval: 1s
"""


class Network:
    """The function in the network, in this process."""

    def invoke(self, FunctionName: str, Payload: bytes) -> dict[str, Any]:
        answer = probe.handle(json.loads(Payload), None)
        return {"Payload": io.BytesIO(json.dumps(answer).encode())}


class Group:
    """The Auto Scaling group of the cluster, and the function that looks for it."""

    def __init__(self, endpoint: str) -> None:
        made = cache(lambda service: client(service, endpoint))
        self._client: Callable[..., Any] = lambda service, _region=None: (
            Network() if service == "lambda" else made(service)
        )
        self._reader = WatchListReader(BUCKET, sources_key(GROUP))
        self._autoscaling = made("autoscaling")
        self._autoscaling.create_launch_configuration(
            LaunchConfigurationName=GROUP, ImageId="ami-12c6146b", InstanceType="m7g.xlarge"
        )
        self._autoscaling.create_auto_scaling_group(
            AutoScalingGroupName=GROUP, LaunchConfigurationName=GROUP, MinSize=0, MaxSize=4,
            AvailabilityZones=[f"{REGION}a"],
        )  # fmt: skip

    @property
    def described(self) -> dict[str, Any]:
        found = self._autoscaling.describe_auto_scaling_groups(AutoScalingGroupNames=[GROUP])
        described: dict[str, Any] = found["AutoScalingGroups"][0]
        return described

    def empties(self) -> None:
        self._autoscaling.set_desired_capacity(AutoScalingGroupName=GROUP, DesiredCapacity=0)

    def looks(self) -> str:
        """One run of the function."""
        watched = self._reader.read(self._client)  # type: ignore[arg-type]
        return act(self.described, watched, self._client, sources.datetime.now(sources.UTC))  # type: ignore[arg-type]

    def read_to(self) -> Any:
        """Up to where the topic is read, as the leader wrote it last."""
        watched = self._reader.read(self._client)  # type: ignore[arg-type]
        if "unreadable" in watched:
            return None
        (source,) = watched["sources"]
        return source["position"]


def test_a_record_that_comes_while_there_is_no_node_starts_one_and_lands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROBE_FUNCTION", "probe")
    with ExitStack() as stack:
        endpoint = stack.enter_context(aws_server(BUCKET))
        stack.enter_context(s3_whose_conditions_hold())
        monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
        monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)
        broker = stack.enter_context(real_broker(stack, tmp_path))
        broker.create("clicks")
        broker.send("clicks", [b'{"id": 1}', b'{"id": 2}'])
        project = tmp_path / "project"
        project.mkdir()
        write_project(project, clicks=CLICKS.format(address=broker.address))
        group = Group(endpoint)
        options = [
            "--project", str(project), "--cluster", GROUP, "--imds", "off",
            "--coordination", f"s3://{BUCKET}/coordination",
        ]  # fmt: skip

        with running_agent(tmp_path, *options) as first:
            awaited(first, lambda: group.read_to() == {"clicks": {"0": 2}})
            ends(first)
        assert group.looks() == "none: nothing waits"

        broker.send("clicks", [b'{"id": 3}'])
        assert group.looks().startswith("woken: clicks: 1 partitions end elsewhere")
        assert group.described["DesiredCapacity"] == 1

        with running_agent(tmp_path, *options, node="n2") as second:
            landed = second.says("stream.landed", "clicks/clicks")
            assert (landed["number"], landed["records"]) == (2, 1)
            awaited(second, lambda: group.read_to() == {"clicks": {"0": 3}})
            ends(second)
        group.empties()
        assert group.looks() == "none: nothing waits"


def real_broker(stack: ExitStack, folder: Path) -> Any:
    try:
        clients = stack.enter_context(kafka_clients())
        (folder / "kafka").mkdir()
        return broker_with(folder / "kafka", clients)
    except UnavailableError as error:
        absent(str(error))


def awaited(agent: Agent, condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 300
    while not condition():
        said = agent.output.read_text("utf-8")[-3000:]
        assert agent.process.poll() is None, said
        assert time.monotonic() < deadline, said
        time.sleep(0.5)


def ends(agent: Agent) -> None:
    """The group takes its last node."""
    os.kill(agent.process.pid, signal.SIGTERM)
    agent.process.wait(timeout=120)
