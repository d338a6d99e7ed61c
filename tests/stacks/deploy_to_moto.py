"""Load synthesized templates into a moto server, which then holds what the templates ask for.

moto's CloudFormation skips types that it does not know and still reports success. So what it may
skip is listed here, and anything else that is missing afterwards is an error. What of it the
runtime needs is then made through the API, from the same template: the Glue databases, the hooks
of groups and the versions of buckets, two properties that moto forgets.
"""

from __future__ import annotations

import copy
import io
import json
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

from tests.aws import aws_server, client
from tests.stacks.house_rules import Template, resources

#: Makes the client of a service, as `tests.aws.aws_clients` does.
Client: TypeAlias = Callable[[str], Any]

# What moto has no CloudFormation for. A bucket's policy it would not enforce either.
SKIPPED_BY_MOTO = {
    "AWS::Athena::WorkGroup",
    "AWS::AutoScaling::ScalingPolicy",
    "AWS::CDK::Metadata",
    "AWS::CloudWatch::Alarm",
    "AWS::EC2::SecurityGroupEgress",
    "AWS::EMRServerless::Application",
    "AWS::Glue::Database",
    "AWS::Glue::Job",
    "AWS::KinesisFirehose::DeliveryStream",
    "AWS::LakeFormation::DataCellsFilter",
    "AWS::LakeFormation::DataLakeSettings",
    "AWS::LakeFormation::PrincipalPermissions",
    "AWS::LakeFormation::Resource",
    "AWS::LakeFormation::Tag",
    "AWS::LakeFormation::TagAssociation",
    "AWS::Lambda::EventInvokeConfig",
    "AWS::Logs::LogStream",
    "AWS::QuickSight::DataSource",
    "AWS::RedshiftServerless::Namespace",
    "AWS::RedshiftServerless::Workgroup",
    "AWS::S3::BucketPolicy",
    "AWS::SNS::Subscription",
    "AWS::SNS::TopicPolicy",
    "AWS::SQS::QueuePolicy",
}
# The CDK's own custom resource that closes the default security group: it would run in Docker.
LEFT_OUT = {"Custom::VpcRestrictDefaultSG"}
ASSETS = "cdk-hnb659fds-assets-123456789012-eu-central-1"


class NotLoadedError(AssertionError):
    """Raised when moto did not create what a template asks for."""


