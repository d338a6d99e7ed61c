"""What a stage file makes of the stacks: brought along, kept, removable, promoted."""

from __future__ import annotations

import json
import re
from typing import Any, get_args

import pytest

from stacks.pipeline import tried_groups
from stacks.settings.network import LogDays
from stacks.settings.pipeline import Promotion
from stacks.settings.stage import StageConfig
from tests.stacks.house_rules import kinds, resources, violations
from tests.stacks.synthesis import Assembly

pytestmark = pytest.mark.synth


def test_zones_and_endpoints_are_those_of_the_stage_file(assembly: Assembly) -> None:
    for stage, zones, endpoint_zones in (("dev", 2, 1), ("prod", 3, 3)):
        template = assembly.templates[f"{stage}/Network"]
        subnets = resources(template, "AWS::EC2::Subnet").values()
        assert [s["AvailabilityZone"] for s in subnets] == [
            {"Fn::Select": [index, {"Fn::GetAZs": ""}]} for index in range(zones)
        ]
        endpoints = resources(template, "AWS::EC2::VPCEndpoint").values()
        interfaces = [e for e in endpoints if e["VpcEndpointType"] == "Interface"]
        assert {len(e["SubnetIds"]) for e in interfaces} == {endpoint_zones}


def test_a_network_without_endpoints_lets_nothing_in(assembly: Assembly) -> None:
    template = assembly.templates["removable/Network"]
    kinds_of = kinds(assembly, "removable/Network")

    assert (kinds_of["AWS::EC2::InternetGateway"], kinds_of["AWS::EC2::NatGateway"]) == (1, 0)
    (gateway,) = resources(template, "AWS::EC2::VPCEndpoint").values()
    assert gateway["VpcEndpointType"] == "Gateway"
    subnets = resources(template, "AWS::EC2::Subnet").values()
    assert [subnet["MapPublicIpOnLaunch"] for subnet in subnets] == [True, True]
    assert resources(template, "AWS::EC2::SecurityGroupIngress") == {}
    groups = resources(template, "AWS::EC2::SecurityGroup").values()
    assert not any("SecurityGroupIngress" in group for group in groups)
    # The rule of the house finds it, so that no other stage has it unasked.
    said = violations(template)
    assert any("leads out of the VPC" in line for line in said)


def test_nodes_let_nobody_in_unless_the_stage_says_so(assembly: Assembly) -> None:
    for path, allowed in (
        ("dev/Cluster-main", False),
        ("borrowed/Cluster-quick", False),
        ("clustered/Cluster-cheap", True),
        ("clustered/Gateway", True),
    ):
        assert ("ssmmessages:OpenDataChannel" in str(assembly.templates[path])) is allowed, path


def test_blind_writes_to_the_coordination_prefix_are_denied(assembly: Assembly) -> None:
    policies = resources(assembly.templates["prod/Storage"], "AWS::S3::BucketPolicy")
    statements = policies["ConfigurationBucketPolicyFC7D3CDC"]["PolicyDocument"]["Statement"]

    (found,) = [s for s in statements if s.get("Sid") == "ConditionalWritesOnly"]
    assert (found["Effect"], found["Action"]) == ("Deny", "s3:PutObject")
    assert found["Principal"] == {"AWS": "*"}
    assert found["Resource"]["Fn::Join"][1][1] == "/coordination/*"
    (deletes,) = [s for s in statements if s.get("Sid") == "ConditionalDeletesOnly"]
    assert (deletes["Effect"], deletes["Action"]) == ("Deny", "s3:DeleteObject")
    assert deletes["Condition"] == {"Null": {"s3:if-match": "true"}}
    assert found["Condition"] == {
        "Null": {"s3:if-none-match": "true", "s3:if-match": "true"},
        "Bool": {"s3:ObjectCreationOperation": "true"},
    }


def test_renewed_leases_are_not_kept_as_long_as_the_configuration(assembly: Assembly) -> None:
    buckets = resources(assembly.templates["prod/Storage"], "AWS::S3::Bucket")

    rules = buckets["ConfigurationBucket4C9EE6EF"]["LifecycleConfiguration"]["Rules"]
    days = [
        (rule.get("Prefix", ""), rule["NoncurrentVersionExpiration"]["NoncurrentDays"])
        for rule in rules
    ]
    assert days == [("", 365), ("coordination/", 1)]


