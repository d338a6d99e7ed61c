"""Members on real stores: a folder, and conditional writes of S3 on a stand-in."""

from __future__ import annotations

from pathlib import Path

from polynya.model.config.aws import AwsAccess
from polynya.model.names import S3Location
from polynya.store.aws.s3 import S3ObjectStore
from polynya.store.object_store import LocalObjectStore
from tests.aws import REGION, aws_server
from tests.cluster.coordination.lab import Lab


def share_and_die(lab: Lab, turn: float = 5.0) -> None:
    """Two nodes share, one dies, the other takes over."""
    lab.passes(60, turn=turn)
    assert lab.settled()
    had = lab.nodes[0].granted

    lab.kill(lab.nodes[0])
    lab.passes(60, turn=turn)

    assert lab.settled()
    assert {lab.record(unit)["epoch"] for unit in had} == {2}


def test_members_share_through_a_folder(tmp_path: Path) -> None:
    share_and_die(Lab(2, wanted=4, store=LocalObjectStore(tmp_path)))


def test_members_share_through_s3() -> None:
    with aws_server("acme-nodes") as endpoint:
        access = AwsAccess(region=REGION, endpoint=endpoint)
        share_and_die(
            Lab(2, wanted=2, store=S3ObjectStore(S3Location("acme-nodes", "coordination"), access)),
            turn=10.0,
        )
