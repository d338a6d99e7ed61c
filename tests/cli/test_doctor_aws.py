"""`polynya doctor` of a target on AWS: what it tries, and which grant it names."""

from __future__ import annotations

import pytest
from botocore.exceptions import ClientError

from polynya.cli.operate.doctor_aws import aws_checks
from polynya.model.reading.loader import load_project
from polynya.store.aws import probe as aws_probe
from polynya.store.aws.s3 import S3ObjectStore
from tests.aws import REGION, aws_server, client
from tests.projects import USERS, aws_project, write_project


@pytest.fixture(scope="module")
def endpoint():
    with aws_server("acme-landing", "acme-lake", "acme-config") as address:
        client("kinesis", address).create_stream(StreamName="load", ShardCount=1)
        client("glue", address).create_database(DatabaseInput={"Name": "shop_internal"})
        yield address


@pytest.fixture
def checks(endpoint, tmp_path):
    text = aws_project(endpoint, REGION)
    project = load_project(write_project(tmp_path, project=text, users=USERS))
    return lambda stream="load": {check.name: check for check in aws_checks(project, stream)}


def refuse(monkeypatch, **methods: str) -> None:
    """AWS refuses one call of each service."""
    real = aws_probe.client

    def made(name, access):
        found = real(name, access)
        if method := methods.get(name):
            answer = {"Error": {"Code": "AccessDeniedException", "Message": "not authorized"}}
            setattr(found, method, lambda **_: _raise(ClientError(answer, method)))
        return found

    monkeypatch.setattr(aws_probe, "client", made)


def test_everything_is_tried_and_taken_back(checks, endpoint) -> None:
    found = checks()

    assert {name: check.status for name, check in found.items()} == dict.fromkeys(
        ("aws identity", "landing", "config", "warehouse", "catalog", "views", "workload stream"),
        "ok",
    )
    assert "active, shards: 1; one record was put" in found["workload stream"].detail
    assert client("glue", endpoint).get_tables(DatabaseName="shop_internal")["TableList"] == []
    for bucket in ("acme-config", "acme-lake"):
        assert client("s3", endpoint).list_objects_v2(Bucket=bucket)["KeyCount"] == 0


@pytest.mark.parametrize(
    ("refused", "grants"),
    [
        (
            {"glue": "create_table", "kinesis": "describe_stream_summary"},
            ("glue:CreateTable on the catalog", "kinesis:DescribeStreamSummary on the stream load"),
        ),
        (
            {"glue": "delete_table", "kinesis": "put_record"},
            ("glue:DeleteTable on the catalog", "kinesis:PutRecord on the stream load"),
        ),
    ],
)
def test_the_missing_grant_is_named(monkeypatch, checks, refused, grants) -> None:
    refuse(monkeypatch, **refused)
    found = checks()

    for name, grant in zip(("catalog", "workload stream"), grants, strict=True):
        assert (found[name].status, found[name].exit_code) == ("fail", 4)
        assert grant in found[name].fix


def test_a_node_may_only_read_the_configuration_and_a_stream_is_missing(
    monkeypatch, checks
) -> None:
    def refused(self, path, data):
        answer = {"Error": {"Code": "AccessDenied", "Message": "not authorized"}}
        return self._of(path, "write the object", lambda of: _raise(ClientError(answer, "Put")))

    monkeypatch.setattr(S3ObjectStore, "put_if_absent", refused)

    found = checks("nowhere")

    assert found["config"].status == "warn"
    assert "s3:PutObject on arn:aws:s3:::acme-config/shop/*" in found["config"].fix
    stream = found["workload stream"]
    assert (stream.status, stream.detail) == ("fail", "there is no stream nowhere in this region")


def test_a_store_that_does_not_compare_is_refused(monkeypatch, checks) -> None:
    def blind(self, path, data, *_):
        self.put(path, data)
        return True

    monkeypatch.setattr(S3ObjectStore, "put_if_unchanged", blind)

    check = checks()["config"]

    assert (check.status, "two pushes would mix" in check.fix) == ("fail", True)


def _raise(error):
    raise error
