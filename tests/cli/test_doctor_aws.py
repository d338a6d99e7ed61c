"""`polynya doctor` of a target on AWS: what it tries, and which grant it names."""

from __future__ import annotations

import pytest
from botocore.exceptions import ClientError, ConnectTimeoutError

from polynya.cli.doctor import coordination_check
from polynya.cli.doctor_aws import aws_checks, stream_check
from polynya.model.config.aws import AwsAccess
from polynya.model.errors import DependencyError, OperationError
from polynya.model.loader import load_project
from polynya.store.aws import account as aws_probe
from polynya.store.aws import lifecycle
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

    names = (
        "aws identity", "landing", "config", "warehouse", "lifecycle rules", "catalog", "views",
        "other engines", "workload stream",
    )  # fmt: skip
    assert {name: check.status for name, check in found.items()} == dict.fromkeys(names, "ok")
    assert "one record was put; read, shards: 1" in found["workload stream"].detail
    assert client("glue", endpoint).get_tables(DatabaseName="shop_internal")["TableList"] == []
    for bucket in ("acme-config", "acme-lake"):
        assert client("s3", endpoint).list_objects_v2(Bucket=bucket)["KeyCount"] == 0


@pytest.mark.parametrize(
    ("refused", "grants"),
    [
        (
            {"glue": "create_table", "kinesis": "put_record"},
            ("glue:CreateTable on the catalog", "kinesis:PutRecord on the stream load"),
        ),
        (
            {"glue": "update_table", "kinesis": "put_record"},
            ("glue:UpdateTable on the catalog", "kinesis:PutRecord on the stream load"),
        ),
    ],
)
def test_the_missing_grant_is_named_and_no_view_stays(
    monkeypatch, checks, endpoint, refused, grants
) -> None:
    refuse(monkeypatch, **refused)
    found = checks()

    for name, grant in zip(("catalog", "workload stream"), grants, strict=True):
        assert (found[name].status, found[name].exit_code) == ("fail", 4)
        assert grant in found[name].fix
    assert client("glue", endpoint).get_tables(DatabaseName="shop_internal")["TableList"] == []


def test_without_the_right_to_delete_no_view_is_created(monkeypatch, checks, endpoint) -> None:
    """Nodes lack that right; tests/stacks/iam/test_doctor_on_a_node.py has all of theirs."""
    refuse(monkeypatch, glue="delete_table")

    catalog = checks()["catalog"]

    assert catalog.status == "ok"
    assert "creating was not tried, because without glue:DeleteTable" in catalog.detail
    assert client("glue", endpoint).get_tables(DatabaseName="shop_internal")["TableList"] == []


def test_where_sts_does_not_answer_only_the_identity_is_not_told(monkeypatch, checks) -> None:
    monkeypatch.setattr(aws_probe, "client", without_sts(aws_probe.client))
    found = checks()

    assert found["aws identity"].status == "warn"
    assert "not checked: AWS STS did not answer" in found["aws identity"].detail
    assert {check.status for name, check in found.items() if name != "aws identity"} == {"ok"}


def without_sts(real):
    """As in a network whose only ways out are endpoints of other services."""

    def made(name, access):
        found = real(name, access)
        if name == "sts":
            lost = ConnectTimeoutError(endpoint_url="https://sts.amazonaws.com")
            found.get_caller_identity = lambda: _raise(lost)
        return found

    return made


@pytest.mark.parametrize(
    ("method", "grant"),
    [
        ("list_shards", "kinesis:ListShards"),
        ("get_shard_iterator", "kinesis:GetShardIterator"),
        ("get_records", "kinesis:GetRecords"),
    ],
)
def test_who_may_not_read_the_stream_is_told_what_sharing_needs(
    monkeypatch, endpoint, method, grant
) -> None:
    refuse(monkeypatch, kinesis=method)

    check = stream_check("load", AwsAccess(region=REGION, endpoint=endpoint))

    assert (check.status, "one record was put" in check.detail) == ("warn", True)
    assert f"{grant} on the stream load" in str(check.fix)


