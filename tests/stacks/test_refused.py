"""What no gate but AWS itself would refuse, refused when it is synthesized."""

from __future__ import annotations

import pytest

from polynya_constructs.cluster.strategies import STRATEGIES, StrategyName

pytestmark = pytest.mark.synth


def test_what_cannot_work_is_refused_at_synth() -> None:
    import aws_cdk as cdk
    from aws_cdk import aws_autoscaling as autoscaling
    from aws_cdk import aws_ec2 as ec2

    from polynya_constructs.cluster.capacity import Capacity
    from polynya_constructs.cluster.cluster import Cluster
    from polynya_constructs.cluster.scaling import Scaling
    from polynya_constructs.cluster.schedule import Predictive

    app = cdk.App()
    stack = cdk.Stack(app, "Stack")
    private = ec2.SubnetConfiguration(name="P", subnet_type=ec2.SubnetType.PRIVATE_ISOLATED)
    strategy = STRATEGIES[StrategyName.LOW_COST]

    def cluster(name: str, zones: int) -> Cluster:
        vpc = ec2.Vpc(
            stack, f"{name}Vpc", max_azs=zones, nat_gateways=0, subnet_configuration=[private]
        )
        capacity = Capacity.of(strategy, maximum=2)
        data = ec2.UserData.for_linux()
        return Cluster(
            stack, name, name=name, vpc=vpc, strategy=strategy, capacity=capacity, user_data=data
        )

    with pytest.raises(ValueError, match="fewer than 2 isolated subnets"):
        cluster("OneZone", 1)
    made = cluster("Made", 2)
    with pytest.raises(
        ValueError, match="without `arrivals` and `unhandled` nothing would start one again"
    ):
        Scaling(stack, "Scaling", group=made.group, cluster="made", strategy=strategy)
    with pytest.raises(ValueError, match="no target for a forecast"):
        Scaling(
            stack,
            "Forecast",
            group=made.group,
            cluster="made",
            strategy=STRATEGIES[StrategyName.NO_SCALING],
            predictive=Predictive.FORECAST_ONLY,
        )
    made.group.add_warm_pool()
    assert isinstance(made.group.node.find_child("WarmPool"), autoscaling.WarmPool)
    with pytest.raises(RuntimeError, match="a mixed-instances policy has no warm pool"):
        app.synth()
