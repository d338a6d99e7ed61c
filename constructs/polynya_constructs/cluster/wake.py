"""What starts the first node of an empty group: objects that land, told by S3 as events."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3
from constructs import Construct

from polynya_constructs.cluster.cluster import GROUP_ARN_WILDCARD, Cluster
from polynya_constructs.grants import allow
from polynya_constructs.removal import KEPT

_CODE: Final = Path(__file__).parents[1] / "functions"
_EVENT_AGE: Final = cdk.Duration.minutes(15)
"""How long an event that Lambda could not take is tried again; the alarm is there by then."""


class Wake(Construct):
    """A function that asks for one node when something lands and the group asks for none.

    S3 tells of an object within seconds, while request metrics come minutes late and cost by the
    metric. The buckets have to send their events to EventBridge. `function` is the function,
    `arrivals` counts its events: an alarm on it is the second way, should the function fail.

    Example:
        >>> arrivals = Wake(stack, "Wake", cluster=cluster, watched={landing: ""}).arrivals
    """

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        cluster: Cluster,
        watched: Mapping[s3.IBucket, str],
        log_retention: logs.RetentionDays = logs.RetentionDays.ONE_MONTH,
        removal_policy: cdk.RemovalPolicy = KEPT,
    ) -> None:
        """Create the function and what starts it.

        Args:
            scope: the parent.
            id_: unique below the parent.
            cluster: whose group it wakes.
            watched: buckets, each with the prefix of the keys that count; empty: all of them.
            log_retention: how long its log is kept; default one month.
            removal_policy: what becomes of its log with its stack; default: it is kept.
        """
        super().__init__(scope, id_)
        log_group = logs.LogGroup(
            self, "Log", retention=log_retention, removal_policy=removal_policy
        )
        self.function = lambda_.Function(
            self,
            "Function",
            description=f"Polynya: wakes {cluster.name}",
            runtime=lambda_.Runtime.PYTHON_3_14,
            architecture=lambda_.Architecture.ARM_64,
            handler="wake.handler.handle",
            code=lambda_.Code.from_asset(str(_CODE), exclude=["**/__pycache__", "**/*.pyc"]),
            role=self._role(cluster, log_group),
            log_group=log_group,
            memory_size=256,
            timeout=cdk.Duration.seconds(30),
            max_event_age=_EVENT_AGE,
            environment={"GROUP_NAME": cluster.name},
        )
        landed = events.Rule(
            self,
            "Landed",
            description=f"Polynya: something landed for {cluster.name}",
            event_pattern=events.EventPattern(
                source=["aws.s3"],
                detail_type=["Object Created"],
                detail={
                    "$or": [
                        {
                            "bucket": {"name": [bucket.bucket_name]},
                            **({"object": {"key": [{"prefix": prefix}]}} if prefix else {}),
                        }
                        for bucket, prefix in watched.items()
                    ]
                },
            ),
            targets=[targets.LambdaFunction(self.function, max_event_age=_EVENT_AGE)],
        )
        self.arrivals = cloudwatch.Metric(
            namespace="AWS/Events",
            metric_name="Invocations",
            dimensions_map={"RuleName": landed.rule_name},
            statistic="Sum",
            period=cdk.Duration.minutes(1),
        )

    def _role(self, cluster: Cluster, log_group: logs.LogGroup) -> iam.Role:
        role = iam.Role(
            self,
            "Role",
            assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"),
            description=f"Polynya: wakes {cluster.name}",
        )
        allow(
            role,
            "OwnGroup",
            actions=["autoscaling:SetDesiredCapacity"],
            resources=[cluster.group_arn],
            wildcard=GROUP_ARN_WILDCARD,
        )
        allow(
            role,
            "ReadWhatCannotBeScoped",
            actions=["autoscaling:DescribeAutoScalingGroups"],
            resources=["*"],
            wildcard="Auto Scaling lets nobody scope its Describe actions",
        )
        log_group.grant_write(role)
        return role
