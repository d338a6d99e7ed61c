"""What a destroyed stage leaves can be imported into the next one: `cdk import`, docs/deploy.md.

CloudFormation imports a resource that its type can identify and read, that has a DeletionPolicy,
and whose template names nothing that is not there yet ("Import AWS resources into a CloudFormation
stack", AWS CloudFormation User Guide). The command line of the CDK leaves the rest of the stack to
the deployment after it.
"""

from __future__ import annotations

import copy
import json
import re
from typing import Any

import pytest

from tests.stacks.house_rules import Template
from tests.stacks.synthesis import ROOT, Assembly

pytestmark = pytest.mark.synth

STORAGE = ("dev/Storage", "prod/Storage", "clustered/Storage", "borrowed/Storage")


def kept(template: Template) -> dict[str, Any]:
    """What stays when the stack is destroyed, by logical id."""
    return {
        name: resource
        for name, resource in template["Resources"].items()
        if str(resource.get("DeletionPolicy")).startswith("Retain")
    }


def identifier(kind: str) -> list[str]:
    """The properties by which CloudFormation identifies a resource of a type that it can read."""
    from cfnlint.schema import PROVIDER_SCHEMA_MANAGER as SCHEMAS

    schema = SCHEMAS.get_resource_schema("us-east-1", kind).schema
    if "read" not in schema.get("handlers", {}):
        return []
    return [path.removeprefix("/properties/") for path in schema["primaryIdentifier"]]


def named(value: Any) -> set[str]:
    """Logical ids that a part of a template refers to."""
    text = json.dumps(value)
    found = set(re.findall(r'"Ref": "([^":]+)"', text))
    return found | set(re.findall(r'"Fn::GetAtt": \["([^"]+)"', text))


def not_importable(template: Template) -> list[str]:
    """Resources that stay and could not be imported, each with the reason."""
    there, found = kept(template), []
    for name, resource in there.items():
        if not identifier(resource["Type"]):
            found.append(f"{name}: {resource['Type']} cannot be identified")
        wanted = named(resource["Properties"]) | set(resource.get("DependsOn", []))
        missing = wanted - set(there) - set(template.get("Parameters", {}))
        if missing:
            found.append(f"{name}: needs {sorted(missing)}")
    return found


@pytest.mark.parametrize("path", STORAGE)
def test_what_stays_of_the_storage_can_be_imported_in_one_go(assembly: Assembly, path: str) -> None:
    template = assembly.templates[path]

    assert {resource["Type"] for resource in kept(template).values()} >= {"AWS::S3::Bucket"}
    assert not_importable(template) == []


def test_the_page_names_the_identifier_of_each_type(assembly: Assembly) -> None:
    page = (ROOT / "docs" / "deploy.md").read_text()
    _, _, section = page.partition("### Deploy again")
    kinds = {r["Type"] for path in STORAGE for r in kept(assembly.templates[path]).values()}

    assert kinds == {
        "AWS::S3::Bucket", "AWS::KMS::Key", "AWS::Kinesis::Stream", "AWS::Glue::Database",
    }  # fmt: skip
    for kind in kinds:
        (name,) = identifier(kind)
        assert f"| `{kind}` | `{name}` |" in section


def test_what_could_not_be_imported_is_caught(assembly: Assembly) -> None:
    planted = copy.deepcopy(assembly.templates["dev/Storage"])
    bucket = next(r for r in planted["Resources"].values() if r["Type"] == "AWS::S3::Bucket")
    bucket["DependsOn"] = ["LandingBucketPolicy"]
    bucket["Properties"]["Rule"] = {"Fn::GetAtt": ["HandoverKey", "Value"]}

    (said,) = not_importable(planted)
    assert said.endswith("needs ['HandoverKey', 'LandingBucketPolicy']")
    assert identifier("AWS::CloudFormation::CustomResource") == []
