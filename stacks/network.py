"""Where nodes live: the VPC and its ways to AWS."""

from __future__ import annotations

from typing import Any, Final

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_logs as logs
from constructs import Construct

from polynya_constructs.network import PrivateVpc, VpcEndpoints, node_subnets
from stacks.handover import SUBNETS, VPC, publish
from stacks.settings.network import ExistingVpc, NetworkSettings
from stacks.settings.stage import StageConfig

RETENTION: Final = {
    1: logs.RetentionDays.ONE_DAY,
    3: logs.RetentionDays.THREE_DAYS,
    5: logs.RetentionDays.FIVE_DAYS,
    7: logs.RetentionDays.ONE_WEEK,
    14: logs.RetentionDays.TWO_WEEKS,
    30: logs.RetentionDays.ONE_MONTH,
    60: logs.RetentionDays.TWO_MONTHS,
    90: logs.RetentionDays.THREE_MONTHS,
    180: logs.RetentionDays.SIX_MONTHS,
    365: logs.RetentionDays.ONE_YEAR,
    731: logs.RetentionDays.TWO_YEARS,
    1827: logs.RetentionDays.FIVE_YEARS,
}


class NetworkStack(cdk.Stack):
    """A VPC of its own or one that exists, with the endpoints that the stage file asks for.

    `vpc` is the VPC.
    """

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        stage: StageConfig,
        removal_policy: cdk.RemovalPolicy,
        **options: Any,
    ) -> None:
        """Create the stack of a stage; `options` are those of `cdk.Stack`."""
        super().__init__(scope, id_, **options)
        settings = stage.network
        if settings.existing:
            self.vpc = self._existing(settings.existing)
        else:
            self.vpc = PrivateVpc(
                self,
                "Network",
                cidr=settings.cidr,
                availability_zones=self._zones(settings),
                subnet_prefix=settings.subnet_prefix,
                internet=settings.outbound == "internet",
                flow_log_retention=RETENTION[settings.flow_log_days],
                removal_policy=removal_policy,
            ).vpc
        s3_gateway = settings.existing is None or bool(settings.existing.route_table_ids)
        VpcEndpoints(
            self,
            "Endpoints",
            vpc=self.vpc,
            cidr=settings.network,
            services=stage.endpoints,
            zones=settings.endpoint_zones,
            s3_gateway=s3_gateway,
            trusted_accounts=settings.trusted_accounts,
        )
        subnets = [subnet.subnet_id for subnet in node_subnets(self.vpc)]
        publish(self, stage.name, {VPC: self.vpc.vpc_id}, {SUBNETS: subnets})
        cdk.CfnOutput(self, "VpcId", value=self.vpc.vpc_id)
        cdk.CfnOutput(self, "PrivateSubnetIds", value=",".join(subnets))

    @property
    def availability_zones(self) -> list[str]:
        """None: the CDK would ask the account for its zones, which no synthesis here needs."""
        return []

    def _existing(self, existing: ExistingVpc) -> ec2.IVpc:
        vpc = ec2.Vpc.from_vpc_attributes(
            self,
            "Existing",
            vpc_id=existing.vpc_id,
            vpc_cidr_block=existing.cidr,
            availability_zones=list(existing.availability_zones),
            isolated_subnet_ids=list(existing.private_subnet_ids),
            isolated_subnet_route_table_ids=list(existing.route_table_ids) or None,
        )
        if not existing.route_table_ids:
            cdk.Validations.of(vpc).acknowledge(
                cdk.Acknowledgment(
                    id="Annotation::@aws-cdk/aws-ec2:noSubnetRouteTableId",
                    reason="route tables are read for the S3 gateway endpoint only, which is off",
                )
            )
        return vpc

    @staticmethod
    def _zones(settings: NetworkSettings) -> list[str]:
        """Return the names that were given, or the first zones of whichever region it will be."""
        zones = settings.availability_zones
        if isinstance(zones, int):
            return [cdk.Fn.select(index, cdk.Fn.get_azs()) for index in range(zones)]
        return list(zones)
