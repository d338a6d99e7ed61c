"""How large the policies of a template are once CloudFormation has put in what they refer to.

AWS counts a policy when it is created, in the middle of a deployment, and without white space
("IAM and AWS STS quotas", IAM User Guide). References are counted as long as they can get.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

MANAGED_POLICY: Final = 6_144
INLINE_POLICIES: Final = 10_240
"""Of all inline policies of a role together."""

MANAGED_POLICIES_OF_A_ROLE: Final = 10
TRUST_POLICY: Final = 2_048
ENDPOINT_POLICY: Final = 20_480
BUCKET_POLICY: Final = 20_480
KEY_POLICY: Final = 32_768

_DOCUMENTS: Final = {
    "AWS::EC2::VPCEndpoint": ("PolicyDocument", ENDPOINT_POLICY),
    "AWS::IAM::ManagedPolicy": ("PolicyDocument", MANAGED_POLICY),
    "AWS::IAM::Role": ("AssumeRolePolicyDocument", TRUST_POLICY),
    "AWS::KMS::Key": ("KeyPolicy", KEY_POLICY),
    "AWS::S3::BucketPolicy": ("PolicyDocument", BUCKET_POLICY),
}
_PSEUDO: Final = {
    "AWS::AccountId": "1" * 12,
    "AWS::Partition": "aws-cn",
    "AWS::Region": "ap-northeast-1",
    "AWS::URLSuffix": "amazonaws.com.cn",
}
_NAME: Final = "n" * 64
"""No generated name is longer: those of roles and functions have 64 characters, of buckets 63."""

_ARN: Final = f"arn:aws-cn:autoscaling:ap-northeast-1:{'1' * 12}:"
_NAMED_BY: Final = ("BucketName", "RoleName", "FunctionName", "TopicName", "LogGroupName", "Name")


@dataclass(frozen=True, slots=True)
class PolicySize:
    """The size of a policy, or the number of a role's policies, and the limit of AWS.

    `resource` is the logical id of what has it, `what` says in words what is counted.
    """

    resource: str
    what: str
    size: int
    limit: int


def policy_sizes(template: Mapping[str, Any]) -> Iterator[PolicySize]:
    """Yield the size of every policy of a template."""
    resources = template.get("Resources", {})
    inline: dict[str, int] = defaultdict(int)
    managed: dict[str, int] = defaultdict(int)
    for name, resource in resources.items():
        properties = resource.get("Properties", {})
        if resource["Type"] in _DOCUMENTS:
            key, limit = _DOCUMENTS[resource["Type"]]
            if key in properties:
                size = _characters(properties[key], template)
                yield PolicySize(name, "characters of its policy", size, limit)
        if resource["Type"] == "AWS::IAM::Role":
            managed[name] += len(properties.get("ManagedPolicyArns", []))
            for policy in properties.get("Policies", []):
                inline[name] += _characters(policy["PolicyDocument"], template)
        for role in properties.get("Roles", []) if "Policy" in resource["Type"] else []:
            holder = role["Ref"] if isinstance(role, dict) and "Ref" in role else str(role)
            if resource["Type"] == "AWS::IAM::Policy":
                inline[holder] += _characters(properties["PolicyDocument"], template)
            elif resource["Type"] == "AWS::IAM::ManagedPolicy":
                managed[holder] += 1
    for name, size in inline.items():
        yield PolicySize(name, "characters of its inline policies", size, INLINE_POLICIES)
    for name, number in managed.items():
        yield PolicySize(name, "managed policies", number, MANAGED_POLICIES_OF_A_ROLE)


def _characters(document: Any, template: Mapping[str, Any]) -> int:
    return len(json.dumps(_rendered(document, template), separators=(",", ":")))


def _rendered(value: Any, template: Mapping[str, Any]) -> Any:
    """Return a value with text in place of every reference."""
    match value:
        case list():
            return [_rendered(each, template) for each in value]
        case {"Ref": str() as name}:
            return _PSEUDO.get(name) or _referred(name, template)
        case {"Fn::GetAtt": [str() as name, str() as attribute]}:
            resource = _referred(name, template)
            return _arn(name, resource, template) if attribute.endswith("Arn") else resource
        case {"Fn::Join": [str() as separator, list() as parts]}:
            return separator.join(str(_rendered(part, template)) for part in parts)
        case {"Fn::Sub": str() as text}:
            for name, pseudo in _PSEUDO.items():
                text = text.replace(f"${{{name}}}", pseudo)
            return text
        case dict() if len(value) == 1 and next(iter(value)).startswith("Fn::"):
            return f"{_ARN}{_NAME}"
        case dict():
            return {key: _rendered(each, template) for key, each in value.items()}
    return value


def _referred(name: str, template: Mapping[str, Any]) -> str:
    """Return a text as long as the name of a resource, or the value of a parameter."""
    parameter = template.get("Parameters", {}).get(name)
    if parameter is not None:
        return f"{_ARN}{_NAME}" if str(parameter.get("Default", "")).endswith("-arn") else _NAME
    properties = template.get("Resources", {}).get(name, {}).get("Properties", {})
    named = (properties.get(key) for key in _NAMED_BY)
    return next((text for text in named if isinstance(text, str)), _NAME)


def _arn(name: str, resource: str, template: Mapping[str, Any]) -> str:
    if template["Resources"].get(name, {}).get("Type") == "AWS::S3::Bucket":
        return f"arn:aws-cn:s3:::{resource}"
    return f"{_ARN}{resource}"
