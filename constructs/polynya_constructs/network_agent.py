"""The network integration agent: the instance through which people reach the lakehouse."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_autoscaling as autoscaling
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from polynya_constructs.cluster.instance_types import (
    Architecture,
    architecture_of,
    check_instance_types,
)
from polynya_constructs.nodes.template import NodeTemplate, acknowledge_group_findings


class NetworkAgent(Construct):
    """One On-Demand instance, in a group of one so that it comes back by itself.

    It opens connections and accepts none: people reach what it serves on its loopback through
    Session Manager's port forwarding. `group`, `role` and `security_group` are what was made.

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
