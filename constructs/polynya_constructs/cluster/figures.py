"""Figures of a cluster while it has no node: data that waits is seen, and it gets older."""

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
from polynya_constructs.removal import KEPT


class FiguresWithoutNodes(Construct):
    """A function that publishes what waits, and how old it is, while no node serves.

    It also asks for the first node when there is work and the group asks for none, and suspends the
    launches of the group after three failed boots of one release, until the next one.

    Without it a group that lost all its nodes, or whose first one does not start, would have no
    figure at all, and no alarm would see its data wait. It estimates: what the nodes left, as they
    published it last, and what `Wake` counted since, at the speed that nodes measured before.
    `function` is the function.

    Example:
        >>> FiguresWithoutNodes(stack, "Figures", cluster=cluster)
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
        """Create the function and its clock.

        Args:
            scope: the parent.
            id_: unique below the parent.
            cluster: whose figures it publishes.
            log_retention: how long its log is kept; default one month.
            removal_policy: what becomes of its log with its stack; default: it is kept.
        """
        super().__init__(scope, id_)
        does = f"figures of {cluster.name} without nodes"
        self.function = group_function(
            self,
            "figures.handler.handle",
            does,
            cluster=cluster,
            role=self._role(cluster, does),
            log_retention=log_retention,
            removal_policy=removal_policy,
            # As nodes name it that report a failed boot.
            environment={"CODE": cluster.code[:16]} if cluster.code else {},
            retry_attempts=0,  # a figure of a minute that is over helps nobody
        )
        events.Rule(
            self,
            "EveryMinute",
            description=f"Polynya: {does}",
            schedule=events.Schedule.rate(cdk.Duration.minutes(1)),
            targets=[targets.LambdaFunction(self.function, retry_attempts=0)],
        )

    def _role(self, cluster: Cluster, does: str) -> iam.Role:
        role = group_role(self, does)
        allow(
            role,
            "OwnGroup",
            actions=[
                "autoscaling:CreateOrUpdateTags",
                "autoscaling:DeleteTags",
                "autoscaling:ResumeProcesses",
                "autoscaling:SetDesiredCapacity",
                "autoscaling:SuspendProcesses",
            ],
            resources=[cluster.group_arn],
            wildcard=GROUP_ARN_WILDCARD,
        )
        allow(
            role,
            "ReadWhatCannotBeScoped",
            actions=["autoscaling:DescribeAutoScalingGroups", "cloudwatch:GetMetricStatistics"],
            resources=["*"],
            wildcard="Auto Scaling and CloudWatch let nobody scope what reads groups and metrics",
        )
        return role
