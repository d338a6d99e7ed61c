"""`polynya doctor --aws`: what the account allows, before anything is deployed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from botocore.validate import ParamValidator

from polynya.cli.doctor_account import account_checks
from polynya.model.loader import load_project
from polynya.store.aws import quotas
from tests.projects import USERS, aws_project, write_project

OPEN = [{"Principal": {"DataLakePrincipalIdentifier": "IAM_ALLOWED_PRINCIPALS"}}]
ALLOWED = {
    quotas.SPOT_VCPUS: 16,
    quotas.ON_DEMAND_VCPUS: 16,
    quotas.ELASTIC_IPS: 5,
    quotas.VPCS: 5,
    quotas.INTERFACE_ENDPOINTS: 50,
    quotas.GLUE_DATABASES: 10_000,
}
NAMES = {
    *("spot quota", "on-demand quota", "elastic ips", "vpcs", "vpc endpoints"),
    *("glue databases", "lambda concurrency", "lake formation"),
}


def instance(kind: str, vcpus: int, state: str = "running", **more: str) -> dict[str, Any]:
    cpu = {"CoreCount": vcpus // 2, "ThreadsPerCore": 2}
    return {"InstanceType": kind, "State": {"Name": state}, "CpuOptions": cpu, **more}


class Account:
    """Answers the calls of the SDK's own clients, whose models check questions and answers."""

    def __init__(self) -> None:
        self.allowed: dict[quotas.Quota, int | None] = dict(ALLOWED)
        self.instances: list[dict[str, Any]] = []
        self.vpcs = 1
        self.databases = ["default"]
        self.functions, self.reserved = 1000, 0
        self.defaults = OPEN
        self.refused: dict[str, tuple[str, int]] = {}

    def answer(self, operation: str, asked: dict[str, Any]) -> dict[str, Any]:
        if operation in self.refused:
            code, status = self.refused[operation]
            meta = {"HTTPStatusCode": status}
            raise ClientError({"Error": {"Code": code}, "ResponseMetadata": meta}, operation)
        answers: dict[str, Callable[[], dict[str, Any]]] = {
            "GetServiceQuota": lambda: self._quota(asked),
            "GetAWSDefaultServiceQuota": lambda: {"Quota": {"Value": 5.0}},
            "DescribeInstances": lambda: {"Reservations": [{"Instances": self.instances}]},
            "DescribeVpcs": lambda: {"Vpcs": [{}] * self.vpcs},
            "GetDatabases": lambda: {"DatabaseList": [{"Name": name} for name in self.databases]},
            "GetAccountSettings": lambda: {
                "AccountLimit": {
                    "ConcurrentExecutions": self.functions,
                    "UnreservedConcurrentExecutions": self.functions - self.reserved,
                }
            },
            "GetDataLakeSettings": lambda: {
                "DataLakeSettings": {"CreateTableDefaultPermissions": self.defaults}
            },
        }
        return answers[operation]()

    def _quota(self, asked: dict[str, Any]) -> dict[str, Any]:
        value = self.allowed[quotas.Quota(asked["ServiceCode"], asked["QuotaCode"])]
        if value is None:
            raise ClientError({"Error": {"Code": "NoSuchResourceException"}}, "GetServiceQuota")
        return {"Quota": {"Value": float(value)}}


@pytest.fixture
def account(monkeypatch) -> Account:
    """An account in which one VPC and no instance is, and that allows more than the least."""
    found = Account()

    def made(service: str, _access: object) -> Any:
        client = boto3.client(
            service,
            region_name="eu-central-1",
            aws_access_key_id="testing",
            aws_secret_access_key="testing",
        )

        def asked(params: dict[str, Any], context: dict[str, Any], **_: Any) -> None:
            context["asked"] = dict(params)

        def answer(model: Any, context: dict[str, Any], **_: Any) -> tuple[Any, dict[str, Any]]:
            said = found.answer(model.name, context["asked"])
            problems = ParamValidator().validate(said, model.output_shape)
            assert not problems.has_errors(), problems.generate_report()
            return type("Answer", (), {"status_code": 200}), said

        client.meta.events.register("before-parameter-build", asked)
        client.meta.events.register("before-call", answer)
        return client

    monkeypatch.setattr(quotas, "client", made)
    monkeypatch.setattr("polynya.store.aws.account.client", made)
    return found


@pytest.fixture
def checks(account, tmp_path):
    text = aws_project("http://127.0.0.1:9", "eu-central-1")
    project = load_project(write_project(tmp_path, project=text, users=USERS))
    return lambda: {check.name: check for check in account_checks(project)}


