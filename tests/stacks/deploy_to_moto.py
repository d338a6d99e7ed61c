"""Load synthesized templates into a moto server, which then holds what the templates ask for.

moto's CloudFormation skips types that it does not know and still reports success. So what it may
skip is listed here, and anything else that is missing afterwards is an error. What of it the
runtime needs is then made through the API, from the same template: the Glue databases, and the
versions of buckets, a property that moto forgets.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any, TypeAlias

#: Makes the client of a service, as `tests.aws.aws_clients` does.
Client: TypeAlias = Callable[[str], Any]

# What moto has no CloudFormation for. A bucket's policy it would not enforce either.
SKIPPED_BY_MOTO = {"AWS::S3::BucketPolicy", "AWS::Glue::Database", "AWS::CDK::Metadata"}
# The CDK's own custom resource that closes the default security group: it would run in Docker.
LEFT_OUT = {"Custom::VpcRestrictDefaultSG", "AWS::Lambda::Function"}


class NotLoadedError(AssertionError):
    """Raised when moto did not create what a template asks for."""


def deploy(client: Client, name: str, template: dict[str, Any]) -> dict[str, str]:
    """Create a stack and return its outputs.

    Raises:
        NotLoadedError: when a resource is missing whose type is in neither list above.
    """
    _bootstrap(client)
    loadable = _loadable(template)
    cloudformation = client("cloudformation")
    cloudformation.create_stack(
        StackName=name, TemplateBody=json.dumps(loadable), Capabilities=["CAPABILITY_IAM"]
    )
    (stack,) = cloudformation.describe_stacks(StackName=name)["Stacks"]
    pages = cloudformation.get_paginator("list_stack_resources").paginate(StackName=name)
    made = {
        resource["LogicalResourceId"]: resource["PhysicalResourceId"]
        for page in pages
        for resource in page["StackResourceSummaries"]
    }
    missing = {
        f"{logical_id} ({resource['Type']})"
        for logical_id, resource in loadable["Resources"].items()
        if logical_id not in made and resource["Type"] not in SKIPPED_BY_MOTO
    }
    if missing or stack["StackStatus"] != "CREATE_COMPLETE":
        raise NotLoadedError(f"{name} is {stack['StackStatus']} without {sorted(missing)}")
    _complete(client, loadable["Resources"], made)
    return {output["OutputKey"]: output["OutputValue"] for output in stack.get("Outputs", [])}


def _bootstrap(client: Client) -> None:
    """Leave the mark of `cdk bootstrap` that every template asks for."""
    client("ssm").put_parameter(
        Name="/cdk-bootstrap/hnb659fds/version", Value="30", Type="String", Overwrite=True
    )


def _loadable(template: dict[str, Any]) -> dict[str, Any]:
    kept = {
        name: copy.deepcopy(resource)
        for name, resource in template["Resources"].items()
        if resource["Type"] not in LEFT_OUT
    }
    for resource in kept.values():
        if resource["Type"] == "AWS::KMS::Key":
            # moto looks for the names that tags have in the API of KMS, not in templates.
            resource["Properties"].pop("Tags", None)
    return {**{k: v for k, v in template.items() if k != "Rules"}, "Resources": kept}


def _complete(client: Client, resources: dict[str, Any], made: dict[str, str]) -> None:
    """Make what moto skipped; `made` has the physical name of each logical id."""
    for logical_id, resource in resources.items():
        if resource["Type"] == "AWS::Glue::Database":
            name = resource["Properties"]["DatabaseInput"]["Name"]
            client("glue").create_database(DatabaseInput={"Name": name})
        elif resource["Type"] == "AWS::S3::Bucket":
            client("s3").put_bucket_versioning(
                Bucket=made[logical_id],
                VersioningConfiguration=resource["Properties"]["VersioningConfiguration"],
            )
