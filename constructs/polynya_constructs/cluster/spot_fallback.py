"""The Spot fallback of one group: a function that runs every minute and when a launch failed."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from constructs import Construct

from polynya_constructs.cluster.cluster import GROUP_ARN_WILDCARD, Cluster
from polynya_constructs.cluster.group_function import group_function, group_role
from polynya_constructs.grants import allow
from polynya_constructs.launches import LaunchedNodes, allow_launches
from polynya_constructs.removal import KEPT


class SpotFallback(Construct):
    """Raises the On-Demand base of a group by what Spot does not give, and hands it back.

    The function is the package `functions/spot_fallback` as it stands, the same that tests and the
    simulator run. Its role may change this one group and read what EC2 lets nobody scope.
    `function` is the function.

    Example:
        >>> fallback = SpotFallback(stack, "SpotFallback", cluster=cluster)
    """

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        cluster: Cluster,
        log_retention: logs.RetentionDays = logs.RetentionDays.ONE_MONTH,
        removal_policy: cdk.RemovalPolicy = KEPT,
    ) -> None:
        """Create the function and what starts it.

        Args:
            scope: the parent.
            id_: unique below the parent.
            cluster: whose group it looks after.
            log_retention: how long its decisions can be read; default one month.
            removal_policy: what becomes of its log with its stack; default: it is kept.
        """
        super().__init__(scope, id_)
        does = f"Spot fallback of {cluster.name}"
        self.function = group_function(
            self,
            "spot_fallback.handler.handle",
            does,
            cluster=cluster,
            role=self._role(cluster, does),
            log_retention=log_retention,
            removal_policy=removal_policy,
            environment={"CONFIGURED_BASE": str(cluster.capacity.on_demand_base)},
            retry_attempts=0,  # the next minute is the retry
        )
        target = targets.LambdaFunction(self.function, retry_attempts=0)
        events.Rule(
            self,
            "EveryMinute",
            description=f"Polynya: {does}",
            schedule=events.Schedule.rate(cdk.Duration.minutes(1)),
            targets=[target],
        )
        events.Rule(
            self,
            "LaunchFailed",
            description=f"Polynya: a launch of {cluster.name} failed; best effort",
            event_pattern=events.EventPattern(
                source=["aws.autoscaling"],
                detail_type=["EC2 Instance Launch Unsuccessful"],
                detail={"AutoScalingGroupName": [cluster.name]},
            ),
            targets=[target],
        )

    def _role(self, cluster: Cluster, does: str) -> iam.Role:
        role = group_role(self, does)
        allow(
            role,
            "OwnGroup",
            actions=["autoscaling:CreateOrUpdateTags", "autoscaling:UpdateAutoScalingGroup"],
            resources=[cluster.group_arn],
            wildcard=GROUP_ARN_WILDCARD,
        )
        allow(
            role,
            "ReadWhatCannotBeScoped",
            actions=[
                "autoscaling:DescribeAutoScalingGroups",
                "autoscaling:DescribeScalingActivities",
                "ec2:DescribeInstances",
            ],
            resources=["*"],
            wildcard="EC2 and Auto Scaling let nobody scope their Describe actions",
        )
        own = LaunchedNodes(cluster.launch_template.launch_template_id or "", cluster.role.role_arn)
        allow_launches(role, [own])
        return role