def test_an_account_with_room_for_everything_is_shown_line_by_line(checks) -> None:
    found = checks()

    assert {name: check.status for name, check in found.items()} == dict.fromkeys(NAMES, "ok")
    assert found["vpcs"].detail == "needed 1 (the network of the stage), allowed 5, used 1"
    assert "needed 8 (interface endpoints" in found["vpc endpoints"].detail
    assert found["vpc endpoints"].detail.endswith("allowed 50")
    assert found["elastic ips"].detail == "needed 0 (a stage has none), allowed 5"
    assert found["lambda concurrency"].detail.endswith("allowed 1000, used 0")


def test_a_new_account_has_room_for_one_node(account, checks) -> None:
    account.allowed[quotas.SPOT_VCPUS] = None
    spot = checks()["spot quota"]

    assert spot.status == "warn"
    assert "needed 4 (vCPU of a node of the default types), allowed 5, used 0" in spot.detail
    assert "a cluster that always has a node needs 8 while it is deployed" in spot.detail
    assert "L-34B43A08" in spot.fix


def test_an_account_without_room_fails(account, checks) -> None:
    account.allowed |= {quotas.SPOT_VCPUS: 2, quotas.INTERFACE_ENDPOINTS: 5, quotas.VPCS: 0}
    account.functions = 2
    found = checks()

    assert {name for name, check in found.items() if check.status == "fail"} == {
        "spot quota",
        "vpc endpoints",
        "vpcs",
        "lambda concurrency",
    }


def test_only_standard_instances_that_run_use_the_quota(account, checks) -> None:
    account.instances = [
        instance("m7g.xlarge", 4, InstanceLifecycle="spot"),
        instance("is4gen.large", 2, "pending", InstanceLifecycle="spot"),
        instance("t3.large", 2),
        instance("c7i.8xlarge", 32, "stopped"),
        *(instance(kind, 8) for kind in ("g5.2xlarge", "inf1.2xlarge", "hpc7g.16xlarge")),
    ]
    found = checks()

    assert found["spot quota"].detail.endswith("allowed 16, used 6")
    assert found["on-demand quota"].detail.endswith("allowed 16, used 2")


def test_what_others_use_is_a_warning_because_the_stage_may_be_among_them(account, checks) -> None:
    account.vpcs = 5
    account.instances = [instance("m7g.4xlarge", 16)]
    account.reserved = 999
    found = checks()

    for name, left in (("vpcs", 0), ("on-demand quota", 0), ("lambda concurrency", 1)):
        assert found[name].status == "warn"
        assert f"{left} left, too few unless this stage is what uses them" in found[name].detail


def test_only_databases_that_do_not_exist_are_needed(account, checks) -> None:
    assert checks()["glue databases"].detail == (
        "needed 2 (2 for the schemas of the project, 0 of them exist), allowed 10000, used 1"
    )
    account.databases += ["shop", "shop_internal"]
    account.allowed[quotas.GLUE_DATABASES] = 3
    full = checks()["glue databases"]

    assert full.status == "ok"
    assert full.detail.startswith("needed 0 (2 for the schemas of the project, 2 of them exist)")


def test_a_right_that_is_missing_is_no_failure_and_is_named(account, checks) -> None:
    denied = ("AccessDeniedException", 400)
    account.refused = {
        "GetServiceQuota": denied,
        "DescribeInstances": ("UnauthorizedOperation", 403),
        "GetAccountSettings": denied,
    }
    found = checks()

    for name in NAMES - {"lake formation", "lambda concurrency"}:
        assert found[name].status == "warn"
        assert found[name].detail.endswith(
            "not checked: no right for servicequotas:GetServiceQuota"
        )
        assert found[name].fix == "allow servicequotas:GetServiceQuota"
    assert "no right for lambda:GetAccountSettings" in found["lambda concurrency"].detail


def test_use_that_may_not_be_seen_leaves_the_rest_of_the_line(account, checks) -> None:
    account.refused = {
        "DescribeInstances": ("UnauthorizedOperation", 403),
        "DescribeVpcs": ("UnauthorizedOperation", 403),
        "GetDatabases": ("AccessDeniedException", 400),
    }
    found = checks()

    for name, right in (
        ("spot quota", "ec2:DescribeInstances"),
        ("vpcs", "ec2:DescribeVpcs"),
        ("glue databases", "glue:GetDatabases"),
    ):
        assert found[name].status == "ok"
        assert found[name].detail.endswith(f"; what is used was not checked: no right for {right}")


def test_a_default_that_may_not_be_read_names_its_own_right(account, checks) -> None:
    account.allowed[quotas.VPCS] = None
    account.refused = {"GetAWSDefaultServiceQuota": ("AccessDeniedException", 400)}

    assert checks()["vpcs"].fix == "allow servicequotas:GetAWSDefaultServiceQuota"


def test_closed_defaults_of_lake_formation_are_explained(account, checks) -> None:
    account.defaults = []
    said = checks()["lake formation"]

    assert said.status == "warn"
    assert "DATA_LOCATION_ACCESS" in said.fix
