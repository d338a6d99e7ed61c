"""A node that starts while the service fails that has the credentials of its role."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from random import Random

import pytest

from polynya.cluster.control import requests
from polynya.cluster.control.requests import coordination_store
from polynya.cluster.coordination.member import Member
from polynya.cluster.coordination.member_state import NodeFacts, NodeIdentity
from polynya.cluster.gossip.stream import StreamGossip
from polynya.cluster.placement import PlacementRules, propose
from polynya.cluster.submit.configured import source_of
from polynya.cluster.unit import JobKey
from polynya.model.config.aws import AwsAccess
from polynya.store.clock import BootClock
from polynya.store.places import stream_at
from polynya.testing.fake_imds import FakeImds
from polynya.testing.fakes import FakeClock
from tests.aws import REGION, aws_server, client, machine_with_role
from tests.cluster.fakes import GOOD, snapshot
from tests.cluster.gossip.given import process

UNIT = JobKey("sales", "shop.orders")


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with aws_server("acme-config") as address:
        monkeypatch.setenv("AWS_ENDPOINT_URL", address)
        monkeypatch.setenv("AWS_REGION", REGION)
        for path, content in snapshot(GOOD).files.items():
            s3 = client("s3", address)
            s3.put_object(Bucket="acme-config", Key=f"shop/current/{path}", Body=content)
        client("kinesis", address).create_stream(StreamName="workload", ShardCount=1)
        yield address


@pytest.fixture
def imds(endpoint: str) -> Iterator[FakeImds]:
    """The service, which fails."""
    del endpoint  # it sets credentials
    with machine_with_role() as service:
        service.failing = True
        yield service


def recovers(imds: FakeImds) -> None:
    imds.failing = False


def test_the_configuration_is_read_as_soon_as_there_are_credentials(
    imds: FakeImds, tmp_path: Path
) -> None:
    source, _ = source_of("s3://acme-config/shop", tmp_path)
    threading.Timer(1.0, recovers, [imds]).start()

    assert source.read().files == snapshot(GOOD).files


def test_a_node_becomes_a_member_and_works_once_there_are_credentials(
    imds: FakeImds, endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # How long a request is tried; nothing is learned from waiting.
    monkeypatch.setattr(requests, "_RETRY_SECONDS", 0.5)
    store = coordination_store("s3://acme-config/coordination", AwsAccess(REGION, endpoint))
    member = Member(
        store,
        "shop",
        NodeIdentity("n1"),
        partial(propose, rules=PlacementRules()),
        clock=BootClock(),
        random=Random(1),
    )
    facts = NodeFacts(wanted=frozenset([UNIT]))
    before = member.turn(facts)
    assert before.state is None
    assert "POLYNYA-AWS-001" in before.troubles[0]

    recovers(imds)
    after = [member.turn(facts) for _ in range(2)][-1]

    assert (after.state, after.leading, list(after.grants)) == ("ready", True, [UNIT])


def test_heartbeats_and_hints_flow_once_there_are_credentials(
    imds: FakeImds, endpoint: str
) -> None:
    clock, woken = FakeClock(), []
    stream = stream_at("workload", AwsAccess(REGION, endpoint), clock)
    gossip = StreamGossip(
        process(), stream, clock=clock, draw=lambda: 0.0, wake=lambda: woken.append(True)
    )
    gossip.turn()
    assert "POLYNYA-AWS-001" in str(gossip.trouble)

    recovers(imds)
    for _ in range(5):
        clock.sleep(gossip.turn())

    assert gossip.trouble is None
    assert woken
