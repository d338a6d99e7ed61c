"""A VPC without a way in or out: private subnets, a flow log, endpoints to AWS services."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Network

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from constructs import Construct

from polynya_constructs.removal import KEPT


class PrivateVpc(Construct):
    """A VPC with one isolated subnet in each zone: no NAT gateway, and by default no other way.

    `vpc` is the VPC. Its default security group lets nothing through, and its flow log says what
    was tried. What nodes need of AWS they reach through `VpcEndpoints`.

    Example:
        >>> vpc = PrivateVpc(stack, "Network", cidr="10.40.0.0/16", availability_zones=zones).vpc
    """

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        cidr: str,
        availability_zones: Sequence[str],
        subnet_prefix: int = 20,
        internet: bool = False,
        flow_log_retention: logs.RetentionDays = logs.RetentionDays.ONE_MONTH,
        removal_policy: cdk.RemovalPolicy = KEPT,
    ) -> None:
        """Create the VPC.

        Args:
            scope: the parent.
            id_: unique below the parent. Renaming it replaces the VPC.
            cidr: its IPv4 network.
            availability_zones: at least 2 names or tokens; the order counts: a zone that is added
                at the end moves no subnet.
            subnet_prefix: size of each subnet; default 20, which is 4091 addresses.
            internet: whether the subnets have a route to the internet and give their members
                public addresses; nothing comes in all the same, for no security group lets it.
            flow_log_retention: how long the flow log is kept; default one month.
            removal_policy: what becomes of the flow log with its stack; default: it is kept.

        Raises:
            ValueError: for fewer than 2 zones, or subnets that do not fit into the network.
        """
        super().__init__(scope, id_)
        if len(availability_zones) < 2:
            raise ValueError("availability_zones has fewer than 2 zones; one can fail")
        if len(availability_zones) * 2 ** (32 - subnet_prefix) > IPv4Network(cidr).num_addresses:
            raise ValueError(
                f"{len(availability_zones)} subnets of /{subnet_prefix} do not fit into {cidr}"
            )
        self.vpc = ec2.Vpc(
            self,
            "Vpc",
            ip_addresses=ec2.IpAddresses.cidr(cidr),
            availability_zones=list(availability_zones),
            create_internet_gateway=internet,
            nat_gateways=0,
            restrict_default_security_group=True,
            subnet_configuration=[
                ec2.SubnetConfiguration(
                    name="Private",
                    subnet_type=ec2.SubnetType.PUBLIC
                    if internet
                    else ec2.SubnetType.PRIVATE_ISOLATED,
                    map_public_ip_on_launch=True if internet else None,
                    cidr_mask=subnet_prefix,
                )
            ],
        )
        cdk.Validations.of(self.vpc).acknowledge(
            cdk.Acknowledgment(
                id="CloudFormation-Validate::W3010",
                reason="zones are named only where whoever configures the stage chose them",
            )
        )
        log_group = logs.LogGroup(
            self, "FlowLogGroup", retention=flow_log_retention, removal_policy=removal_policy
        )
        flow_log = ec2.FlowLog(
            self,
            "FlowLog",
            resource_type=ec2.FlowLogResourceType.from_vpc(self.vpc),
            destination=ec2.FlowLogDestination.to_cloud_watch_logs(log_group),
            traffic_type=ec2.FlowLogTrafficType.ALL,
        )
        # The role is made by the library. One of ours would replace the flow log of each stage.
        made = flow_log.iam_role and flow_log.iam_role.node.default_child
        assert isinstance(made, iam.CfnRole)
        made.add_property_override(
            "AssumeRolePolicyDocument.Statement.0.Condition",
            {"StringEquals": {"aws:SourceAccount": cdk.Stack.of(self).account}},
        )


def node_subnets(vpc: ec2.IVpc) -> list[ec2.ISubnet]:
    """The subnets of the nodes: without a way to the internet, unless there are none."""
    return [*(vpc.isolated_subnets or vpc.public_subnets)]


class VpcEndpoints(Construct):
    """The ways from a VPC to AWS: a gateway for S3, free, and interfaces, paid by hour and zone.

    `security_group` is that of the interfaces, None when there is none. It lets in TLS from the
    VPC; the stacks have no other inbound rule, unless a load balancer is put before a server.

    Example:
        >>> VpcEndpoints(stack, "Endpoints", vpc=vpc, cidr="10.40.0.0/16", services=["glue"])
    """

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        vpc: ec2.IVpc,
        cidr: str,
        services: Sequence[str],
        zones: int | None = None,
        s3_gateway: bool = True,
        trusted_accounts: Sequence[str] = (),
    ) -> None:
        """Create the endpoints.

        Args:
            scope: the parent.
            id_: unique below the parent.
            vpc: the VPC; the endpoints are in its isolated subnets.
            cidr: its IPv4 network, from which the interfaces are reached.
            services: names such as `kinesis-streams`, as in `com.amazonaws.REGION.NAME`.
            zones: in how many zones each interface stands; default: in all.
            s3_gateway: whether the route tables of the subnets get a route to S3; default: yes.
            trusted_accounts: whose resources are reached beside those of this account.

        Raises:
            ValueError: when `zones` is more than the VPC has.
        """
        super().__init__(scope, id_)
        subnets = node_subnets(vpc)
        if zones is not None and not 1 <= zones <= len(subnets):
            raise ValueError(f"zones is {zones}; the VPC has {len(subnets)}")
        if s3_gateway:
            gateway = ec2.GatewayVpcEndpoint(
                self,
                "S3",
                vpc=vpc,
                service=ec2.GatewayVpcEndpointAwsService.S3,
                subnets=[ec2.SubnetSelection(subnets=subnets)],
            )
            for statement in self._s3_statements(trusted_accounts):
                gateway.add_to_policy(statement)
        self.security_group: ec2.SecurityGroup | None = None
        if services:
            accounts = [cdk.Stack.of(self).account, *trusted_accounts]
            self.security_group = self._interfaces(vpc, cidr, services, subnets[:zones], accounts)

    def _s3_statements(self, trusted_accounts: Sequence[str]) -> list[iam.PolicyStatement]:
        """Our buckets, and those of Amazon Linux, which dnf reads without credentials."""
        stack = cdk.Stack.of(self)
        repositories = f"arn:{stack.partition}:s3:::al2023-repos-{stack.region}-de612dc2/*"
        return [
            self._ours_only("*", [stack.account, *trusted_accounts], if_known=False),
            iam.PolicyStatement(
                sid="AmazonLinux",
                principals=[iam.AnyPrincipal()],
                actions=["s3:GetObject"],
                resources=[repositories],
            ),
        ]

    @staticmethod
    def _ours_only(action: str, accounts: Sequence[str], *, if_known: bool) -> iam.PolicyStatement:
        """Let through what belongs to these accounts: nobody takes data to a bucket of theirs.

        Not every action of every service tells whose resource it asks for; with `if_known` those
        that do not tell are let through.
        """
        operator = "StringEqualsIfExists" if if_known else "StringEquals"
        return iam.PolicyStatement(
            sid="OurResources",
            principals=[iam.AnyPrincipal()],
            actions=[action],
            resources=["*"],
            conditions={operator: {"aws:ResourceAccount": [*accounts]}},
        )

    def _interfaces(
        self,
        vpc: ec2.IVpc,
        cidr: str,
        services: Sequence[str],
        subnets: Sequence[ec2.ISubnet],
        accounts: Sequence[str],
    ) -> ec2.SecurityGroup:
        security_group = ec2.SecurityGroup(
            self,
            "SecurityGroup",
            vpc=vpc,
            description="TLS from within the VPC to the endpoints of AWS services",
            allow_all_outbound=False,
        )
        security_group.add_ingress_rule(
            ec2.Peer.ipv4(cidr), ec2.Port.tcp(443), "TLS from within the VPC"
        )
        for service in services:
            endpoint = ec2.InterfaceVpcEndpoint(
                self,
                service,
                vpc=vpc,
                service=ec2.InterfaceVpcEndpointAwsService(service),
                subnets=ec2.SubnetSelection(subnets=subnets),
                security_groups=[security_group],
                private_dns_enabled=True,
                open=False,
            )
            endpoint.add_to_policy(self._ours_only("*", accounts, if_known=True))
        return security_group
