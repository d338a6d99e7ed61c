"""What CloudFormation finds only while it deploys, found in the templates; see docs/deploy.md."""

from __future__ import annotations

import copy
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from stacks.picture import picture
from tests.stacks.deploying.metric_math import MetricMathError, Type, expressions, type_of
from tests.stacks.house_rules import Template
from tests.stacks.synthesis import ROOT, Assembly

pytestmark = pytest.mark.synth


def test_every_metric_math_expression_has_operands_that_go_together(assembly: Assembly) -> None:
    found = [
        (path, *each) for path, template in assembly.templates.items()
        for each in expressions(template)
    ]  # fmt: skip

    assert len(found) > 20
    for path, name, expression, ids in found:
        assert type_of(expression, ids) is Type.SERIES, (path, name)


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("1 - MIN([1, FILL(runs, 0)])", "a number inside"),
        ("MIN(runs)", "the result is a number"),
        ("FILL(0, runs)", "unsupported operand type(s) for FILL"),
        ("IF(1, runs, 0)", "unsupported operand type(s) for IF"),
        ("[runs] > 0", "unsupported operand type(s): an array of time series > a number"),
        ("run + 1", "there is no metric 'run'"),
        ("LEAST(runs, 1)", "LEAST is no function"),
        ("IF(runs > 0, 0, 1", "the end where ) has to be"),
    ],
)
def test_what_cloudwatch_would_refuse_is_caught(expression: str, said: str) -> None:
    with pytest.raises(MetricMathError, match=re.escape(said)):
        type_of(expression, ["runs"])


def groups_whose_hooks_come_late(template: Template) -> list[str]:
    """Groups with a hook of its own, made after the group, or that lack one of the two.

    That of a server has none: nothing waits for it, and it hands nothing over.
    """
    resources = template.get("Resources", {})
    late = [name for name, r in resources.items() if r["Type"] == "AWS::AutoScaling::LifecycleHook"]
    for name, resource in resources.items():
        properties = resource.get("Properties", {})
        if resource["Type"] == "AWS::AutoScaling::AutoScalingGroup":
            hooks = properties.get("LifecycleHookSpecificationList", [])
            names = {hook["LifecycleHookName"] for hook in hooks}
            of_nodes = not properties["AutoScalingGroupName"].endswith("-server")
            mixed = "MixedInstancesPolicy" in properties
            if mixed and of_nodes and names != {"ready", "drain"}:
                late.append(name)
    return late


def test_the_first_nodes_of_a_group_find_its_hooks(assembly: Assembly) -> None:
    for path, template in assembly.templates.items():
        assert groups_whose_hooks_come_late(template) == [], path
    planted = copy.deepcopy(assembly.templates["dev/Cluster-main"])
    planted["Resources"]["Hook"] = {"Type": "AWS::AutoScaling::LifecycleHook", "Properties": {}}
    assert groups_whose_hooks_come_late(planted) == ["Hook"]


def unpinned(template: Template) -> list[str]:
    """Programs that a build installs in whichever version is the newest that day."""
    locked = json.loads((ROOT / "package-lock.json").read_text())["packages"]
    cdk = locked["node_modules/aws-cdk"]["version"]
    found = []
    for resource in template.get("Resources", {}).values():
        if resource["Type"] == "AWS::CodeBuild::Project":
            text = json.dumps(resource["Properties"]["Source"])
            for name in re.findall(r"npm install -g ([\w@./-]+)", text):
                program, _, version = name.rpartition("@")
                exact = re.fullmatch(r"\d+\.\d+\.\d+", version)
                if not exact or (program == "aws-cdk" and version != cdk):
                    found.append(name)
    return found


def test_builds_install_the_locked_command_line(assembly: Assembly) -> None:
    template = assembly.templates["Pipeline"]

    assert json.dumps(template).count("npm install -g ") >= 3
    assert unpinned(template) == []
    for fault in ("npm install -g aws-cdk", "npm install -g aws-cdk@3.0.0", "npm install -g x@2"):
        planted = json.loads(re.sub(r"npm install -g aws-cdk@[\d.]+", fault, json.dumps(template)))
        assert set(unpinned(planted)) == {fault.rpartition(" ")[2]}


def untagged(template: Template, taggable: dict[str, str]) -> list[str]:
    """Resources that take tags and lack the one of the application."""
    return [
        name
        for name, resource in template.get("Resources", {}).items()
        if (key := taggable.get(resource["Type"]))
        and '"application"' not in json.dumps(resource.get("Properties", {}).get(key))
    ]


