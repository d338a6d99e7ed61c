"""The server of a project: an instance of its own, how people reach it, its alarm."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import aws_cdk as cdk
from aws_cdk import aws_autoscaling as autoscaling
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_elasticloadbalancingv2 as elb
from aws_cdk import aws_sns as sns
from constructs import Construct, IConstruct

from polynya_constructs.cluster.cluster import CLUSTER_TAG
from polynya_constructs.cluster.instance_types import architecture_of, check_instance_types
from polynya_constructs.nodes.boot import KEEP_ALIVE_SECONDS, ServedProject
from polynya_constructs.nodes.template import NodeTemplate, acknowledge_group_findings
from polynya_constructs.sign_of_life import sign_of_life_alarm

SERVER_TAG: Final = "polynya:server"
PORT_TAG: Final = "polynya:server-port"
ACCESS_TAG: Final = "polynya:server-access"
"""By these `polynya console` finds the instance (`polynya.store.aws.server_instance`)."""

HEALTH_PATH: Final = "/health"
"""What the server answers to anybody who reaches it."""

#: Streams of events have a sign of life each 15 s, and a query is silent for longer.
_IDLE_SECONDS: Final = 300
assert _IDLE_SECONDS < KEEP_ALIVE_SECONDS


def tag_server(of: IConstruct, served: ServedProject) -> None:
    """Tag the launch template of the instance with the server, so that it is found."""
    tags = cdk.Tags.of(of)
    tags.add(SERVER_TAG, served.place)
    tags.add(PORT_TAG, str(served.port))
    tags.add(ACCESS_TAG, "load_balancer" if served.balanced else "ssm")


class ServerNode(Construct):
    """One small instance for the server, in a group of one so that it comes back by itself.

    It accepts no connection, unless a `ServerBalancer` is put before it; people come by port
    forwarding of Session Manager. `group`, `role`, `security_group` and `template` are what was
    made.

    Example:
        >>> ServerNode(stack, "Server", name="shop-server", vpc=vpc, user_data=boot)
    """

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        name: str,
        vpc: ec2.IVpc,
        user_data: ec2.UserData,
        instance_type: str = "t4g.micro",
        spot: bool = True,
        root_volume_gib: int = 8,
        machine_image: ec2.IMachineImage | None = None,
    ) -> None:
        """Create the instance's group.

        Args:
            scope: the parent.
            id_: unique below the parent.
            name: of group and instance; unique in the account and region.
            vpc: it runs in one of the isolated subnets.
            user_data: what runs at boot.
            instance_type: default t4g.micro.
            spot: whether it is a Spot instance, default yes: it is gone for the minutes of a boot
                when AWS takes it back, and longer while there is none.
            root_volume_gib: of the root volume; default 8.
            machine_image: default: the newest Amazon Linux 2023 at each deploy.

        Raises:
            ValueError: for an instance type that there is not.
        """
        super().__init__(scope, id_)
        architecture = architecture_of(instance_type)
        check_instance_types([instance_type], architecture)
        node = NodeTemplate(
            self,
            "Node",
            vpc=vpc,
            architecture=architecture,
            user_data=user_data,
            name=name,
            machine_image=machine_image,
            root_volume_gib=root_volume_gib,
            session_manager=True,
        )
        self.role, self.security_group = node.role, node.security_group
        self.template = node.template
        self.group = autoscaling.AutoScalingGroup(
            self,
            "Group",
            auto_scaling_group_name=name,
            vpc=vpc,
            vpc_subnets=ec2.SubnetSelection(subnets=vpc.isolated_subnets),
            mixed_instances_policy=autoscaling.MixedInstancesPolicy(
                launch_template=node.template,
                launch_template_overrides=[
                    autoscaling.LaunchTemplateOverrides(
                        instance_type=ec2.InstanceType(instance_type)
                    )
                ],
                instances_distribution=autoscaling.InstancesDistribution(
                    on_demand_base_capacity=0,
                    on_demand_percentage_above_base_capacity=0 if spot else 100,
                    spot_allocation_strategy=autoscaling.SpotAllocationStrategy.PRICE_CAPACITY_OPTIMIZED,
                ),
            ),
            min_capacity=1,
            max_capacity=1,
            group_metrics=[autoscaling.GroupMetrics.all()],
            health_checks=autoscaling.HealthChecks.ec2(grace_period=cdk.Duration.minutes(5)),
            # One instance has no second to replace it first: two would both start operations.
            update_policy=autoscaling.UpdatePolicy.rolling_update(min_instances_in_service=0),
        )
        acknowledge_group_findings(self.group)
        # By which its boot knows its own name.
        cdk.Tags.of(node.template).add(CLUSTER_TAG, name)


class ServerBalancer(Construct):
    """An internal load balancer with TLS before the instance of a server.

    It asks nobody who they are: the server does. Between the two there is TLS, too, with a
    certificate that the instance makes for itself. `balancer` is the load balancer.

    Example:
        >>> node = ServerNode(stack, "Balanced", name="shop-api", vpc=vpc, user_data=boot)
        >>> certificate = "arn:aws:acm:eu-west-1:123456789012:certificate/1a2b3c4d"
        >>> ServerBalancer(
        ...     stack,
        ...     "Balancer",
        ...     vpc=vpc,
        ...     group=node.group,
        ...     port=8181,
        ...     certificate_arn=certificate,
        ...     networks=["10.0.0.0/8"],
        ... )
    """

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        vpc: ec2.IVpc,
        group: autoscaling.AutoScalingGroup,
        port: int,
        certificate_arn: str,
        networks: Sequence[str],
    ) -> None:
        """Create the load balancer.

        Args:
            scope: the parent.
            id_: unique below the parent.
            vpc: it stands in all isolated subnets.
            group: of the instance, which gets a rule that lets it in.
            port: on which the server listens.
            certificate_arn: of AWS Certificate Manager.
            networks: private IPv4 networks that may connect to port 443.

        Raises:
            ValueError: without a network.
        """
        super().__init__(scope, id_)
        if not networks:
            raise ValueError("name the networks that may connect")
        security_group = ec2.SecurityGroup(
            self,
            "SecurityGroup",
            vpc=vpc,
            description="TLS from named networks to the server",
            allow_all_outbound=False,
        )
        for network in networks:
            security_group.add_ingress_rule(ec2.Peer.ipv4(network), ec2.Port.tcp(443))
        self.balancer = elb.ApplicationLoadBalancer(
            self,
            "Balancer",
            vpc=vpc,
            internet_facing=False,
            security_group=security_group,
            vpc_subnets=ec2.SubnetSelection(subnets=vpc.isolated_subnets),
            idle_timeout=cdk.Duration.seconds(_IDLE_SECONDS),
            drop_invalid_header_fields=True,
            desync_mitigation_mode=elb.DesyncMitigationMode.STRICTEST,
        )
        cdk.Validations.of(self.balancer).acknowledge(
            cdk.Acknowledgment(
                id="AwsSolutions-ELB2",
                reason="the audit log of the server has each change and refusal with its person, "
                "and the flow log of the network each connection",
            )
        )
        target = elb.ApplicationTargetGroup(
            self,
            "Instance",
            vpc=vpc,
            port=port,
            protocol=elb.ApplicationProtocol.HTTPS,
            target_type=elb.TargetType.INSTANCE,
            targets=[group],
            deregistration_delay=cdk.Duration.seconds(30),
            health_check=elb.HealthCheck(
                path=HEALTH_PATH,
                protocol=elb.Protocol.HTTPS,
                healthy_http_codes="200",
                interval=cdk.Duration.seconds(15),
                timeout=cdk.Duration.seconds(10),
                healthy_threshold_count=2,
                unhealthy_threshold_count=4,
            ),
        )
        self.balancer.add_listener(
            "Tls",
            port=443,
            protocol=elb.ApplicationProtocol.HTTPS,
            certificates=[elb.ListenerCertificate.from_arn(certificate_arn)],
            ssl_policy=elb.SslPolicy.RECOMMENDED_TLS,
            default_target_groups=[target],
            # The rules of its group say who may connect.
            open=False,
        )


def server_alarm(
    scope: Construct, id_: str, *, name: str, topic: sns.ITopic | None = None
) -> cloudwatch.Alarm:
    """Alarm when a server has not answered for five minutes, or says nothing at all.

    Args:
        scope: the parent.
        id_: unique below the parent.
        name: of the server in its metric.
        topic: who is told; default: nobody.
    """
    return sign_of_life_alarm(
        scope,
        id_,
        metric="ServerAnswers",
        dimensions={"Server": name},
        statistic="Maximum",
        name=f"{name}-answers",
        description=f"Polynya {name}: the server does not answer. Read its log, streams "
        "INSTANCE/server and INSTANCE/boot; before the first `polynya config push` that is right.",
        topic=topic,
    )
