"""The gates that every template passes, and that each of them stops what it is there for."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.stacks.house_rules import STATEFUL, violations
from tests.stacks.policies import problems, statements
from tests.stacks.synthesis import Assembly, findings

pytestmark = pytest.mark.synth

SNAPSHOT = Path(__file__).with_name("iam_statements.json")
# How the CDK writes: dependencies that a reference has made already, Join where Sub would do. A
# stack is handed the whole lakehouse, and uses of it what it needs.
STYLE = {"W3005", "E3703", "W2001"}
# The pipeline holds the same stages again.
OWN = (
    "dev/Network", "dev/Storage", "Pipeline", "clustered/Cluster-cheap", "clustered/Cluster-steady",
    "clustered/Gateway", "clustered/Consumption", "clustered/Server", "borrowed/Gateway",
)  # fmt: skip


def test_synthesis_finds_nothing_but_what_people_are_to_read(assembly: Assembly) -> None:
    """CloudFormation's own rules and cdk-nag, over every stage, warnings included."""
    quiet = ("Annotation::polynya:machineImage", "Annotation::polynya:quota")
    found = sorted(findings(assembly.directory))
    assert [line for line in found if not line.startswith(quiet)] == [
        "Annotation::polynya:conditionalWrites borrowed/Storage",
        "Annotation::polynya:notify Pipeline/dev/Cluster-main",
        "Annotation::polynya:notify Pipeline/prod/Cluster-main",
        "Annotation::polynya:notify borrowed/Cluster-quick",
        "Annotation::polynya:notify dev/Cluster-main",
        "Annotation::polynya:notify prod/Cluster-main",
        "Annotation::polynya:package clustered/Cluster-asleep/Jobs-x86_64",
        "Annotation::polynya:package clustered/Cluster-steady/Runtime",
        "Annotation::polynya:removeData halfway",
        "Annotation::polynya:unreachedLogin clustered/Server",
        "Annotation::polynya:unreachedMirrors clustered/Cluster-steady",
    ]
    # The one with an image of its own is not among them.
    unpinned = {line.split()[1] for line in found if "machineImage" in line}
    assert unpinned >= {"dev/Cluster-main"}
    assert "borrowed/Cluster-quick" not in unpinned
    assert {line.split()[1] for line in found if "quota" in line} == {
        "borrowed", "clustered", "dev", "prod",
    }  # fmt: skip


def test_a_public_bucket_and_a_wildcard_do_not_get_through_synthesis(tmp_path: Path) -> None:
    import aws_cdk as cdk
    import cdk_nag
    from aws_cdk import aws_iam as iam
    from aws_cdk import aws_s3 as s3

    app = cdk.App(outdir=str(tmp_path))
    stack = cdk.Stack(app, "Planted")
    s3.CfnBucket(stack, "Open")
    role = iam.Role(stack, "Role", assumed_by=iam.ServicePrincipal("ec2.amazonaws.com"))
    role.add_to_policy(iam.PolicyStatement(actions=["s3:*"], resources=["*"]))
    cdk.Validations.of(app).add_plugins(cdk_nag.AwsSolutionsChecks(app))

    with pytest.raises(RuntimeError, match="ValidationFailed"):
        app.synth()
    found = {line.split()[0].split("[")[0] for line in findings(tmp_path)}
    assert {"AwsSolutions-S1", "AwsSolutions-S10", "AwsSolutions-IAM5"} <= found


def test_templates_keep_the_rules_of_the_house(assembly: Assembly) -> None:
    for path, template in assembly.templates.items():
        if not path.startswith("removable"):
            assert violations(template) == [], path


def _set(*path: str, to: Any) -> Callable[[dict[str, Any]], None]:
    """Return an edit that sets one value below the resources of a template."""

    def edit(template: dict[str, Any]) -> None:
        place = template["Resources"]
        for part in path[:-1]:
            place = place[part]
        place[path[-1]] = to

    return edit


BUCKET, STREAM = "LandingBucket6D60388F", "WorkloadStream8DD720F8"
INGRESS = {"GroupId": "sg", "IpProtocol": "tcp", "FromPort": 443, "ToPort": 443}

