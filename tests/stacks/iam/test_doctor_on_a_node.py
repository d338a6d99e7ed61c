"""`polynya doctor` with the rights that templates grant a node: it passes and leaves nothing.

A call of the SDK goes to the stand-in only if the role of the node may make it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import botocore.session
import pytest
from botocore.exceptions import ClientError, ConnectTimeoutError

from polynya.cli.checks import Check
from polynya.cli.doctor import coordination_check
from polynya.cli.doctor_aws import aws_checks
from polynya.model.loader import load_project
from tests.aws import REGION, aws_server, client
from tests.projects import USERS, write_project
from tests.stacks.iam.iam_account import DeployedAccount
from tests.stacks.iam.iam_evaluator import Request
from tests.stacks.intrinsics import ACCOUNT
from tests.stacks.synthesis import Assembly

pytestmark = pytest.mark.synth

STAGE = "clustered"
DATABASE = "shop_clustered"
_GLUE = f"arn:aws:glue:{REGION}:{ACCOUNT}"
# Operations whose permission is not called like them (Service Authorization Reference).
_PERMISSIONS = {
    "GetBucketLifecycleConfiguration": "s3:GetLifecycleConfiguration",
    "HeadObject": "s3:GetObject",
    "ListObjectsV2": "s3:ListBucket",
}
# As a node sees them: endpoints exist of other services only.
_NO_ENDPOINT = {"sts"}
_CONDITIONS = {"IfMatch": "s3:if-match", "IfNoneMatch": "s3:if-none-match"}

PROJECT = """\
apiVersion: polynya/v1
kind: project
name: shop
targets:
  dev:
    landing: s3://{landing}
    warehouse: s3://{warehouse}/tables
    config: s3://{configuration}/project
    catalog: glue
    aws: {{region: {region}, endpoint: "{endpoint}"}}
"""


class NodeRights:
    """Lets through the calls of every client that the role of a node allows, and keeps the others.

    Attributes:
        refused: the actions that it refused.
    """

    def __init__(self, templates: dict[str, Any]) -> None:
        self._account = DeployedAccount(templates)
        self._templates = templates
        self._role = self._account.roles[self.arn("Cluster-cheap", "ClusterNodeRole")]
        self.refused: set[str] = set()

    def arn(self, stack: str, beginning: str) -> str:
        """The ARN of the resource of a stack whose logical id is this and a hash."""
        path = f"{STAGE}/{stack}"
        (found,) = [n for n in self._templates[path]["Resources"] if n[:-8] == beginning]
        return self._account.intrinsics.arn(path, found)

    def judge(self, params: dict[str, Any], model: Any, **_: Any) -> None:
        """Refuse a call as AWS does, before it is sent."""
        service = model.service_model.service_name
        if service in _NO_ENDPOINT:
            raise ConnectTimeoutError(endpoint_url=f"https://{service}.{REGION}.amazonaws.com")
        action = _PERMISSIONS.get(model.name, f"{service}:{model.name}")
        context = {"aws:SecureTransport": "true"}
        context |= {key: params[name] for name, key in _CONDITIONS.items() if name in params}
        if action == "s3:PutObject":
            context["s3:ObjectCreationOperation"] = "true"
        for resource in _resources(service, params, self.arn("Storage", "WorkloadStream")):
            verdict = self._account.asks(self._role, Request(action, resource, context))
            if not verdict.allowed:
                self.refused.add(action)
                code = "AccessDenied" if service == "s3" else "AccessDeniedException"
                said = {"Error": {"Code": code, "Message": verdict.reason}}
                raise ClientError(said, model.name)


def _resources(service: str, params: dict[str, Any], stream: str) -> list[str]:
    """The ARNs that a call is judged on; Glue asks for each level."""
    if service == "s3":
        return [f"arn:aws:s3:::{params['Bucket']}" + (f"/{k}" if (k := params.get("Key")) else "")]
    if service == "kinesis":
        return [stream]
    database = params.get("DatabaseName") or params["Name"]
    table = params.get("Name") or params.get("TableInput", {}).get("Name")
    found = [f"{_GLUE}:catalog", f"{_GLUE}:database/{database}"]
    return [*found, f"{_GLUE}:table/{database}/{table or '*'}"] if table != database else found


@pytest.fixture
def rights(assembly: Assembly) -> NodeRights:
    return NodeRights(assembly.templates)


@pytest.fixture
def checks(
    rights: NodeRights, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[dict[str, Check], Any]]:
    """Every check of a target on AWS, made by a node; and a maker of clients that may do all."""
    names = {
        kind: rights.arn("Storage", f"{kind.capitalize()}Bucket").rpartition(":")[2]
        for kind in ("landing", "warehouse", "configuration")
    }
    with aws_server(*names.values()) as endpoint:
        for database in (DATABASE, f"{DATABASE}_internal"):
            client("glue", endpoint).create_database(DatabaseInput={"Name": database})
        stream = rights.arn("Storage", "WorkloadStream").rpartition("/")[2]
        client("kinesis", endpoint).create_stream(StreamName=stream, ShardCount=1)
        text = PROJECT.format(**names, region=REGION, endpoint=endpoint)
        task = USERS.replace("schema: shop", f"schema: {DATABASE}")
        project = load_project(write_project(tmp_path, project=text, users=task))
        made = botocore.session.Session.create_client

        def create(session: Any, *args: Any, **settings: Any) -> Any:
            found = made(session, *args, **settings)
            found.meta.events.register("before-parameter-build", rights.judge)
            return found

        with monkeypatch.context() as on_the_node:
            on_the_node.setattr(botocore.session.Session, "create_client", create)
            found = {check.name: check for check in aws_checks(project, stream)}
            place, group = f"s3://{names['configuration']}/coordination", f"polynya-{STAGE}-cheap"
            found["coordination"] = coordination_check(place, group, project.target.aws)
        yield found, lambda service: client(service, endpoint)


def test_doctor_passes_with_the_rights_of_a_node_says_what_it_skips_and_leaves_nothing(
    checks: tuple[dict[str, Check], Any], rights: NodeRights
) -> None:
    found, service = checks

    assert {name: check.status for name, check in found.items()} == {
        "aws identity": "warn",
        "landing": "ok",
        "config": "warn",
        "warehouse": "ok",
        "lifecycle rules": "warn",
        "catalog": "ok",
        "views": "ok",
        "other engines": "ok",
        "workload stream": "ok",
        "coordination": "ok",
    }
    assert "AWS STS did not answer" in found["aws identity"].detail
    assert "nodes do not need it" in str(found["config"].fix)
    assert "creating was not tried" in found["catalog"].detail
    assert rights.refused == {
        "s3:PutObject", "s3:GetLifecycleConfiguration", "glue:DeleteTable",
    }  # fmt: skip

    glue, s3 = service("glue"), service("s3")

    for database in (DATABASE, f"{DATABASE}_internal"):
        assert glue.get_tables(DatabaseName=database)["TableList"] == []
    for bucket in s3.list_buckets()["Buckets"]:
        assert s3.list_objects_v2(Bucket=bucket["Name"])["KeyCount"] == 0
