"""A scaling strategy as alarms and policies of a group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import aws_cdk as cdk
import jsii
from aws_cdk import aws_autoscaling as autoscaling
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from constructs import Construct

from polynya_constructs.cluster.schedule import Predictive, ScheduledBounds
from polynya_constructs.cluster.strategies import (
    MINUTE,
    REMOVAL_COOLDOWN_SECONDS,
    Signal,
    Step,
    Strategy,
    Tracking,
)

NAMESPACE: Final = "Polynya"
"""Of every metric that the runtime publishes; its dimension is `Cluster`."""

ONE_MINUTE: Final = cdk.Duration.seconds(MINUTE)

_PREDICTIVE_MODES: Final = {
    Predictive.FORECAST_ONLY: "ForecastOnly",
    Predictive.FORECAST_AND_SCALE: "ForecastAndScale",
}

_LAUNCH_AHEAD_SECONDS: Final = 9 * MINUTE
"""How long before the hour of its forecast a node is launched: a boot and its warm-up."""

# A value is there only where both are: arithmetic takes a missing one for 0 ("Basic arithmetic
# functions", Amazon CloudWatch User Guide), and a node that publishes nothing would look idle. No
# value changes nothing.
_KNOWN: Final = "FILL(backlog, -1) >= 0 AND FILL(nodes, -1) >= 0"
_BACKLOG_PER_NODE: Final = "backlog / IF(nodes > 0, nodes, 1)"
_PER_NODE: Final = f"IF({_KNOWN}, {_BACKLOG_PER_NODE})"
# The mean of those that publish stands for all, so that a silent node does not look idle. The last
# node has no value.
_OTHERS_KNOWN: Final = "FILL(backlog, -1) >= 0 AND FILL(nodes, -1) > 1 AND FILL(busy, -1) >= 0"
_OTHERS_BUSY: Final = "busy * nodes / (nodes - 1)"


class Scaling(Construct):
    """The policies of one group. A group without them keeps the size that it has.

    The backlog is divided by the nodes in the expression, not by the publisher, so that a node
    that comes or goes counts at once. `backlog` and `oldest_age`, in seconds, `busy`, in percent,
    `nodes` and `desired` are the metrics that it looks at.

    Example:
        >>> latency = STRATEGIES[StrategyName.LOW_LATENCY]
        >>> Scaling(stack, "Scaling", group=cluster.group, cluster="shop", strategy=latency)
    """

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        group: autoscaling.AutoScalingGroup,
        cluster: str,
        strategy: Strategy,
        arrivals: cloudwatch.IMetric | None = None,
        unhandled: cloudwatch.IMetric | None = None,
        schedules: Sequence[ScheduledBounds] = (),
        predictive: Predictive | None = None,
    ) -> None:
        """Create the policies.

        Args:
            scope: the parent.
            id_: unique below the parent.
            group: the group; its metrics have to be on.
            cluster: the dimension under which its agents publish.
            strategy: which policies.
            arrivals: what lands, counted by someone other than the nodes. Needed by a strategy
                that ends the last node, for nobody else would see new work.
            unhandled: above 0 while what wakes the group does not; needed by such a strategy, too.
            schedules: bounds that change by the clock, checked by `check_schedules`.
            predictive: forecast from the days before, checked by `check_predictive`; default: off.

        Raises:
            ValueError: when such a strategy has no `arrivals` or no `unhandled`, or one without a
                target is to predict.
        """
        super().__init__(scope, id_)
        self._group, self._strategy = group, strategy
        self._arrivals, self._unhandled = arrivals, unhandled
        # Each node publishes the backlog of its own units, once a minute.
        self.backlog = runtime_metric("BacklogSeconds", cluster, statistic="Sum")
        self.oldest_age = runtime_metric("OldestUnmergedAge", cluster, statistic="Maximum")
        self.busy = runtime_metric("Saturation", cluster, statistic="Average")
        self.nodes = group_metric("GroupInServiceInstances", group)
        self.desired = group_metric("GroupDesiredCapacity", group)
        if strategy.tracking:
            self._track(strategy.tracking)
        for step in strategy.steps:
            self._step(step)
        for schedule in schedules:
            self._schedule(schedule)
        if predictive:
            self._predict(predictive)

    def _schedule(self, schedule: ScheduledBounds) -> None:
        self._group.scale_on_schedule(
            f"Schedule-{schedule.name}",
            schedule=autoscaling.Schedule.expression(schedule.cron),
            time_zone=schedule.time_zone,
            min_capacity=schedule.minimum,
            max_capacity=schedule.maximum,
        )

    def _predict(self, predictive: Predictive) -> None:
        """L1: there is no L2. The forecast is of the processors' load, which AWS counts itself."""
        of = autoscaling.CfnScalingPolicy
        pair = of.PredictiveScalingPredefinedMetricPairProperty(
            predefined_metric_type="ASGCPUUtilization"
        )
        target = self._strategy.predictive_cpu_percent
        if target is None:
            raise ValueError(f"strategy {self._strategy.name} has no target for a forecast")
        of(
            self,
            "Predictive",
            auto_scaling_group_name=self._group.auto_scaling_group_name,
            policy_type="PredictiveScaling",
            predictive_scaling_configuration=of.PredictiveScalingConfigurationProperty(
                mode=_PREDICTIVE_MODES[predictive],
                metric_specifications=[
                    of.PredictiveScalingMetricSpecificationProperty(
                        target_value=target, predefined_metric_pair_specification=pair
                    )
                ],
                scheduling_buffer_time=_LAUNCH_AHEAD_SECONDS,
                max_capacity_breach_behavior="HonorMaxCapacity",
            ),
        )

    def _track(self, tracking: Tracking) -> None:
        """L1: the L2 policy takes no metric math."""
        specification = autoscaling.CfnScalingPolicy.CustomizedMetricSpecificationProperty(
            metrics=[
                _query("backlog", self.backlog),
                _query("nodes", self.nodes),
                autoscaling.CfnScalingPolicy.TargetTrackingMetricDataQueryProperty(
                    id="per_node", expression=_PER_NODE, return_data=True
                ),
            ]
        )
        autoscaling.CfnScalingPolicy(
            self,
            "Tracking",
            auto_scaling_group_name=self._group.auto_scaling_group_name,
            policy_type="TargetTrackingScaling",
            estimated_instance_warmup=self._strategy.warmup_seconds,
            target_tracking_configuration=autoscaling.CfnScalingPolicy.TargetTrackingConfigurationProperty(
                target_value=tracking.target_seconds,
                customized_metric_specification=specification,
                # Its alarm would remove nodes that just keep up: they have no backlog.
                disable_scale_in=True,
            ),
        )
        self._remove_spare(tracking)

    def _remove_spare(self, tracking: Tracking) -> None:
        others = minute_math(
            f"IF({_OTHERS_KNOWN}, IF(backlog > {tracking.target_seconds / 2:g} * (nodes - 1), "
            f"100, {_OTHERS_BUSY}))",
            backlog=self.backlog,
            busy=self.busy,
            nodes=self.nodes,
        )
        alarm = cloudwatch.Alarm(
            self,
            "SpareNode",
            metric=others,
            threshold=tracking.busy_percent,
            comparison_operator=cloudwatch.ComparisonOperator.LESS_THAN_THRESHOLD,
            datapoints_to_alarm=tracking.busy_minutes,
            evaluation_periods=tracking.busy_minutes,
            treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
            alarm_description=f"with one node less the others would be less than "
            f"{tracking.busy_percent} % busy for {tracking.busy_minutes} minutes: -1 nodes",
        )
        alarm.add_alarm_action(self._removal("SpareNodePolicy", -1))

    def _removal(self, id_: str, change: int) -> _RunPolicy:
        """A simple scaling policy, the only type with a cooldown; the CDK has only its L1."""
        policy = autoscaling.CfnScalingPolicy(
            self,
            id_,
            auto_scaling_group_name=self._group.auto_scaling_group_name,
            policy_type="SimpleScaling",
            adjustment_type="ChangeInCapacity",
            scaling_adjustment=change,
            cooldown=str(REMOVAL_COOLDOWN_SECONDS),
        )
        return _RunPolicy(policy.ref)

    def _step(self, step: Step) -> None:
        adds = step.change > 0
        name = "".join(word.title() for word in step.signal.split()) + ("Out" if adds else "In")
        alarm = cloudwatch.Alarm(
            self,
            name,
            metric=self._signal(step.signal),
            threshold=step.threshold,
            comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_THRESHOLD
            if adds
            else cloudwatch.ComparisonOperator.LESS_THAN_THRESHOLD,
            datapoints_to_alarm=step.datapoints,
            evaluation_periods=step.periods,
            # Missing figures change nothing; an alarm of its own tells people.
            treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
            alarm_description=f"{step.signal} of {step.datapoints} in {step.periods} minutes: "
            f"{step.change:+d} nodes",
        )
        if not adds:
            alarm.add_alarm_action(self._removal(f"{name}Policy", step.change))
            return
        # To one, not by one: the function that wakes a group may have been there before.
        wakes = step.signal is Signal.UNHANDLED_ARRIVALS
        kind = autoscaling.AdjustmentType
        action = autoscaling.StepScalingAction(
            self,
            f"{name}Policy",
            auto_scaling_group=self._group,
            adjustment_type=kind.EXACT_CAPACITY if wakes else kind.CHANGE_IN_CAPACITY,
            estimated_instance_warmup=cdk.Duration.seconds(self._strategy.warmup_seconds),
        )
        double = step.threshold if step.change_beyond_double else None
        action.add_adjustment(adjustment=step.change, lower_bound=0, upper_bound=double)
        if step.change_beyond_double:
            action.add_adjustment(adjustment=step.change_beyond_double, lower_bound=double)
        alarm.add_alarm_action(actions.AutoScalingAction(action))

    def _signal(self, signal: Signal) -> cloudwatch.IMetric:
        if signal is Signal.OLDEST_UNMERGED_AGE:
            return self.oldest_age
        if signal is Signal.BACKLOG_PER_NODE:
            return minute_math(_PER_NODE, backlog=self.backlog, nodes=self.nodes)
        if self._arrivals is None or self._unhandled is None:
            raise ValueError(
                f"strategy {self._strategy.name} ends the last node; without `arrivals` and "
                "`unhandled` nothing would start one again"
            )
        if signal is Signal.IDLENESS:
            return minute_math(
                # Of an empty group there is no value: that little waits for a node which is slow
                # to come would turn the alarm on, and end it before it serves. One condition, for
                # IF makes a 0 of a second argument without a value ("Using IF expressions").
                "IF(FILL(backlog, -1) >= 0 AND FILL(nodes, -1) > 0, "
                "IF(nodes < 2 AND FILL(arrivals, 0) > 0, 86400, backlog / nodes))",
                backlog=self.backlog,
                nodes=self.nodes,
                arrivals=self._arrivals,
            )
        return minute_math(
            # Without a figure of the group nothing is known, so nothing is changed.
            "IF(FILL(desired, 1) > 0, 0, FILL(unhandled, 0))",
            desired=self.desired,
            unhandled=self._unhandled,
        )


