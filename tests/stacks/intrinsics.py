"""What the intrinsic functions of a synthesized assembly stand for once it is deployed.

Every resource gets a name of its own, `STACK-LOGICALID` in lower case unless its template names
it, so that the buckets of two stages are two buckets. A function that is not known is an error:
text that only looks like an ARN would make every check of it worthless.
"""

from __future__ import annotations

import re
import uuid
from typing import Any

from tests.stacks.house_rules import Template

ACCOUNT, REGION = "123456789012", "eu-central-1"
PSEUDO = {
    "AWS::Partition": "aws",
    "AWS::Region": REGION,
    "AWS::AccountId": ACCOUNT,
    "AWS::URLSuffix": "amazonaws.com",
}
_HERE = f"{REGION}:{ACCOUNT}"
_ARNS = {
    "AWS::CodeBuild::Project": f"codebuild:{_HERE}:project/{{name}}",
    "AWS::CodePipeline::Pipeline": f"codepipeline:{_HERE}:{{name}}",
    "AWS::EMRServerless::Application": f"emr-serverless:{_HERE}:/applications/{{name}}",
    "AWS::EC2::LaunchTemplate": f"ec2:{_HERE}:launch-template/{{name}}",
    "AWS::Events::Rule": f"events:{_HERE}:rule/{{name}}",
    "AWS::IAM::Role": f"iam::{ACCOUNT}:role/{{name}}",
    "AWS::KMS::Key": f"kms:{_HERE}:key/{{name}}",
    "AWS::Kinesis::Stream": f"kinesis:{_HERE}:stream/{{name}}",
    "AWS::KinesisFirehose::DeliveryStream": f"firehose:{_HERE}:deliverystream/{{name}}",
    "AWS::Lambda::Function": f"lambda:{_HERE}:function:{{name}}",
    "AWS::Logs::LogGroup": f"logs:{_HERE}:log-group:{{name}}:*",
    "AWS::S3::Bucket": "s3:::{name}",
    "AWS::SNS::Topic": f"sns:{_HERE}:{{name}}",
    "AWS::SQS::Queue": f"sqs:{_HERE}:{{name}}",
}
# What Ref returns where that is not the name.
_REF_IS_ARN = {"AWS::SNS::Topic", "AWS::IAM::ManagedPolicy"}


class UnknownIntrinsicError(AssertionError):
    """Raised for a function, type or export of which it is not known what it stands for."""


class Intrinsics:
    """Resolves values of the templates of one assembly, across their stacks."""

    def __init__(self, templates: dict[str, Template]) -> None:
        self.templates = templates

    def arn(self, path: str, logical_id: str) -> str:
        """The ARN of a resource of the stack at `path`."""
        kind = self.templates[path]["Resources"][logical_id]["Type"]
        if kind not in _ARNS:
            raise UnknownIntrinsicError(f"{path}/{logical_id}: no ARN is known of {kind}")
        return f"arn:aws:{_ARNS[kind].format(name=self.name(path, logical_id))}"

    def name(self, path: str, logical_id: str) -> str:
        """The name by which AWS knows a resource."""
        name = f"{path}-{logical_id}".lower().replace("/", "-")
        resource = self.templates[path]["Resources"][logical_id]
        kind = resource["Type"]
        if kind == "AWS::IAM::Role" and isinstance(
            given := resource.get("Properties", {}).get("RoleName"), str
        ):
            return given
        return str(uuid.uuid5(uuid.NAMESPACE_URL, name)) if kind == "AWS::KMS::Key" else name

    def resolve(self, value: Any, path: str) -> Any:
        """Replace every intrinsic function in a value of the stack at `path`.

        Raises:
            UnknownIntrinsicError: for one that is not known.
        """
        if isinstance(value, list):
            return [self.resolve(item, path) for item in value]
        if not isinstance(value, dict):
            return value
        if len(value) == 1:
            ((function, argument),) = value.items()
            if function == "Ref" or function.startswith("Fn::"):
                return self._call(function, argument, path)
        return {key: self.resolve(item, path) for key, item in value.items()}

    def _call(self, function: str, argument: Any, path: str) -> Any:
        if function == "Ref":
            return self._ref(argument, path)
        if function == "Fn::GetAtt":
            return self._attribute(*argument, path)
        if function == "Fn::ImportValue":
            return self._imported(self.resolve(argument, path), path)
        if function == "Fn::Sub" and isinstance(argument, str):
            return re.sub(r"\$\{([^}]+)\}", lambda found: self._ref(found[1], path), argument)
        argument = self.resolve(argument, path)
        if function == "Fn::Join":
            return argument[0].join(map(str, argument[1]))
        if function == "Fn::Select":
            return argument[1][int(argument[0])]
        if function == "Fn::Split":
            return argument[1].split(argument[0])
        raise UnknownIntrinsicError(f"{path}: {function} is not known")

    def _ref(self, name: str, path: str) -> Any:
        if name in PSEUDO:
            return PSEUDO[name]
        template = self.templates[path]
        if parameter := template.get("Parameters", {}).get(name):
            if parameter["Type"].startswith("AWS::SSM::Parameter::Value"):
                return self._parameter(parameter["Default"])
            return str(parameter["Default"])
        resource = template["Resources"][name]
        return self.arn(path, name) if resource["Type"] in _REF_IS_ARN else self.name(path, name)

    def _attribute(self, logical_id: str, attribute: str, path: str) -> str:
        if attribute == "Arn":
            return self.arn(path, logical_id)
        return f"{self.name(path, logical_id)}-{attribute.lower()}"

    def _parameter(self, name: str) -> Any:
        """The value that a stack writes to a parameter of Systems Manager, by its name."""
        for path, template in self.templates.items():
            for resource in template.get("Resources", {}).values():
                properties = resource.get("Properties", {})
                if resource["Type"] == "AWS::SSM::Parameter" and properties["Name"] == name:
                    value = self.resolve(properties["Value"], path)
                    return value.split(",") if properties["Type"] == "StringList" else value
        if name.startswith(("/aws/service/", "/cdk-bootstrap/")):
            return name
        raise UnknownIntrinsicError(f"nothing writes the parameter {name}")

    def _imported(self, export: str, path: str) -> Any:
        stage = path.rpartition("/")[0]
        for other, template in self.templates.items():
            if other.rpartition("/")[0] != stage:
                continue
            for output in template.get("Outputs", {}).values():
                if output.get("Export", {}).get("Name") == export:
                    return self.resolve(output["Value"], other)
        raise UnknownIntrinsicError(f"{path}: nothing exports {export}")
