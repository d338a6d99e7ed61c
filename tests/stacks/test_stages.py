"""What a stage file makes of the stacks: brought along, kept, removable, promoted."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.stacks.conftest import Assembly
from tests.stacks.house_rules import resources, violations

pytestmark = pytest.mark.synth


def kinds(assembly: Assembly, path: str) -> Counter[str]:
    """How many resources of each type a stack has."""
    return Counter(r["Type"] for r in assembly.templates[path].get("Resources", {}).values())


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


def test_blind_writes_to_the_coordination_prefix_are_denied(assembly: Assembly) -> None:
    policies = resources(assembly.templates["prod/Storage"], "AWS::S3::BucketPolicy")
    statements = policies["ConfigurationBucketPolicyFC7D3CDC"]["PolicyDocument"]["Statement"]

    (found,) = [s for s in statements if s.get("Sid") == "ConditionalWritesOnly"]
    assert (found["Effect"], found["Action"]) == ("Deny", "s3:PutObject")
    assert found["Principal"] == {"AWS": "*"}
    assert found["Resource"]["Fn::Join"][1][1] == "/coordination/*"
    assert found["Condition"] == {
        "Null": {"s3:if-none-match": "true", "s3:if-match": "true"},
        "Bool": {"s3:ObjectCreationOperation": "true"},
    }


def test_what_is_brought_along_is_not_made(assembly: Assembly) -> None:
    network, storage = kinds(assembly, "borrowed/Network"), kinds(assembly, "borrowed/Storage")

    assert (network["AWS::EC2::VPC"], network["AWS::EC2::VPCEndpoint"]) == (0, 1)
    # The warehouse and the access logs are ours.
    assert storage["AWS::S3::Bucket"] == 2
    assert storage["AWS::KMS::Key"] == storage["AWS::Kinesis::Stream"] == 0


def test_data_goes_only_when_both_keys_are_turned(assembly: Assembly) -> None:
    assert violations(assembly.templates["halfway/Storage"]) == []
    removable = violations(assembly.templates["removable/Storage"])
    assert {line.split(": ")[1] for line in removable} == {"is not kept"}
    assert len(removable) == 7
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