@jsii.implements(cloudwatch.IAlarmAction)
class _RunPolicy:
    """Runs a policy that has no L2."""

    def __init__(self, arn: str) -> None:
        self._arn = arn

    def bind(self, _scope: Construct, _alarm: cloudwatch.IAlarm) -> cloudwatch.AlarmActionConfig:
        return cloudwatch.AlarmActionConfig(alarm_action_arn=self._arn)


def runtime_metric(name: str, cluster: str, *, statistic: str) -> cloudwatch.Metric:
    """A metric that the agents of a cluster publish."""
    return cloudwatch.Metric(
        namespace=NAMESPACE,
        metric_name=name,
        dimensions_map={"Cluster": cluster},
        statistic=statistic,
        period=ONE_MINUTE,
    )


def group_metric(name: str, group: autoscaling.IAutoScalingGroup) -> cloudwatch.Metric:
    """A metric that EC2 Auto Scaling publishes of a group, such as `GroupDesiredCapacity`."""
    return cloudwatch.Metric(
        namespace="AWS/AutoScaling",
        metric_name=name,
        dimensions_map={"AutoScalingGroupName": group.auto_scaling_group_name},
        statistic="Average",
        period=ONE_MINUTE,
    )


def minute_math(expression: str, **metrics: cloudwatch.IMetric) -> cloudwatch.MathExpression:
    """An expression over one-minute values; unless told, the CDK makes them five-minute ones."""
    return cloudwatch.MathExpression(
        expression=expression, using_metrics=metrics, period=ONE_MINUTE, label=""
    )


def _query(
    id_: str, metric: cloudwatch.Metric
) -> autoscaling.CfnScalingPolicy.TargetTrackingMetricDataQueryProperty:
    policy = autoscaling.CfnScalingPolicy
    return policy.TargetTrackingMetricDataQueryProperty(
        id=id_,
        return_data=False,
        metric_stat=policy.TargetTrackingMetricStatProperty(
            metric=policy.MetricProperty(
                namespace=metric.namespace,
                metric_name=metric.metric_name,
                dimensions=[
                    policy.MetricDimensionProperty(name=name, value=value)
                    for name, value in (metric.dimensions or {}).items()
                ],
            ),
            stat=metric.statistic,
            period=MINUTE,
        ),
    )