def test_only_what_nodes_may_do_is_asked_of_the_stream(monkeypatch, endpoint) -> None:
    """The rights of a node's role are in constructs/polynya_constructs/nodes/access.py."""
    refuse(monkeypatch, kinesis="describe_stream_summary")

    check = stream_check("load", AwsAccess(region=REGION, endpoint=endpoint))

    assert check.status == "ok"


def test_a_place_where_nodes_agree_is_tried_and_left_as_it_was(endpoint) -> None:
    access = AwsAccess(region=REGION, endpoint=endpoint)

    check = coordination_check("s3://acme-config/coordination", "shop", access)

    assert (check.status, "leases of shop: 0" in check.detail) == ("ok", True)
    assert client("s3", endpoint).list_objects_v2(Bucket="acme-config")["KeyCount"] == 0


def test_a_place_that_does_not_compare_is_refused_for_coordination(monkeypatch, endpoint) -> None:
    def blind(self, path, data, *_):
        self.put(path, data)
        return True

    monkeypatch.setattr(S3ObjectStore, "put_if_absent", blind)
    access = AwsAccess(region=REGION, endpoint=endpoint)

    with pytest.raises(OperationError) as caught:
        coordination_check("s3://acme-config/coordination", "shop", access)

    assert caught.value.code == "POLYNYA-AGT-010"


def test_a_right_to_delete_that_is_missing_is_named(monkeypatch, endpoint) -> None:
    def refused(self, path, version):
        answer = {"Error": {"Code": "AccessDenied", "Message": "not authorized"}}
        return self._of(path, "delete the object", lambda of: _raise(ClientError(answer, "Del")))

    monkeypatch.setattr(S3ObjectStore, "delete_if_unchanged", refused)
    access = AwsAccess(region=REGION, endpoint=endpoint)

    with pytest.raises(DependencyError) as caught:
        coordination_check("s3://acme-config/coordination", "shop", access)

    assert "s3:DeleteObject on arn:aws:s3:::acme-config/coordination/*" in str(caught.value.fix)


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


def test_lifecycle_rules_that_take_files_of_tables_are_named(monkeypatch, checks, endpoint) -> None:
    s3 = client("s3", endpoint)
    off = {"Status": "Disabled", "Filter": {"Prefix": ""}, "Expiration": {"Days": 1}}
    rules = [
        {"ID": "old", "Status": "Enabled", "Filter": {"Prefix": "tables/"},
         "Expiration": {"Days": 90}},
        {"ID": "cold", "Status": "Enabled", "Filter": {"Prefix": "tables/shop_internal.db/"},
         "Transitions": [{"Days": 30, "StorageClass": "GLACIER"}]},
        {"ID": "cheaper", "Status": "Enabled", "Filter": {"Prefix": ""},
         "Transitions": [{"Days": 30, "StorageClass": "STANDARD_IA"}]},
        {"ID": "elsewhere", "Status": "Enabled", "Filter": {"Prefix": "athena-results/"},
         "Expiration": {"Days": 7}},
        {"ID": "off", **off},
    ]  # fmt: skip
    s3.put_bucket_lifecycle_configuration(
        Bucket="acme-lake", LifecycleConfiguration={"Rules": rules}
    )
    try:
        check = checks()["lifecycle rules"]
    finally:
        s3.delete_bucket_lifecycle(Bucket="acme-lake")

    assert check.status == "fail"
    assert "rule `old` deletes after 90 days objects" in check.detail
    assert "rule `cold` moves to GLACIER after 30 days objects below" in check.detail
    assert not any(name in check.detail for name in ("cheaper", "elsewhere", "off"))
    monkeypatch.setattr(lifecycle, "client", _refusing(lifecycle.client))
    check = checks()["lifecycle rules"]
    assert (check.status, "s3:GetLifecycleConfiguration" in str(check.fix)) == ("warn", True)


def _refusing(real):
    def made(name, access):
        found = real(name, access)
        answer = {"Error": {"Code": "AccessDenied", "Message": "not authorized"}}
        method = "get_bucket_lifecycle_configuration"
        setattr(found, method, lambda **_: _raise(ClientError(answer, method)))
        return found

    return made
