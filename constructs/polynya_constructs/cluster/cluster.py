"""A cluster: an Auto Scaling group of Spot and On-Demand nodes that all run the same agent."""

from __future__ import annotations

from typing import Final

import aws_cdk as cdk
import jsii
from aws_cdk import aws_autoscaling as autoscaling
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_ec2 as ec2
from constructs import Construct, IConstruct, IValidation

from polynya_constructs.cluster.capacity import Capacity
from polynya_constructs.cluster.strategies import Strategy
from polynya_constructs.grants import allow
from polynya_constructs.nodes.template import NodeTemplate, acknowledge_group_findings

LAUNCH_HOOK: Final = "ready"
TERMINATE_HOOK: Final = "drain"
"""Names by which the files in `node/` complete the two lifecycle actions."""

CLUSTER_TAG: Final = "polynya:cluster"
"""Tag by which an instance knows its cluster, without a call."""

_LAUNCH_SECONDS: Final = 600
"""How long a node may take from its launch until its agent is ready."""

GROUP_ARN_WILDCARD: Final = "a group's ARN holds an id that only AWS knows; its name is given"

# What a node may do to its own group, and to no other.
_OWN_GROUP = ("autoscaling:CompleteLifecycleAction",)

_SPOT = {
    "price-capacity-optimized": autoscaling.SpotAllocationStrategy.PRICE_CAPACITY_OPTIMIZED,
    "capacity-optimized": autoscaling.SpotAllocationStrategy.CAPACITY_OPTIMIZED,
}


class Cluster(Construct):
    """The group, its launch template and its lifecycle hooks.

    A node counts as in service once its agent has completed the launch hook, which it does after
    the first good reading of its configuration; one that does not in ten minutes is ended. A node
    whose agent stays down for ten minutes switches itself off, and is replaced. Before a node ends,
    its agent has the drain time to finish or give up what it does. An interrupted
    Spot node has two minutes, whatever the hook says.

    `group` is the group, `group_arn` its name in policies, `role`, `security_group` and
    `launch_template` are those of its nodes, `agents_fail` is the alarm on which a deploy goes
    back, None where no code is named.

    Example:
        >>> low_cost = STRATEGIES[StrategyName.LOW_COST]
        >>> one = Capacity.of(low_cost, maximum=1)
        >>> Cluster(
        ...     stack,
        ...     "Cluster",
        ...     name="shop",
        ...     vpc=vpc,
        ...     strategy=low_cost,
        ...     capacity=one,
        ...     user_data=boot,
        ... )
    """

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        name: str,
        vpc: ec2.IVpc,
        strategy: Strategy,
        capacity: Capacity,
        user_data: ec2.UserData,
        machine_image: ec2.IMachineImage | None = None,
        root_volume_gib: int = 50,
        drain: cdk.Duration | None = None,
        session_manager: bool = False,
        detailed_monitoring: bool = False,
        code: str | None = None,
    ) -> None:
        """Create the cluster.

        Args:
            scope: the parent.
            id_: unique below the parent.
            name: of the group and its nodes; unique in the account and region.
            vpc: nodes run in its isolated subnets.
            strategy: its scaling strategy; the policies themselves are made by `Scaling`.
            capacity: how many nodes of which kind.
            user_data: starts the agent, which completes the launch hook.
            machine_image: default: the newest Amazon Linux 2023 at each deploy.
            root_volume_gib: of each node; default 50.
            drain: how long a node that scaling ends may take; default 10 minutes.
            session_manager: whether people come to a node by Session Manager; default: nobody does.
            detailed_monitoring: whether EC2 publishes metrics of nodes each minute, for a forecast.
            code: SHA-256 of the code that `user_data` fetches. A deploy whose new nodes run it and
                fail after they were ready goes back then; default: only one whose new nodes do not
                get ready.

        Raises:
            ValueError: when the VPC has a single isolated subnet.
        """
        super().__init__(scope, id_)
        if len(vpc.isolated_subnets) < 2:
            raise ValueError("the VPC has fewer than 2 isolated subnets; one zone can fail")
        node = NodeTemplate(
            self,
            "Node",
            vpc=vpc,
            architecture=capacity.architecture,
            user_data=user_data,
            name=name,
            machine_image=machine_image,
            root_volume_gib=root_volume_gib,
            session_manager=session_manager,
            detailed_monitoring=detailed_monitoring,
        )
        cdk.Tags.of(node.template).add(CLUSTER_TAG, name)
        self.role, self.security_group = node.role, node.security_group
        self.launch_template = node.template
        self.name, self.capacity, self.code = name, capacity, code
        self.agents_fail = self._agents_fail(code) if code is not None else None
        self.group = self._group(vpc, node, strategy)
        acknowledge_group_findings(self.group)
        self.group_arn = cdk.Stack.of(self).format_arn(
            service="autoscaling",
            resource="autoScalingGroup",
            resource_name=f"*:autoScalingGroupName/{name}",
            arn_format=cdk.ArnFormat.COLON_RESOURCE_NAME,
        )
        _put_hooks(self.group, drain or cdk.Duration.minutes(10))
        allow(
            self.role,
            "OwnGroup",
            actions=_OWN_GROUP,
            resources=[self.group_arn],
            wildcard=GROUP_ARN_WILDCARD,
        )
        self.node.add_validation(_NoWarmPool(self.group))

    def _agents_fail(self, code: str) -> cloudwatch.Alarm:
        """On when agents that run this code worked once and fail now, or a node does not boot.

        Its name has the code: a deploy that repairs a broken version watches an alarm of its own,
        and is not given up because of the one before.
        """
        metric = cloudwatch.Metric(
            namespace="Polynya",
            metric_name="FailingAgents",
            dimensions_map={"Cluster": self.name, "Code": code[:16]},
            statistic="Sum",
            period=cdk.Duration.minutes(1),
        )
        return metric.create_alarm(
            self,
            "AgentsFail",
            alarm_name=f"{self.name}-AgentsFail-{code[:8]}",
            alarm_description="agents end again and again or stay down, or nodes do not boot: read "
            "their log, streams INSTANCE/agent and INSTANCE/boot; a deploy that is under way goes "
            "back to the version before",
            comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_THRESHOLD,
            threshold=0,
            evaluation_periods=5,
            datapoints_to_alarm=2,
            treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
        )

    def _group(
        self, vpc: ec2.IVpc, node: NodeTemplate, strategy: Strategy
    ) -> autoscaling.AutoScalingGroup:
        capacity = self.capacity
        return autoscaling.AutoScalingGroup(
            self,
            "Group",
            auto_scaling_group_name=self.name,
            vpc=vpc,
            vpc_subnets=ec2.SubnetSelection(subnets=vpc.isolated_subnets),
            min_capacity=capacity.minimum,
            max_capacity=capacity.maximum,
            mixed_instances_policy=autoscaling.MixedInstancesPolicy(
                launch_template=node.template,
                launch_template_overrides=[
                    autoscaling.LaunchTemplateOverrides(instance_type=ec2.InstanceType(name))
                    for name in capacity.instance_types
                ],
                instances_distribution=autoscaling.InstancesDistribution(
                    on_demand_base_capacity=capacity.on_demand_base,
                    on_demand_percentage_above_base_capacity=capacity.on_demand_percentage,
                    on_demand_allocation_strategy=autoscaling.OnDemandAllocationStrategy.PRIORITIZED,
                    spot_allocation_strategy=_SPOT[capacity.spot_allocation],
                ),
            ),
            capacity_rebalance=True,
            default_instance_warmup=cdk.Duration.seconds(strategy.warmup_seconds),
            # systemd restarts the agent on a machine that lives; this check sees a dead one.
            health_checks=autoscaling.HealthChecks.ec2(grace_period=cdk.Duration.minutes(10)),
            group_metrics=[autoscaling.GroupMetrics.all()],
            # The new node first: the group is never smaller for a deploy. A refresh that fails
            # fails the deploy, and CloudFormation goes back to the template before. It does when
            # a node does not get ready, and when agents fail before the bake time is over.
            update_policy=autoscaling.UpdatePolicy.instance_refresh(
                strategy=autoscaling.InstanceRefreshStrategy.ROLLING,
                # Where the group may be empty, the old node first: nothing waits for its two
                # minutes, and the quota of a new account has no room for a second one.
                min_healthy_percentage=100 if capacity.minimum else 0,
                max_healthy_percentage=150 if capacity.minimum else 100,
                bake_time=cdk.Duration.minutes(10),
                alarms=[self.agents_fail] if self.agents_fail is not None else None,
                # Waiting, the default, fails the deploy when a node merges for an hour.
                scale_in_protected_instances=autoscaling.ScaleInProtectedInstances.REFRESH,
            ),
        )


