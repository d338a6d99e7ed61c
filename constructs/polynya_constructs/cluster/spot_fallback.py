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
            "spot_fallback",
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
        _allow_launches(role, cluster)
        return role


def _allow_launches(role: iam.Role, cluster: Cluster) -> None:
    """What Auto Scaling checks of whoever updates a group that has a launch template.

    To update a group that uses a launch template asks for `ec2:RunInstances` whatever is updated
    (EC2 Auto Scaling User Guide, "Required permissions for the API"), for `iam:PassRole` when the
    template names an instance profile, and for `ec2:CreateTags` when it has tags ("Launch template
    support"). It would ask for `ssm:GetParameters`, too, if the template named its image by a
    parameter; ours has the id of the image. All three hold for this template and this role only.
    """
    stack = cdk.Stack.of(role)
    template = stack.format_arn(
        service="ec2",
        resource="launch-template",
        resource_name=cluster.launch_template.launch_template_id,
    )
    allow(
        role,
        "LaunchFromOwnTemplate",
        actions=["ec2:RunInstances"],
        resources=["*"],
        wildcard="subnets, images and volumes of a launch; its template is named by a condition",
        # Nothing that the template says may be replaced in the call, such as role or user data.
        conditions={
            "ArnLike": {"ec2:LaunchTemplate": template},
            "Bool": {"ec2:IsLaunchTemplateResource": "true"},
        },
    )
    allow(
        role,
        "TagWhatIsLaunched",
        actions=["ec2:CreateTags"],
        resources=[stack.format_arn(service="ec2", resource="*", resource_name="*")],
        wildcard="instances and volumes that a launch makes, named by a condition",
        conditions={"StringEquals": {"ec2:CreateAction": "RunInstances"}},
    )
    allow(
        role,
        "PassNodeRole",
        actions=["iam:PassRole"],
        resources=[cluster.role.role_arn],
        conditions={"StringEquals": {"iam:PassedToService": "ec2.amazonaws.com"}},
    )