def deploy(client: Client, name: str, template: dict[str, Any]) -> dict[str, str]:
    """Create a stack and return its outputs.

    Raises:
        NotLoadedError: when a resource is missing whose type is in neither list above.
    """
    _bootstrap(client, template)
    loadable = _loadable(template)
    for listener in resources(loadable, "AWS::ElasticLoadBalancingV2::Listener").values():
        # Of the template's account; moto looks for it among its own.
        made_here = client("acm").request_certificate(DomainName="polynya.example.com")
        listener["Certificates"] = [{"CertificateArn": made_here["CertificateArn"]}]
    cloudformation = client("cloudformation")
    cloudformation.create_stack(
        StackName=name, TemplateBody=json.dumps(loadable), Capabilities=["CAPABILITY_NAMED_IAM"]
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


@dataclass(frozen=True, slots=True)
class DeployedStage:
    """A stage in a stand-in for AWS: its address, and the outputs of its stacks by their names.

    The names that a program needs: `outputs["Storage"]` has `LandingBucketName`,
    `ConfigurationBucketName`, `WarehouseBucketName`, `WorkloadStreamName` and `DataKeyArn`, that of
    a cluster or the gateway has `GroupName`.
    """

    endpoint: str
    outputs: dict[str, dict[str, str]]

    def client(self, service: str) -> Any:
        """A client of a service of the stand-in."""
        return client(service, self.endpoint)


@contextmanager
def deployed_stage(templates: dict[str, Template], stage: str) -> Iterator[DeployedStage]:
    """Every stack of a stage, in a server of its own, in the order of their dependencies."""
    stacks = [path for path in templates if path.startswith(f"{stage}/")]
    first = [f"{stage}/Network", f"{stage}/Storage"]
    with aws_server() as endpoint:
        deployed = DeployedStage(endpoint, {})
        for path in [*first, *(path for path in stacks if path not in first)]:
            name = path.replace("/", "-")
            outputs = deploy(deployed.client, name, templates[path])
            deployed.outputs[path.removeprefix(f"{stage}/")] = outputs
        yield deployed


def _bootstrap(client: Client, template: Template) -> None:
    """Leave what `cdk bootstrap` leaves, and the assets that `cdk deploy` uploads."""
    client("ssm").put_parameter(
        Name="/cdk-bootstrap/hnb659fds/version", Value="30", Type="String", Overwrite=True
    )
    s3 = client("s3")
    if ASSETS not in {bucket["Name"] for bucket in s3.list_buckets()["Buckets"]}:
        here = {"LocationConstraint": s3.meta.region_name}
        s3.create_bucket(Bucket=ASSETS, CreateBucketConfiguration=here)
    empty = io.BytesIO()
    zipfile.ZipFile(empty, "w").close()
    for function in resources(template, "AWS::Lambda::Function").values():
        s3.put_object(Bucket=ASSETS, Key=function["Code"]["S3Key"], Body=empty.getvalue())


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
        if resource["Type"] == "AWS::SSM::Parameter":
            resource["Properties"].pop("Tags", None)  # moto answers a map of tags with HTTP 500
    kept = {
        name: resource
        for name, resource in kept.items()
        # That an alarm may start a function; there is no alarm.
        if resource["Type"] != "AWS::Lambda::Permission"
        or not _is_of_skipped(resource["Properties"].get("SourceArn"), kept)
    }
    kept = {name: _without_skipped(resource, kept) for name, resource in kept.items()}
    outputs = {
        name: output
        for name, output in template.get("Outputs", {}).items()
        if not _is_of_skipped(output["Value"], kept)
    }
    rest = {name: part for name, part in template.items() if name != "Rules"}
    return {**rest, "Resources": kept, "Outputs": outputs}


def _without_skipped(value: Any, kept: dict[str, Any]) -> Any:
    """A value with a text in place of each attribute of a resource that moto will not make."""
    if _is_of_skipped(value, kept):
        return "of-a-skipped-resource"
    if isinstance(value, dict):
        return {name: _without_skipped(inner, kept) for name, inner in value.items()}
    if isinstance(value, list):
        return [_without_skipped(inner, kept) for inner in value]
    return value


def _is_of_skipped(value: Any, kept: dict[str, Any]) -> bool:
    """Whether a value is an attribute of a resource that moto will not make."""
    attribute = value.get("Fn::GetAtt") if isinstance(value, dict) else None
    return bool(attribute) and kept[attribute[0]]["Type"] in SKIPPED_BY_MOTO


def _complete(client: Client, resources: dict[str, Any], made: dict[str, str]) -> None:
    """Make what moto skipped; `made` has the physical name of each logical id."""
    for logical_id, resource in resources.items():
        if resource["Type"] == "AWS::Glue::Database":
            asked = resource["Properties"]["DatabaseInput"]
            location = "".join(
                made[part["Ref"]] if isinstance(part, dict) else part
                for part in asked["LocationUri"]["Fn::Join"][1]
            )
            client("glue").create_database(
                DatabaseInput={"Name": asked["Name"], "LocationUri": location}
            )
        elif resource["Type"] == "AWS::AutoScaling::AutoScalingGroup":
            for hook in resource["Properties"].get("LifecycleHookSpecificationList", []):
                client("autoscaling").put_lifecycle_hook(
                    AutoScalingGroupName=made[logical_id], **hook
                )
        elif resource["Type"] == "AWS::S3::Bucket":
            client("s3").put_bucket_versioning(
                Bucket=made[logical_id],
                VersioningConfiguration=resource["Properties"]["VersioningConfiguration"],
            )