def _put_hooks(group: autoscaling.AutoScalingGroup, drain: cdk.Duration) -> None:
    """Make the hooks part of the group (L1: the L2 makes resources of their own).

    A hook of its own is created after the group, whose first nodes would be in service before
    they are ready ("LifecycleHookSpecificationList", CloudFormation Template Reference).
    """
    resource = group.node.default_child
    assert isinstance(resource, autoscaling.CfnAutoScalingGroup)
    hook = autoscaling.CfnAutoScalingGroup.LifecycleHookSpecificationProperty
    resource.lifecycle_hook_specification_list = [
        hook(
            lifecycle_hook_name=LAUNCH_HOOK,
            lifecycle_transition="autoscaling:EC2_INSTANCE_LAUNCHING",
            default_result="ABANDON",
            heartbeat_timeout=_LAUNCH_SECONDS,
        ),
        hook(
            lifecycle_hook_name=TERMINATE_HOOK,
            lifecycle_transition="autoscaling:EC2_INSTANCE_TERMINATING",
            default_result="CONTINUE",
            heartbeat_timeout=drain.to_seconds(),
        ),
    ]


@jsii.implements(IValidation)
class _NoWarmPool:
    """A group that may run Spot nodes has no warm pool; no gate but AWS itself says so."""

    def __init__(self, group: IConstruct) -> None:
        self._group = group

    def validate(self) -> list[str]:
        pools = [
            child.node.path
            for child in self._group.node.find_all()
            if isinstance(child, autoscaling.CfnWarmPool)
        ]
        return [f"{path}: a group with a mixed-instances policy has no warm pool" for path in pools]
