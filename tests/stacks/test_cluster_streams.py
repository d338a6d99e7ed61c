"""A cluster that reads streams or databases: ways out and none in, rights where they are named."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.stacks.house_rules import resources
from tests.stacks.synthesis import Assembly

pytestmark = pytest.mark.synth


def group_of(template: dict[str, Any]) -> dict[str, Any]:
    """The security group of the nodes."""
    (found,) = resources(template, "AWS::EC2::SecurityGroup").values()
    return found


def purposes(template: dict[str, Any]) -> set[str]:
    """The ids of all statements of roles."""
    return {
        statement["Sid"]
        for policy in resources(template, "AWS::IAM::Policy").values()
        for statement in policy["PolicyDocument"]["Statement"]
        if "Sid" in statement
    }


def test_nodes_reach_brokers_by_a_way_out_and_open_none_in(assembly: Assembly) -> None:
    steady = group_of(assembly.templates["clustered/Cluster-steady"])
    ways = [(rule.get("CidrIp"), rule["ToPort"]) for rule in steady["SecurityGroupEgress"]]
    assert ways == [("0.0.0.0/0", 443), ("10.50.0.0/16", 9098)]
    assert "SecurityGroupIngress" not in steady

    # Of a security group that exists only the nodes' side is made, and the owner told of it.
    theirs = assembly.templates["borrowed/Cluster-quick"]
    way = group_of(theirs)["SecurityGroupEgress"][1]
    assert (way["DestinationSecurityGroupId"], way["ToPort"]) == ("sg-0a1b2c3d", 9096)
    assert resources(theirs, "AWS::EC2::SecurityGroupIngress") == {}
    assert "NodeSecurityGroupId" in theirs["Outputs"]


def test_a_cluster_without_streams_has_no_right_for_them(assembly: Assembly) -> None:
    with_streams = purposes(assembly.templates["clustered/Cluster-steady"])
    without = purposes(assembly.templates["clustered/Cluster-cheap"])

    assert with_streams - without >= {
        "LandStreams", "FindStreams", "ReadStreams", "DecryptStreams", "ConnectToMsk", "ReadTopics",
        "UseGroups", "ListSource", "ReadSource", "DecryptSources", "ReadSecrets", "DecryptSecrets",
    }  # fmt: skip
    assert not any("Stream" in one or "Topic" in one for one in without)


def test_nodes_that_capture_reach_their_database_their_secret_and_their_folder(
    assembly: Assembly,
) -> None:
    template = assembly.templates["borrowed/Cluster-quick"]
    rights = {
        statement["Sid"]: statement
        for policy in resources(template, "AWS::IAM::Policy").values()
        for statement in policy["PolicyDocument"]["Statement"]
        if "Sid" in statement
    }

    # One way out beside TLS for each that is named, and none in.
    ways = [
        (rule.get("CidrIp") or rule["DestinationSecurityGroupId"], rule["ToPort"])
        for rule in group_of(template)["SecurityGroupEgress"]
    ]
    assert ways == [("0.0.0.0/0", 443), ("sg-0a1b2c3d", 9096), ("sg-0a1b2c3d", 5432)]
    assert "SecurityGroupIngress" not in group_of(template)
    assert "NodeSecurityGroupId" in template["Outputs"]
    # Only the secrets of its capture and its mirror, only these folders, nothing of other sources.
    secrets = {arn.rpartition(":secret:")[2] for arn in rights["ReadSecrets"]["Resource"]}
    assert secrets == {"shop/postgres-??????", "snowflake/loader-??????"}
    assert rights["ReadSecrets"]["Action"] == "secretsmanager:GetSecretValue"
    landed = str(rights["LandStreams"]["Resource"])
    assert all(f"/{folder}/*" in landed for folder in ("clicks", "shop_db"))
    assert {"ReadStreams", "ReadTopics", "ReadSource"}.isdisjoint(rights)
    # In the private subnets of the stage, without an address outside.
    assert "AssociatePublicIpAddress" not in json.dumps(template)
