"""The IAM statements of a template, as AWS would read them."""

from __future__ import annotations

import json
import re
import sys
import types
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

from tests.stacks.house_rules import Template
from tests.stacks.intrinsics import Intrinsics

DOCUMENTS = {
    "AWS::IAM::Policy": ("PolicyDocument",),
    "AWS::IAM::ManagedPolicy": ("PolicyDocument",),
    "AWS::IAM::Role": ("AssumeRolePolicyDocument",),
    "AWS::S3::BucketPolicy": ("PolicyDocument",),
    "AWS::KMS::Key": ("KeyPolicy",),
}
_TRUST = "AWS::IAM::Role"  # a role's own document says who may assume it, and names no resource


def documents(template: Template) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield logical id, type and policy document of everything that holds one."""
    for name, resource in sorted(template.get("Resources", {}).items()):
        properties = resource.get("Properties", {})
        for key in DOCUMENTS.get(resource["Type"], ()):
            yield name, resource["Type"], properties[key]
        for inline in properties.get("Policies", []) if "Role" in resource["Type"] else []:
            yield f"{name}/{inline['PolicyName']}", "AWS::IAM::Policy", inline["PolicyDocument"]


def statements(templates: dict[str, Template], path: str) -> dict[str, list[dict[str, Any]]]:
    """Return the statements of the stack at `path` by logical id, references spelled out."""
    resolve = Intrinsics(templates).resolve
    found: dict[str, list[dict[str, Any]]] = {}
    for name, _, document in documents(templates[path]):
        found.setdefault(name, []).extend(resolve(document, path)["Statement"])
    masked = json.loads(re.sub(r"[0-9a-f]{64}", "HASH", json.dumps(found)))
    for statement in (one for each in masked.values() for one in each):
        resources = statement.get("Resource")
        if isinstance(resources, list) and "HASH" in str(resources):
            # Which digest is the lower one changes with the code.
            resources.sort(key=str)
    return masked  # type: ignore[no-any-return]


def problems(templates: dict[str, Template], path: str) -> list[str]:
    """What parliament finds: unknown actions, malformed ARNs, conditions of the wrong type.

    Left to cdk-nag, which judges them with reasons: wildcards. Left out, because parliament is
    wrong about it: actions that take no resource beside others that do, in one statement.
    """
    analyze = _parliament().analyze_policy_string
    resolve = Intrinsics(templates).resolve
    return [
        f"{name}: {finding.issue} {finding.detail} {finding.location.get('string', '')}".rstrip()
        for name, kind, document in documents(templates[path])
        if kind != _TRUST
        for finding in analyze(json.dumps(resolve(document, path))).findings
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