def tag_properties(assembly: Assembly) -> dict[str, str]:
    """The property with the tags, by type, for the types that the templates use and that have one.

    CloudFormation's schema of each type names it; cfn-lint brings them along.
    """
    from cfnlint.schema import PROVIDER_SCHEMA_MANAGER as SCHEMAS

    types = {r["Type"] for t in assembly.templates.values() for r in t["Resources"].values()}
    found = {}
    for kind in types:
        if kind.startswith("AWS::") and kind != "AWS::CDK::Metadata":
            schema: dict[str, Any] = SCHEMAS.get_resource_schema("us-east-1", kind).schema
            path = schema.get("tagging", {}).get("tagProperty", "/properties/Tags")
            if Path(path).name in schema["properties"]:
                found[kind] = Path(path).name
    return found


def test_the_tag_of_the_application_reaches_every_resource(assembly: Assembly) -> None:
    taggable = tag_properties(assembly)
    assert {"AWS::S3::Bucket", "AWS::IAM::Role", "AWS::SSM::Parameter"} <= set(taggable)

    bare = {
        f"{path}/{name}"
        for path, template in assembly.templates.items()
        for name in untagged(template, taggable)
    }
    # The CDK's own; the tag of their stack, which CloudFormation hands on, reaches them.
    assert {name for name in bare if "/CustomVpcRestrictDefaultSG" not in name} == set()
    stacks = [
        artifact
        for manifest in assembly.directory.rglob("manifest.json")
        for artifact in json.loads(manifest.read_text())["artifacts"].values()
        if artifact["type"] == "aws:cloudformation:stack"
    ]
    assert len(stacks) == len(assembly.templates)
    for stack in stacks:
        assert stack["properties"]["tags"]["application"] == "polynya", stack["displayName"]
    planted = copy.deepcopy(assembly.templates["dev/Storage"])
    for resource in planted["Resources"].values():
        resource.get("Properties", {}).pop("Tags", None)
    assert len(untagged(planted, taggable)) > 5


def test_athena_writes_to_a_folder(assembly: Assembly) -> None:
    """`s3://BUCKET` without a slash is refused when the first query runs."""
    text = json.dumps(assembly.templates["dev/Consumption"])

    (location,) = re.findall(r'"OutputLocation": (\{.*?\]\]\})', text)
    assert location.endswith('"/"]]}')


NAMES = {
    "AWS::Glue::Database": ("DatabaseInput", "Name"),
    "AWS::KMS::Key": ("KeyName",),
    "AWS::Kinesis::Stream": ("Name",),
    "AWS::Logs::LogGroup": ("LogGroupName",),
    "AWS::RedshiftServerless::Namespace": ("NamespaceName",),
    "AWS::S3::Bucket": ("BucketName",),
}
# What is kept under a name of its own is in the way of a stage that is deployed again: how to go on
# is said in docs/deploy.md, "Deploy again".
KEPT_BY_NAME = {"AWS::Glue::Database", "AWS::RedshiftServerless::Namespace"}


def kept_by_name(template: Template) -> set[str]:
    """Types of what stays behind under a name that the next deployment asks for again."""
    found = set()
    for resource in template["Resources"].values():
        value: Any = resource.get("Properties", {})
        for part in NAMES.get(resource["Type"], ("",)):
            value = value.get(part) if isinstance(value, dict) else None
        # A name that is made of a generated one is as good as generated.
        if isinstance(value, str) and str(resource.get("DeletionPolicy")).startswith("Retain"):
            found.add(resource["Type"])
    return found


def test_what_stays_behind_is_in_nobodys_way(assembly: Assembly) -> None:
    found = {kind for template in assembly.templates.values() for kind in kept_by_name(template)}

    assert found == KEPT_BY_NAME
    page = (ROOT / "docs" / "deploy.md").read_text()
    assert "### Deploy again" in page
    planted = copy.deepcopy(assembly.templates["prod/Storage"])
    for resource in planted["Resources"].values():
        if resource["Type"] == "AWS::S3::Bucket":
            resource["Properties"]["BucketName"] = "polynya-prod"
    assert kept_by_name(planted) == {"AWS::Glue::Database", "AWS::S3::Bucket"}


