"""The IAM statements of a template, as AWS would read them."""

from __future__ import annotations

import json
import re
import sys
import types
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

DOCUMENTS = {
    "AWS::IAM::Policy": ("PolicyDocument",),
    "AWS::IAM::ManagedPolicy": ("PolicyDocument",),
    "AWS::IAM::Role": ("AssumeRolePolicyDocument",),
    "AWS::S3::BucketPolicy": ("PolicyDocument",),
    "AWS::KMS::Key": ("KeyPolicy",),
}
_TRUST = "AWS::IAM::Role"  # a role's own document says who may assume it, and names no resource
_ARNS = {
    "AWS::S3::Bucket": "s3:::{name}",
    "AWS::KMS::Key": "kms:eu-central-1:123456789012:key/1a2b3c4d-0000-4000-8000-000000000000",
    "AWS::Logs::LogGroup": "logs:eu-central-1:123456789012:log-group:{name}:*",
    "AWS::Kinesis::Stream": "kinesis:eu-central-1:123456789012:stream/{name}",
    "AWS::IAM::Role": "iam::123456789012:role/{name}",
    "AWS::Lambda::Function": "lambda:eu-central-1:123456789012:function:{name}",
    "AWS::CodeBuild::Project": "codebuild:eu-central-1:123456789012:project/{name}",
}
_PSEUDO = {"AWS::Partition": "aws", "AWS::Region": "eu-central-1", "AWS::AccountId": "123456789012"}


def documents(template: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield logical id, type and policy document of everything that holds one."""
    for name, resource in sorted(template.get("Resources", {}).items()):
        properties = resource.get("Properties", {})
        for key in DOCUMENTS.get(resource["Type"], ()):
            yield name, resource["Type"], properties[key]
        for inline in properties.get("Policies", []) if "Role" in resource["Type"] else []:
            yield f"{name}/{inline['PolicyName']}", "AWS::IAM::Policy", inline["PolicyDocument"]


def statements(template: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Return the statements of a template by logical id, references spelled out."""
    found: dict[str, list[dict[str, Any]]] = {}
    for name, _, document in documents(template):
        found.setdefault(name, []).extend(resolved(document, template)["Statement"])
    return json.loads(re.sub(r"[0-9a-f]{64}", "HASH", json.dumps(found)))


def problems(template: dict[str, Any]) -> list[str]:
    """What parliament finds: unknown actions, malformed ARNs, conditions of the wrong type.

    Left to cdk-nag, which judges them with reasons: wildcards. Left out, because parliament is
    wrong about it: actions that take no resource beside others that do, in one statement.
    """
    analyze = _parliament().analyze_policy_string
    return [
        f"{name}: {finding.issue} {finding.detail} {finding.location.get('string', '')}".rstrip()
        for name, kind, document in documents(template)
        if kind != _TRUST
        for finding in analyze(json.dumps(resolved(document, template))).findings
        if finding.issue not in {"RESOURCE_STAR", "RESOURCE_MISMATCH"}
    ]


def _parliament() -> Any:
    """Import parliament, which asks for a module that setuptools had until version 81."""
    if "pkg_resources" not in sys.modules:
        module = types.ModuleType("pkg_resources")
        module.resource_filename = lambda package, name: str(files(package) / name)
        sys.modules["pkg_resources"] = module
    import parliament

    return parliament


def resolved(value: Any, template: dict[str, Any]) -> Any:
    """Replace intrinsic functions by text that has the shape of what they return."""
    if isinstance(value, list):
        return [resolved(item, template) for item in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        ((function, argument),) = value.items()
        if function == "Ref":
            return _PSEUDO.get(argument, argument.lower())
        if function == "Fn::GetAtt":
            if argument[1] != "Arn":
                return "-".join(argument).lower()
            shape = _ARNS[template["Resources"][argument[0]]["Type"]]
            return f"arn:aws:{shape}".format(name=argument[0].lower())
        if function == "Fn::ImportValue":
            return _imported(argument)
        if function == "Fn::Join":
            return argument[0].join(map(str, resolved(argument[1], template)))
        if function == "Fn::Sub" and isinstance(argument, str):
            return re.sub(r"\$\{([^}]+)\}", lambda m: _PSEUDO.get(m[1], m[1].lower()), argument)
    return {key: resolved(item, template) for key, item in value.items()}


def _imported(export: str) -> str:
    """What another stack exports, by the kind of resource that the CDK names in the export."""
    name = export.partition(":")[2].lower()
    kinds = (("bucket", "AWS::S3::Bucket"), ("key", "AWS::KMS::Key"))
    for word, kind in (*kinds, ("stream", "AWS::Kinesis::Stream")):
        if word in name and "getatt" in name:
            return f"arn:aws:{_ARNS[kind]}".format(name=name)
    return name
