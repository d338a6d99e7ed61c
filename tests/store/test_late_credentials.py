"""Credentials of a machine's role that come late: a slow or failing metadata service."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from botocore.credentials import RefreshableCredentials

from polynya.model.config.aws import AwsAccess
from polynya.model.errors import DependencyError
from polynya.model.names import S3Location
from polynya.store.aws import data_objects
from polynya.store.aws.clients import client
from polynya.store.aws.data_objects import S3Files
from polynya.store.aws.glue import GlueViews
from polynya.store.aws.kinesis import KinesisShards, KinesisStream
from polynya.store.aws.machine_role import may_have_role
from polynya.store.aws.s3 import S3ObjectStore
from polynya.store.clock import Retry
from polynya.testing.fake_imds import FakeImds
from polynya.testing.fakes import FakeClock
from tests.aws import REGION, machine_with_role

#: Longer than the second for which the SDK waits for an answer of the metadata service.
SLOW = 1.5


@pytest.fixture
def imds(access: AwsAccess) -> Iterator[FakeImds]:
    """The metadata service of this machine, which has a role."""
    del access  # its server sets credentials
    with machine_with_role() as service:
        yield service


def test_a_store_that_is_made_in_a_slow_second_works_a_moment_later(
    imds: FakeImds, access: AwsAccess, place: S3Location
) -> None:
    imds.pauses = [SLOW]

    store = S3ObjectStore(place, access)
    store.put("a", b"1")

    assert store.get("a") == b"1"


def test_a_store_without_patience_says_so_and_works_with_the_next_call(
    imds: FakeImds, access: AwsAccess, place: S3Location
) -> None:
    imds.failing = True
    store = S3ObjectStore(place, access, retry=Retry(deadline=0.3))
    with pytest.raises(DependencyError) as caught:
        store.put("a", b"1")
    assert caught.value.code == "POLYNYA-AWS-001"

    imds.failing = False
    store.put("a", b"1")

    assert store.get("a") == b"1"


def test_clients_of_all_services_are_made_again(imds: FakeImds, access: AwsAccess) -> None:
    imds.failing = True
    views = GlueViews(access, None, "mark")
    stream, shards = KinesisStream("workload", access), KinesisShards(access)
    client("kinesis", access)
    with pytest.raises(DependencyError, match="credentials"):
        stream.shards()

    imds.failing = False
    client("kinesis", access).create_stream(StreamName="workload", ShardCount=1)

    assert len(stream.shards()) == 1
    assert shards.streams() == ("workload",)
    assert views.find("nowhere", "nothing") is None


def test_threads_that_wait_for_the_same_credentials_ask_once(
    imds: FakeImds, access: AwsAccess, place: S3Location
) -> None:
    imds.failing = True
    store = S3ObjectStore(place, access, retry=Retry(deadline=0.0))
    imds.pauses = [SLOW] * 1000
    together = threading.Barrier(8)

    def write(number: int) -> str:
        together.wait()
        try:
            store.put(f"{number}", b"1")
        except DependencyError as error:
            return error.code
        return "written"

    started = time.monotonic()
    with ThreadPoolExecutor(8) as pool:
        outcomes = set(pool.map(write, range(8)))

    assert outcomes == {"POLYNYA-AWS-001"}
    # Two requests of a second each; one thread after the other would take 16 seconds.
    assert time.monotonic() - started < 8


def test_credentials_that_cannot_be_renewed_for_a_moment_are_asked_for_again(
    imds: FakeImds, access: AwsAccess, place: S3Location, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As in the last 15 minutes of the old ones, when each call wants new ones.
    monkeypatch.setattr(RefreshableCredentials, "_advisory_refresh_timeout", 10**10)
    store = S3ObjectStore(place, access)
    store.put("a", b"1")

    imds.failing = True
    threading.Timer(0.5, lambda: setattr(imds, "failing", False)).start()

    assert store.get("a") == b"1"


def test_old_credentials_serve_while_the_service_fails_on_nodes(
    imds: FakeImds, access: AwsAccess, place: S3Location, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As the boot of a node sets it.
    monkeypatch.setenv("AWS_EC2_METADATA_V1_DISABLED", "true")
    store = S3ObjectStore(place, access, retry=Retry(deadline=0.0))
    store.put("a", b"1")
    monkeypatch.setattr(RefreshableCredentials, "_advisory_refresh_timeout", 10**10)

    imds.failing = True

    assert store.get("a") == b"1"


def test_arrow_reads_a_moment_after_it_found_no_credentials(
    imds: FakeImds, access: AwsAccess, place: S3Location, monkeypatch: pytest.MonkeyPatch
) -> None:
    S3ObjectStore(place, access).put("a", b"1")
    clock = FakeClock()
    monkeypatch.setattr(data_objects, "time", clock)
    monkeypatch.setattr(data_objects, "_tried", {})
    # Else Arrow looks for it in other places, for eight seconds.
    monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)
    imds.failing = True
    files = S3Files(REGION, access.endpoint)
    refused = files.refusal(f"{place}/a")

    imds.failing = False
    clock.sleep(5)

    assert "ACCESS_DENIED" in str(refused)
    assert files.refusal(f"{place}/a") is None


def test_a_machine_without_a_role_is_told_at_once(
    imds: FakeImds, access: AwsAccess, place: S3Location, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    store = S3ObjectStore(place, access)
    started = time.monotonic()

    with pytest.raises(DependencyError) as caught:
        store.get("a")

    assert caught.value.code == "POLYNYA-AWS-001"
    assert time.monotonic() - started < 1
    assert not imds.tokens


@pytest.mark.parametrize(
    ("environment", "vendor", "expected"),
    [
        ({}, "QEMU", False),
        ({}, "Amazon EC2", True),
        ({"AWS_EC2_METADATA_DISABLED": "true"}, "Amazon EC2", False),
        ({"AWS_EC2_METADATA_SERVICE_ENDPOINT": "http://[fd00:ec2::254]"}, "QEMU", True),
        ({"AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://169.254.170.23/v1"}, "QEMU", True),
        (
            {
                "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI": "/v2",
                "AWS_EC2_METADATA_DISABLED": "true",
            },
            "QEMU",
            True,
        ),
    ],
)
def test_a_role_is_expected_on_ec2_and_in_containers(
    tmp_path: Path, environment: dict[str, str], vendor: str, *, expected: bool
) -> None:
    file = tmp_path / "sys/class/dmi/id/sys_vendor"
    file.parent.mkdir(parents=True)
    file.write_text(f"{vendor}\n")

    assert may_have_role(environment, tmp_path) is expected
