"""The network integration agent: the instance through which people reach the lakehouse."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import aws_cdk as cdk
from aws_cdk import aws_autoscaling as autoscaling
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sns as sns
from constructs import Construct

from polynya_constructs.cluster.cluster import CLUSTER_TAG, GROUP_ARN_WILDCARD
from polynya_constructs.cluster.instance_types import (
    Architecture,
    architecture_of,
    check_instance_types,
)
from polynya_constructs.coordination import COORDINATION_PREFIX
from polynya_constructs.grants import allow, allow_objects
from polynya_constructs.launches import LaunchedNodes, allow_launches
from polynya_constructs.nodes.template import NodeTemplate, acknowledge_group_findings
from polynya_constructs.sign_of_life import sign_of_life_alarm

_ON_GROUPS: Final = (
    "autoscaling:CreateOrUpdateTags",
    "autoscaling:DeleteTags",
    "autoscaling:ResumeProcesses",
    "autoscaling:SetDesiredCapacity",
    "autoscaling:StartInstanceRefresh",
    "autoscaling:SuspendProcesses",
    "autoscaling:UpdateAutoScalingGroup",
)
_ABOUT_GROUPS: Final = (
    "autoscaling:DescribeAutoScalingGroups",
    "autoscaling:DescribeInstanceRefreshes",
    "autoscaling:DescribeScalingActivities",
)
_ABOUT_PRICES: Final = ("ec2:DescribeSpotPriceHistory", "pricing:GetProducts")


class NetworkAgent(Construct):
    """One On-Demand instance, in a group of one so that it comes back by itself.

    It opens connections and accepts none, and carries out on the groups of its clusters what people
    ask for; it may read no data. `group`, `role`, `security_group` and `template` are what was
    made.

    Example:
        >>> NetworkAgent(stack, "Agent", name="shop-agent", vpc=vpc, user_data=boot)
    """

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        name: str,
        vpc: ec2.IVpc,
        user_data: ec2.UserData,
        instance_type: str = "t4g.small",
        machine_image: ec2.IMachineImage | None = None,
        session_manager: bool = False,
    ) -> None:
        """Create the instance's group.

        Args:
            scope: the parent.
            id_: unique below the parent.
            name: of group and instance; unique in the account and region.
            vpc: it runs in one of the isolated subnets.
            user_data: what runs at boot.
            instance_type: default t4g.small.
            machine_image: default: the newest Amazon Linux 2023 at each deploy.
            session_manager: whether people come in by Session Manager; default: nobody does.

        Raises:
            ValueError: for an instance type that there is not.
        """
        super().__init__(scope, id_)
        architecture: Architecture = architecture_of(instance_type)
        check_instance_types([instance_type], architecture)
        node = NodeTemplate(
            self,
            "Node",
            vpc=vpc,
            architecture=architecture,
            user_data=user_data,
            name=name,
            instance_type=instance_type,
            machine_image=machine_image,
            root_volume_gib=20,
            session_manager=session_manager,
        )
        self.role, self.security_group = node.role, node.security_group
        self.template = node.template
        self.group = autoscaling.AutoScalingGroup(
            self,
            "Group",
            auto_scaling_group_name=name,
            vpc=vpc,
            vpc_subnets=ec2.SubnetSelection(subnets=vpc.isolated_subnets),
            launch_template=node.template,
            min_capacity=1,
            max_capacity=1,
            group_metrics=[autoscaling.GroupMetrics.all()],
            health_checks=autoscaling.HealthChecks.ec2(grace_period=cdk.Duration.minutes(5)),
            # One instance has no second to replace it first; it is gone for the minutes of a boot.
            update_policy=autoscaling.UpdatePolicy.rolling_update(min_instances_in_service=0),
        )
        acknowledge_group_findings(self.group)
        # By which its boot knows its own name.
        cdk.Tags.of(node.template).add(CLUSTER_TAG, name)

    def grant_commands(
        self,
        configuration: s3.IBucket,
        key: kms.IKey,
        clusters: Sequence[str],
        launches: Sequence[LaunchedNodes] = (),
    ) -> None:
        """Let it take commands for clusters, change their groups, and see their state and prices.

        Args:
            configuration: the bucket in which commands lie, below the coordination prefix.
            key: encrypts it.
            clusters: by the names of their groups.
            launches: what these groups launch; Auto Scaling asks for the right to launch it of
                whoever changes their bounds.
        """
        stack = cdk.Stack.of(self)
        bucket = configuration.bucket_arn
        allow(self.role, "ListCommands", actions=["s3:ListBucket"], resources=[bucket])
        # The version that is pinned, and its package.
        versions = f"{COORDINATION_PREFIX}network-agent-*"
        allow_objects(self.role, "Versions", configuration, versions, ["s3:GetObject"])
        objects = [
            f"{COORDINATION_PREFIX}{name}/{what}"
            for name in clusters
            for what in ("commands/*", "network-agent")
        ]
        if objects:
            rights = ["s3:DeleteObject", "s3:GetObject", "s3:PutObject"]
            allow_objects(self.role, "Commands", configuration, objects, rights)
            allow(
                self.role,
                "Groups",
                actions=_ON_GROUPS,
                resources=[
                    stack.format_arn(
                        service="autoscaling",
                        resource="autoScalingGroup",
                        resource_name=f"*:autoScalingGroupName/{name}",
                        arn_format=cdk.ArnFormat.COLON_RESOURCE_NAME,
                    )
                    for name in clusters
                ],
                wildcard=GROUP_ARN_WILDCARD,
            )
        if launches:
            allow_launches(self.role, launches)
        allow(
            self.role,
            "ReadWhatCannotBeScoped",
            actions=_ABOUT_GROUPS,
            resources=["*"],
            wildcard="Auto Scaling lets nobody scope its Describe actions",
        )
        allow(
            self.role,
            "SeePrices",
            actions=_ABOUT_PRICES,
            resources=["*"],
            wildcard="prices belong to no resource",
        )
        allow(
            self.role,
            "UseKey",
            actions=["kms:Decrypt", "kms:GenerateDataKey"],
            resources=[key.key_arn],
        )

    def alarm(self, cluster: str, topic: sns.ITopic | None = None) -> cloudwatch.Alarm:
        """Alarm when it has not reached a cluster for five minutes, or says nothing at all."""
        return sign_of_life_alarm(
            self,
            f"Disconnected-{cluster}",
            metric="NetworkAgentConnected",
            dimensions={"Cluster": cluster},
            statistic="Minimum",
            name=f"{cluster}-network-agent",
            description=f"Polynya {cluster}: the network agent is Disconnected: nobody can "
            "stop, start, roll or scale the cluster. Look at its log, and at its instance.",
            topic=topic,
        )
