"""What the stacks of a stage tell each other: parameters with fixed names, never exports.

CloudFormation refuses to change or remove an export for as long as another stack imports it, so
that an edit of both sides can never be deployed. A parameter of Systems Manager has no such lock.
The network and the storage stack write the same names whatever the stage file asks for; every
other stack reads them when it is deployed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_kinesis as kinesis
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_ssm as ssm
from constructs import Construct

from polynya_constructs.launches import LaunchedNodes
from polynya_constructs.nodes.access import Lakehouse
from stacks.settings.stage import BucketSettings, StageConfig

NOTHING: Final = "none"
"""Value of a parameter for what the stage has not; Systems Manager takes no empty one."""

VPC, SUBNETS = "vpc-id", "private-subnet-ids"
LANDING, CONFIGURATION, WAREHOUSE = "landing-bucket", "configuration-bucket", "warehouse-bucket"
STREAM, KEY = "workload-stream-arn", "data-key-arn"
CLUSTER: Final = "cluster"
"""Begins what clusters write for the network agent."""


def publish(
    scope: Construct, stage: str, values: Mapping[str, str], lists: Mapping[str, list[str]]
) -> None:
    """Write the values that other stacks of the stage read."""
    for what, value in values.items():
        ssm.StringParameter(
            scope, f"Handover-{what}", parameter_name=_name(stage, what), string_value=value
        )
    for what, items in lists.items():
        ssm.StringListParameter(
            scope, f"Handover-{what}", parameter_name=_name(stage, what), string_list_value=items
        )


def read_vpc(scope: Construct, settings: StageConfig) -> ec2.IVpc:
    """Return the VPC of the stage, with its private subnets as the isolated ones."""
    ids = ssm.StringListParameter.value_for_typed_list_parameter(
        scope, _name(settings.name, SUBNETS)
    )
    zones = range(settings.network.zone_count)
    vpc = ec2.Vpc.from_vpc_attributes(
        scope,
        "Vpc",
        vpc_id=_read(scope, settings.name, VPC),
        availability_zones=[cdk.Fn.select(index, cdk.Fn.get_azs()) for index in zones],
        isolated_subnet_ids=[cdk.Fn.select(index, ids) for index in zones],
    )
    cdk.Validations.of(vpc).acknowledge(
        cdk.Acknowledgment(
            id="Annotation::@aws-cdk/aws-ec2:noSubnetRouteTableId",
            reason="route tables are the network stack's; no other one reads them",
        )
    )
    return vpc


def read_lakehouse(scope: Construct, settings: StageConfig) -> Lakehouse:
    """Return what nodes and engines of the stage work on."""
    key = kms.Key.from_key_arn(scope, "DataKey", _read(scope, settings.name, KEY))

    def bucket(id_: str, what: str, of: BucketSettings) -> s3.IBucket:
        encryption: kms.IKey | None = key
        if of.existing:
            theirs = of.existing.key_arn
            encryption = kms.Key.from_key_arn(scope, f"{id_}Key", theirs) if theirs else None
        return s3.Bucket.from_bucket_attributes(
            scope,
            id_,
            bucket_name=_read(scope, settings.name, what),
            encryption_key=encryption,
        )

    cdk.Validations.of(scope).acknowledge(
        cdk.Acknowledgment(
            id="CloudFormation-Validate::W2001",
            reason="a stack is handed the whole lakehouse, and uses of it what it needs",
        )
    )
    storage = settings.storage
    return Lakehouse(
        landing=bucket("Landing", LANDING, storage.landing),
        configuration=bucket("Configuration", CONFIGURATION, storage.configuration),
        warehouse=bucket("Warehouse", WAREHOUSE, storage.warehouse),
        stream=kinesis.Stream.from_stream_arn(scope, "Stream", _read(scope, settings.name, STREAM))
        if settings.stream.enabled
        else None,
        key=key,
        databases=settings.catalog.all_databases,
    )


def publish_launches(scope: Construct, stage: str, cluster: str, nodes: LaunchedNodes) -> None:
    """Write what a cluster launches. Its stack stays when the stage file no longer names it."""
    values = {"launch-template-id": nodes.template_id, "node-role-arn": nodes.role_arn}
    publish(
        scope, stage, {f"{CLUSTER}/{cluster}/{key}": value for key, value in values.items()}, {}
    )


def read_launches(scope: Construct, stage: str, cluster: str) -> LaunchedNodes:
    """Return what a cluster launches."""
    return LaunchedNodes(
        _read(scope, stage, f"{CLUSTER}/{cluster}/launch-template-id"),
        _read(scope, stage, f"{CLUSTER}/{cluster}/node-role-arn"),
    )


def _read(scope: Construct, stage: str, what: str) -> str:
    return ssm.StringParameter.value_for_string_parameter(scope, _name(stage, what))


def _name(stage: str, what: str) -> str:
    return f"/polynya/{stage}/{what}"
