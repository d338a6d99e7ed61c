"""What Auto Scaling checks of whoever updates a group that has a launch template."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import aws_cdk as cdk
from aws_cdk import aws_iam as iam

from polynya_constructs.grants import allow


@dataclass(frozen=True, slots=True)
class LaunchedNodes:
    """What a group launches its nodes from: the id of the template, the ARN of their role."""

    template_id: str
    role_arn: str


def allow_launches(role: iam.Role, groups: Sequence[LaunchedNodes]) -> None:
    """Let `role` update groups, as far as that is a matter of what they launch.

    To update a group that uses a launch template asks for `ec2:RunInstances` whatever is updated
    (EC2 Auto Scaling User Guide, "Required permissions for the API"), for `iam:PassRole` when the
    template names an instance profile, and for `ec2:CreateTags` when it has tags ("Launch template
    support"). It would ask for `ssm:GetParameters`, too, if the template named its image by a
    parameter; ours has the id of the image. All three hold for these templates and roles only.
    """
    stack = cdk.Stack.of(role)
    templates = [
        stack.format_arn(service="ec2", resource="launch-template", resource_name=group.template_id)
        for group in groups
    ]
    allow(
        role,
        "LaunchFromOwnTemplate",
        actions=["ec2:RunInstances"],
        resources=["*"],
        wildcard="subnets, images and volumes of a launch; its template is named by a condition",
        # Nothing that the template says may be replaced in the call, such as role or user data.
        conditions={
            "ArnLike": {"ec2:LaunchTemplate": templates[0] if len(templates) == 1 else templates},
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
        resources=[group.role_arn for group in groups],
        conditions={"StringEquals": {"iam:PassedToService": "ec2.amazonaws.com"}},
    )