def test_what_is_brought_along_is_not_made(assembly: Assembly) -> None:
    network, storage = kinds(assembly, "borrowed/Network"), kinds(assembly, "borrowed/Storage")

    assert (network["AWS::EC2::VPC"], network["AWS::EC2::VPCEndpoint"]) == (0, 2)
    assert set(kinds(assembly, "halfway/Network")) == {"AWS::SSM::Parameter"}
    # The warehouse and the access logs are ours.
    assert storage["AWS::S3::Bucket"] == 2
    assert storage["AWS::KMS::Key"] == storage["AWS::Kinesis::Stream"] == 0


def test_data_goes_only_when_both_keys_are_turned(assembly: Assembly) -> None:
    assert violations(assembly.templates["halfway/Storage"]) == []
    removable = violations(assembly.templates["removable/Storage"])
    assert {line.split(": ")[1] for line in removable} == {"is not kept"}
    assert len(removable) == 8
    assert assembly.protected["halfway/Storage"]
    assert not assembly.protected["removable/Storage"]


def test_the_pipeline_promotes_what_a_workstation_deploys(assembly: Assembly) -> None:
    for stack in ("dev/Network", "dev/Storage", "prod/Network", "prod/Storage"):
        promoted = resources(assembly.templates[f"Pipeline/{stack}"], "AWS::S3::Bucket")
        assert promoted == resources(assembly.templates[stack], "AWS::S3::Bucket")
    (pipeline,) = resources(assembly.templates["Pipeline"], "AWS::CodePipeline::Pipeline").values()
    stages = [stage["Name"] for stage in pipeline["Stages"]]
    approvals = {
        stage["Name"]: [a["Name"] for a in stage["Actions"] if "Approv" in str(a["ActionTypeId"])]
        for stage in pipeline["Stages"]
    }
    assert stages == ["Source", "Build", "UpdatePipeline", "Assets", "dev", "prod"]
    assert (len(approvals["dev"]), len(approvals["prod"])) == (1, 2)


def test_what_was_promoted_is_tried_where_a_group_may_be_empty(assembly: Assembly) -> None:
    """A group that always has nodes tries a release while it is deployed."""
    (pipeline,) = resources(assembly.templates["Pipeline"], "AWS::CodePipeline::Pipeline").values()
    actions = {stage["Name"]: stage["Actions"] for stage in pipeline["Stages"]}

    assert last(actions["dev"]) == "Trial"
    assert "Trial" not in [action["Name"] for action in actions["prod"]]
    (commands,) = [
        json.loads(project["Source"]["BuildSpec"])["phases"]["build"]["commands"]
        for name, project in resources(
            assembly.templates["Pipeline"], "AWS::CodeBuild::Project"
        ).items()
        if "Trial" in name
    ]
    assert commands == ["make trial STAGE=dev"]


def last(actions: list[dict[str, Any]]) -> str:
    """The name of the action that a stage runs last."""
    return str(max(actions, key=lambda action: action["RunOrder"])["Name"])


@pytest.mark.parametrize(
    ("trial", "account", "strategy", "tried"),
    [
        (True, None, "low_cost", ["main"]),
        (True, "111111111111", "low_cost", ["main"]),
        (True, "222222222222", "low_cost", []),
        (False, None, "low_cost", []),
        (True, None, "low_latency", []),
    ],
    ids=["its credentials' account", "its account", "another account", "not wanted", "has nodes"],
)
def test_a_build_tries_only_groups_that_may_be_empty_in_its_own_account(
    trial: bool, account: str | None, strategy: str, tried: list[str]
) -> None:
    head = {"apiVersion": "polynya/v1", "kind": "stage", "name": "dev", "account": account}
    cluster = {"name": "main", "strategy": strategy, "maximum": 2}
    stage = StageConfig.model_validate({**head, "clusters": [cluster]})

    assert tried_groups(Promotion(stage="dev", trial=trial), stage, "111111111111") == tried


def test_the_pipeline_clones_its_source_with_history_and_modes(assembly: Assembly) -> None:
    """A zip has no `.git`, and no page of AWS says that it keeps what may be executed."""
    (pipeline,) = resources(assembly.templates["Pipeline"], "AWS::CodePipeline::Pipeline").values()
    (source,) = pipeline["Stages"][0]["Actions"]

    assert source["Configuration"]["OutputArtifactFormat"] == "CODEBUILD_CLONE_REF"


def test_every_retention_that_a_file_may_ask_for_exists(assembly: Assembly) -> None:
    from stacks.network import RETENTION

    assert tuple(RETENTION) == get_args(LogDays)


