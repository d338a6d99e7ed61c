"""The principals and the resource policies that deployed templates would leave in an account."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tests.stacks.house_rules import Template
from tests.stacks.iam.iam_evaluator import Principal, Request, Verdict, evaluate
from tests.stacks.intrinsics import ACCOUNT, Intrinsics

# Policies of AWS that a role of the templates is attached to, as AWS publishes them.
_AWS_MANAGED = {
    "AWSLambdaBasicExecutionRole": {
        "Statement": [
            {
                "Effect": "Allow",
                "Action": ["logs:CreateLogGroup", "logs:CreateLogStream", "logs:PutLogEvents"],
                "Resource": "*",
            }
        ]
    },
}
_TRUST = "AWS::IAM::Role"
# Type, property with the policy, and the property with the resources that it is for.
_RESOURCE_POLICIES = {
    "AWS::S3::BucketPolicy": ("PolicyDocument", "Bucket"),
    "AWS::SNS::TopicPolicy": ("PolicyDocument", "Topics"),
    "AWS::SQS::QueuePolicy": ("PolicyDocument", "Queues"),
    "AWS::KMS::Key": ("KeyPolicy", None),
    _TRUST: ("AssumeRolePolicyDocument", None),
}
_RESOURCE_DECIDES = ("arn:aws:kms:", f"arn:aws:iam::{ACCOUNT}:role/")


class DeployedAccount:
    """Asks the evaluator about what the templates of an assembly deploy.

    `roles` are by ARN, `policies` the policies of resources by the ARN of the resource, `managed`
    the named policies that people are attached to, by the path of their stack and their name.
    """

    def __init__(self, templates: dict[str, Template], boundary: Any = None) -> None:
        """Read them; `boundary` is the document of every permissions boundary that a role names."""
        self.intrinsics = Intrinsics(templates)
        self._boundary = boundary
        self.roles: dict[str, Principal] = {}
        self.policies: dict[str, Any] = {}
        self.managed: dict[tuple[str, str], Any] = {}
        for path, template in templates.items():
            for logical_id, resource in template.get("Resources", {}).items():
                self._read(path, logical_id, resource)
        for path, template in templates.items():
            for logical_id, resource in template.get("Resources", {}).items():
                if resource["Type"] in {"AWS::IAM::Policy", "AWS::IAM::ManagedPolicy"}:
                    self._attach(path, logical_id, resource["Properties"])

    def asks(self, who: Principal, request: Request) -> Verdict:
        """Judge a request with the policy of its resource; that of an object is its bucket's."""
        arn = request.resource
        owner = arn.partition("/")[0] if arn.startswith("arn:aws:s3:") else arn
        return evaluate(
            who,
            request,
            account=ACCOUNT,
            resource_policy=self.policies.get(owner),
            # The roles of the bootstrap, in no template, trust the account.
            # A trust policy tells who may assume the role, not who may pass it on.
            resource_decides=arn.startswith(_RESOURCE_DECIDES)
            and owner in self.policies
            and request.action != "iam:PassRole",
        )

    def _read(self, path: str, logical_id: str, resource: Mapping[str, Any]) -> None:
        kind, properties = resource["Type"], resource.get("Properties", {})
        if kind in _RESOURCE_POLICIES:
            document, of = _RESOURCE_POLICIES[kind]
            policy = self.intrinsics.resolve(properties[document], path)
            for arn in self._owners(path, logical_id, kind, properties.get(of or "")):
                self.policies[arn] = policy
        if kind == "AWS::IAM::Role":
            arn = self.intrinsics.arn(path, logical_id)
            inline = {
                f"{path}/{logical_id}/{policy['PolicyName']}": policy["PolicyDocument"]
                for policy in self.intrinsics.resolve(properties.get("Policies", []), path)
            }
            for managed in self.intrinsics.resolve(properties.get("ManagedPolicyArns", []), path):
                if managed.startswith("arn:aws:iam::aws:"):
                    inline[managed] = _AWS_MANAGED[managed.rpartition("/")[2]]
            boundary = self._boundary if "PermissionsBoundary" in properties else None
            self.roles[arn] = Principal(arn, ACCOUNT, inline, boundary)

    def _owners(self, path: str, logical_id: str, kind: str, of: Any) -> list[str]:
        if of is None:
            return [self.intrinsics.arn(path, logical_id)]
        named = self.intrinsics.resolve(of if isinstance(of, list) else [of], path)
        return [f"arn:aws:s3:::{name}" for name in named] if "S3" in kind else named

    def _attach(self, path: str, logical_id: str, properties: Mapping[str, Any]) -> None:
        document = self.intrinsics.resolve(properties["PolicyDocument"], path)
        if "ManagedPolicyName" in properties:
            self.managed[path, properties["ManagedPolicyName"]] = document
        for name in self.intrinsics.resolve(properties.get("Roles", []), path):
            arn = f"arn:aws:iam::{ACCOUNT}:role/{name}"
            role = self.roles[arn]
            policies = {**role.policies, f"{path}/{logical_id}": document}
            self.roles[arn] = replace(role, policies=policies)
