"""The architecture of a stage as a Mermaid diagram, read from its templates.

`python -m stacks.picture cdk.out/assembly-dev` draws what was synthesized; docs/deploy.md has the
picture of `config/dev.yml`, and a test that it is still this one.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

Template: TypeAlias = Mapping[str, Any]

# What is drawn; everything else belongs to one of these.
_DRAWN: Final = {
    "AWS::Athena::WorkGroup": "Athena workgroup",
    "AWS::AutoScaling::AutoScalingGroup": "Auto Scaling group",
    "AWS::EC2::VPC": "VPC, private subnets",
    "AWS::EC2::VPCEndpoint": "endpoint",
    "AWS::EMRServerless::Application": "EMR Serverless",
    "AWS::Glue::Database": "Glue database",
    "AWS::KMS::Key": "KMS key",
    "AWS::Kinesis::Stream": "workload stream",
    "AWS::KinesisFirehose::DeliveryStream": "Firehose",
    "AWS::Lambda::Function": "function",
    "AWS::RedshiftServerless::Workgroup": "Redshift Serverless",
    "AWS::S3::Bucket": "bucket",
    "AWS::SNS::Topic": "alarm topic",
}
_PARAMETER: Final = "AWS::SSM::Parameter"


def picture(stacks: Mapping[str, Template]) -> str:
    """Draw the stacks of one stage, by their names in it."""
    lines = ["flowchart LR"]
    for name, template in stacks.items():
        lines.append(f"  subgraph {_id(name)}[{name.lower()} stack]")
        lines += [f'    {_id(name, key)}["{label}"]' for key, label in _drawn(template)]
        lines.append("  end")
    lines += sorted({*_handed_over(stacks), *_events(stacks)})
    return "\n".join(lines) + "\n"


def _drawn(template: Template) -> Iterator[tuple[str, str]]:
    for key, resource in template["Resources"].items():
        kind, properties = resource["Type"], resource.get("Properties", {})
        if kind not in _DRAWN or key.startswith("Custom"):
            continue
        label = _DRAWN[kind]
        if kind == "AWS::EC2::VPCEndpoint":
            service = str(properties["ServiceName"]).rpartition(".")[2]
            label += f" {re.sub('[^a-z0-9-]', '', service)}"
        elif kind == "AWS::S3::Bucket":
            label += f" {_words(key.removesuffix(key[-8:]).removesuffix('Bucket'))}"
        elif kind == "AWS::Lambda::Function":
            called = properties["Handler"].removesuffix(".handle").removesuffix(".handler")
            label += f" {called.replace('.', ' ')}"
        elif kind == "AWS::Glue::Database":
            label += f" {properties['DatabaseInput']['Name']}"
        yield key, label


def _handed_over(stacks: Mapping[str, Template]) -> Iterator[str]:
    """A line from what a parameter names to each stack that reads it."""
    for name, template in stacks.items():
        shown = {key for key, _ in _drawn(template)}
        for resource in template["Resources"].values():
            if resource["Type"] != _PARAMETER:
                continue
            text = json.dumps(resource["Properties"]["Value"])
            source = next((key for key in sorted(shown) if f'"{key}"' in text), None)
            for reader, other in stacks.items():
                if source and _reads(other, resource["Properties"]["Name"]):
                    yield f"  {_id(name, source)} --> {_id(reader)}"


def _reads(template: Template, parameter: str) -> bool:
    """Whether a stack makes something of a parameter; being handed it is not enough."""
    text = json.dumps(template["Resources"])
    return any(
        each.get("Default") == parameter and f'{{"Ref": "{key}"}}' in text
        for key, each in template.get("Parameters", {}).items()
    )


def _events(stacks: Mapping[str, Template]) -> Iterator[str]:
    """A dotted line from buckets whose events a function hears."""
    buckets = [
        _id(name, key)
        for name, template in stacks.items()
        for key, resource in template["Resources"].items()
        if "NotificationConfiguration" in resource.get("Properties", {})
    ]
    for name, template in stacks.items():
        for resource in template["Resources"].values():
            properties = resource.get("Properties", {})
            if properties.get("EventPattern", {}).get("source") != ["aws.s3"]:
                continue
            for target in properties["Targets"]:
                heard = _id(name, target["Arn"]["Fn::GetAtt"][0])
                yield from (f"  {bucket} -. Object Created .-> {heard}" for bucket in buckets)


def _words(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower()


def _id(stack: str, key: str = "") -> str:
    return re.sub(r"\W", "_", f"{stack}_{key}" if key else stack)


def main(directory: str) -> None:
    """Print the picture of an assembly that was synthesized."""
    root = Path(directory)
    artifacts = json.loads((root / "manifest.json").read_text())["artifacts"].values()
    stacks = {
        each["displayName"].split("/")[-1].split(" ")[0]: json.loads(
            (root / each["properties"]["templateFile"]).read_text()
        )
        for each in artifacts
        if each["type"] == "aws:cloudformation:stack"
    }
    print(picture(stacks), end="")


if __name__ == "__main__":
    main(sys.argv[1])