def test_constructs_refuse_what_no_gate_would_catch(assembly: Assembly) -> None:
    import aws_cdk as cdk
    from aws_cdk import aws_ec2 as ec2
    from aws_cdk import aws_kinesis as kinesis
    from aws_cdk import aws_kms as kms
    from aws_cdk import aws_s3 as s3

    from polynya_constructs.buckets import AccessLogBucket, DataBucket
    from polynya_constructs.catalog import LakehouseCatalog
    from polynya_constructs.coordination import enforce_conditional_writes
    from polynya_constructs.firehose_landing import FirehoseLanding
    from polynya_constructs.network import PrivateVpc, VpcEndpoints
    from polynya_constructs.nodes.access import Lakehouse
    from polynya_constructs.query.emr_serverless import EmrServerlessSpark
    from polynya_constructs.query.lake_formation import LakeFormationGovernance
    from polynya_constructs.query.redshift import RedshiftServerless
    from polynya_constructs.workload_stream import WorkloadStream

    stack = cdk.Stack()
    lakehouse = Lakehouse(
        landing=s3.Bucket(stack, "Landing"),
        configuration=s3.Bucket(stack, "Configuration"),
        warehouse=s3.Bucket(stack, "Warehouse"),
        stream=kinesis.Stream(stack, "Stream"),
        key=kms.Key(stack, "LakeKey"),
        databases=(),
    )
    key = kms.Key(stack, "Key")
    bucket = s3.Bucket(stack, "Bucket")
    logs = AccessLogBucket(stack, "Logs")
    vpc = ec2.Vpc.from_vpc_attributes(
        stack, "V", vpc_id="vpc-1", availability_zones=["a"], isolated_subnet_ids=["subnet-1"]
    )
    zones = ["eu-west-1a", "eu-west-1b"]
    refused = {
        "keep_days is 0": lambda: AccessLogBucket(stack, "A", keep_days=0),
        "old_versions_days is 9999": lambda: DataBucket(
            stack, "B", encryption_key=key, access_logs=logs, old_versions_days=9999
        ),
        "fewer than 2 zones": lambda: PrivateVpc(
            stack, "C", cidr="10.0.0.0/16", availability_zones=zones[:1]
        ),
        "2 subnets of /16 do not fit": lambda: PrivateVpc(
            stack, "D", cidr="10.0.0.0/16", availability_zones=zones, subnet_prefix=16
        ),
        "zones is 2; the VPC has 1": lambda: VpcEndpoints(
            stack, "E", vpc=vpc, cidr="10.0.0.0/16", services=[], zones=2
        ),
        "shards is 0": lambda: WorkloadStream(stack, "F", encryption_key=key, shards=0),
        "retention_hours is 1": lambda: WorkloadStream(
            stack, "G", encryption_key=key, retention_hours=1
        ),
        "cannot name a database": lambda: LakehouseCatalog(
            stack, "H", warehouse=bucket, databases=["Shop"]
        ),
        "no database that they could read": lambda: LakeFormationGovernance(
            stack, "I", lakehouse=lakehouse, readers=["arn:aws:iam::123456789012:role/r"]
        ),
        "wants subnets in 3 zones": lambda: RedshiftServerless(
            stack, "J", name="j", vpc=vpc, lakehouse=lakehouse
        ),
        "base_capacity is 12; it is 8 to 512": lambda: RedshiftServerless(
            stack, "K", name="k", vpc=vpc, lakehouse=lakehouse, base_capacity=12
        ),
        "max_capacity 8 is below base_capacity 16": lambda: RedshiftServerless(
            stack, "L", name="l", vpc=vpc, lakehouse=lakehouse, base_capacity=16, max_capacity=8
        ),
        "write one such as emr-7": lambda: EmrServerlessSpark(
            stack, "M", name="m", vpc=vpc, lakehouse=lakehouse, release="emr-5.36"
        ),
        "max_vcpu is 2": lambda: EmrServerlessSpark(
            stack, "N", name="n", vpc=vpc, lakehouse=lakehouse, max_vcpu=2
        ),
        "idle_minutes is 0": lambda: EmrServerlessSpark(
            stack, "O", name="o", vpc=vpc, lakehouse=lakehouse, idle_minutes=0
        ),
        "prefix is 'firehose-errors/a'": lambda: FirehoseLanding(
            stack, "P", name="p", prefix="firehose-errors/a", lakehouse=lakehouse
        ),
        "buffer_seconds is 901": lambda: FirehoseLanding(
            stack, "Q", name="q", prefix="a", lakehouse=lakehouse, buffer_seconds=901
        ),
        "buffer_mb is 0": lambda: FirehoseLanding(
            stack, "R", name="r", prefix="a", lakehouse=lakehouse, buffer_mb=0
        ),
        "has to end in `/`": lambda: enforce_conditional_writes(bucket, prefix="*"),
    }
    for said, make in refused.items():
        with pytest.raises(ValueError, match=re.escape(said)):
            make()