def test_databases_that_are_there_are_not_made_but_written(assembly: Assembly) -> None:
    assert "AWS::Glue::Database" not in json.dumps(assembly.templates["borrowed/Storage"])
    text = json.dumps(assembly.templates["borrowed/Cluster-quick"])
    assert "database/theirs" in text
    assert "database/theirs_internal" in text


def test_a_pinned_image_is_the_one_that_is_launched(assembly: Assembly) -> None:
    (image,) = re.findall(
        r'"ImageId": "([^"]+)"', json.dumps(assembly.templates["borrowed/Cluster-quick"])
    )
    assert image == "ami-0a1b2c3d4e5f60718"
    text = json.dumps(assembly.templates["dev/Cluster-main"])
    assert '"ImageId": {"Ref"' in text
    # By its id: whoever updates a group whose template names a parameter may have to read that.
    assert "resolve:ssm" not in text


def open_trusts(template: Template) -> list[str]:
    """Services that may act for any account: in trusts of roles, on topics and on their keys.

    Those that act for who calls them, such as EC2 and Lambda, have no such condition.
    """
    own = {"ec2", "lambda", "codebuild", "codepipeline", "vpc-flow-logs", "events", "logging.s3"}
    found = []
    for name, resource in template["Resources"].items():
        properties = resource.get("Properties", {})
        for key in ("AssumeRolePolicyDocument", "KeyPolicy", "PolicyDocument"):
            for statement in properties.get(key, {}).get("Statement", []):
                principal = statement.get("Principal")
                services = principal.get("Service", []) if isinstance(principal, dict) else []
                for service in [services] if isinstance(services, str) else services:
                    ours = "aws:SourceAccount" in json.dumps(statement.get("Condition", {}))
                    if service.removesuffix(".amazonaws.com") not in own and not ours:
                        found.append(f"{name}: {service}")
    return found


def test_no_service_acts_for_another_account(assembly: Assembly) -> None:
    for path, template in assembly.templates.items():
        assert open_trusts(template) == [], path
    planted = json.loads(
        json.dumps(assembly.templates["clustered/Consumption"]).replace("aws:SourceAccount", "x")
    )
    assert any("quicksight" in line for line in open_trusts(planted))


def test_endpoints_let_through_what_is_ours(assembly: Assembly) -> None:
    for path in ("dev/Network", "borrowed/Network"):
        resources = assembly.templates[path]["Resources"].values()
        endpoints = [r["Properties"] for r in resources if r["Type"] == "AWS::EC2::VPCEndpoint"]
        assert endpoints
        linux = [("AmazonLinux", "s3:GetObject")]
        for endpoint in endpoints:
            ours, *others = endpoint["PolicyDocument"]["Statement"]
            (condition,) = ours["Condition"].values()
            assert "aws:ResourceAccount" in condition
            gateway = endpoint["VpcEndpointType"] == "Gateway"
            assert [(o["Sid"], o["Action"]) for o in others] == (linux if gateway else [])


@pytest.mark.parametrize(
    ("stage", "healthy"), [("dev/Cluster-main", (0, 100)), ("prod/Cluster-main", (100, 150))]
)
def test_a_refresh_fits_into_the_quota_where_the_group_may_be_empty(
    assembly: Assembly, stage: str, healthy: tuple[int, int]
) -> None:
    (policy,) = [
        resource["UpdatePolicy"]["AutoScalingInstanceRefresh"]["Preferences"]
        for resource in assembly.templates[stage]["Resources"].values()
        if "UpdatePolicy" in resource
    ]
    assert (policy["MinHealthyPercentage"], policy["MaxHealthyPercentage"]) == healthy


def test_the_picture_of_the_page_is_that_of_the_templates(assembly: Assembly) -> None:
    """After a change on purpose: POLYNYA_TEST_SNAPSHOT=write, and look at the difference."""
    stacks = {
        path.removeprefix("dev/"): template
        for path, template in assembly.templates.items()
        if path.startswith("dev/")
    }
    page = ROOT / "docs" / "deploy.md"
    before, fence, after = page.read_text().partition("```mermaid\n")
    assert fence
    if os.environ.get("POLYNYA_TEST_SNAPSHOT") == "write":
        page.write_text(before + fence + picture(stacks) + after[after.index("```") :])

    drawn = page.read_text().partition("```mermaid\n")[2].partition("```")[0]
    assert drawn == picture(stacks)
    assert drawn.count("Object Created") == 2