TRUSTING = {
    "Type": "AWS::IAM::Role",
    "Properties": {
        "AssumeRolePolicyDocument": {
            "Statement": [
                {
                    "Action": "sts:AssumeRole",
                    "Effect": "Allow",
                    "Principal": {"Service": "glue.amazonaws.com"},
                }
            ]
        }
    },
}
LAUNCHING = {
    "Type": "AWS::IAM::Policy",
    "Properties": {
        "PolicyDocument": {
            "Statement": [
                {
                    "Action": ["ec2:RunInstances"],
                    "Effect": "Allow",
                    "Resource": "*",
                    "Condition": {"ArnLike": {"ec2:LaunchTemplate": "arn:own"}},
                }
            ]
        }
    },
}
LISTENING = {
    "Type": "AWS::Events::Rule",
    "Properties": {"EventPattern": {"detail": {"$or": [{"bucket": {"name": ["landing"]}}]}}},
}


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (_set("Nat", to={"Type": "AWS::EC2::NatGateway"}), "Nat: AWS::EC2::NatGateway leads out"),
        (
            _set("In", to={"Type": "AWS::EC2::SecurityGroupIngress",
                           "Properties": INGRESS | {"CidrIp": "0.0.0.0/0"}}),
            "In: inbound rule (443, 443) from 0.0.0.0/0",
        ),
        (
            _set("In", to={"Type": "AWS::EC2::SecurityGroupIngress",
                           "Properties": INGRESS | {"CidrIp": "10.0.0.0/16", "FromPort": 22}}),
            "In: inbound rule (22, 443) from 10.0.0.0/16",
        ),
        (_set(BUCKET, "DeletionPolicy", to="Delete"), f"{BUCKET}: is not kept"),
        (_set(STREAM, "UpdateReplacePolicy", to="Delete"), f"{STREAM}: is not kept"),
        (_set(STREAM, "Properties", to={}), f"{STREAM}: is not encrypted"),
        (_set("DataKey17AFBB84", "Properties", "EnableKeyRotation", to=0), "does not rotate"),
        (_set(BUCKET, "Properties", "BucketEncryption", to={}), f"{BUCKET}: is encrypted with"),
        (
            _set(BUCKET, "Properties", "PublicAccessBlockConfiguration", "BlockPublicAcls", to=0),
            f"{BUCKET}: can be public",
        ),
        (_set(BUCKET, "Properties", "VersioningConfiguration", to={}), "keeps no versions"),
        (_set("LandingBucketPolicyA8222AB4", to={"Type": "X"}), f"{BUCKET}: answers without TLS"),
        (_set("Trusting", to=TRUSTING), "Trusting: trusts glue.amazonaws.com on behalf of any"),
        (_set("Launching", to=LAUNCHING), "Launching: launches instances with more than"),
        (_set("Listening", to=LISTENING), "Listening: has an `$or` that EventBridge takes"),
    ],
)  # fmt: skip
def test_each_rule_of_the_house_stops_its_fault(
    assembly: Assembly, edit: Callable[[dict[str, Any]], None], said: str
) -> None:
    template = copy.deepcopy(assembly.templates["prod/Storage"])

    edit(template)

    (found,) = violations(template)
    assert said in found


def test_cfn_lint_knows_every_property_and_stops_one_that_it_does_not(assembly: Assembly) -> None:
    from cfnlint.config import ConfigMixIn
    from cfnlint.decode.decode import decode_str
    from cfnlint.runner import Runner

    # One for all templates: reading its rules takes half a second.
    linter = Runner(ConfigMixIn(regions=["eu-central-1"]))

    def lint(template: dict[str, Any]) -> list[Any]:
        read, errors = decode_str(json.dumps(template))
        return errors or list(linter.validate_template(read))

    for path in (*OWN, "borrowed/Network", "borrowed/Storage"):
        assert [
            f"{m.rule.id} {m.message} {m.path}"
            for m in lint(assembly.templates[path])
            if m.rule.id not in STYLE
        ] == [], path
    planted = copy.deepcopy(assembly.templates["prod/Storage"])
    planted["Resources"][STREAM]["Properties"]["ShardCout"] = 1
    assert "E3002" in {m.rule.id for m in lint(planted)}


def test_parliament_knows_every_action_and_stops_one_that_it_does_not(assembly: Assembly) -> None:
    for path in OWN:
        assert problems(assembly.templates, path) == [], path
    planted = copy.deepcopy(assembly.templates["dev/Storage"])
    policy = planted["Resources"]["ConfigurationBucketPolicyFC7D3CDC"]["Properties"]
    policy["PolicyDocument"]["Statement"][-1]["Action"] = "s3:PutObjectt"
    (found,) = problems({**assembly.templates, "dev/Storage": planted}, "dev/Storage")
    assert "UNKNOWN_ACTION" in found


def test_iam_statements_change_only_on_purpose(assembly: Assembly) -> None:
    """After a change on purpose: POLYNYA_TEST_SNAPSHOT=write, and review the difference."""
    now = {path: statements(assembly.templates, path) for path in OWN}
    if os.environ.get("POLYNYA_TEST_SNAPSHOT") == "write":
        SNAPSHOT.write_text(json.dumps(now, indent=1) + "\n")

    assert now == json.loads(SNAPSHOT.read_text())


def test_what_holds_data_keeps_its_logical_id(assembly: Assembly) -> None:
    """A changed logical id replaces the resource: this list changes only on purpose."""
    pinned = {
        "Network": ["NetworkFlowLogGroup4F8CEEEF"],
        "Storage": [
            "AccessLogsBucketCD784A59", BUCKET, "ConfigurationBucket4C9EE6EF", "DataKey17AFBB84",
            STREAM, "WarehouseBucket56A35794",
        ],
    }  # fmt: skip
    for prefix in ("dev", "prod", "Pipeline/dev", "Pipeline/prod"):
        for stack, expected in pinned.items():
            resources = assembly.templates[f"{prefix}/{stack}"]["Resources"]
            found = {name for name, resource in resources.items() if resource["Type"] in STATEFUL}
            databases = {name for name in found if name.startswith("Catalog")}
            stream = {STREAM} if prefix.endswith("dev") else set()  # it has none
            assert found - databases == set(expected) - stream, prefix
