"""What starts the first node of an empty group: objects that land, and records on their way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3
from constructs import Construct

from polynya_constructs.cluster.cluster import GROUP_ARN_WILDCARD, Cluster
from polynya_constructs.cluster.group_function import group_function, group_role
from polynya_constructs.cluster.object_events import (
    hand_over_events,
    let_read_own_landing,
    own_landing_key,
)
from polynya_constructs.cluster.scaling import (
    ONE_MINUTE,
    group_metric,
    minute_math,
    runtime_metric,
)
from polynya_constructs.cluster.strategies import MOST_STREAMS
from polynya_constructs.grants import allow
from polynya_constructs.removal import KEPT

_WINDOW: Final = cdk.Duration.seconds(20)
"""How long Lambda collects events; a batch ends earlier with 10,000 of them, or with 6 MB."""

_TAKEN: Final = cdk.Duration.minutes(4)
"""Until an event that a failed function took is there again: six times its timeout, and a window,
as "Configuring a queue to use with Lambda" (AWS Lambda Developer Guide) has it."""

_EVENT_AGE: Final = cdk.Duration.minutes(15)
"""How long an event that Lambda could not take is tried again; the alarm is there by then."""


_LATE_SECONDS: Final = 120
"""An event that waits for longer was not taken: a function that works takes it after a window."""


class Wake(Construct):
    """A function that asks for one node when something lands and the group asks for none.

    S3 tells of an object within seconds, while request metrics come minutes late and cost by the
    metric. The buckets have to send their events to EventBridge. A queue collects them, and the
    function takes them in batches: Auto Scaling has one budget of requests for everybody in the
    account, and a new account runs ten functions at once.

    What a stream collects before it lands is seen earlier by an alarm on the stream's own count,
    which starts the same function. The alarm needs no right to read the stream and takes no part
    of its throughput, as a pipe or an event source mapping would; it costs $0.10 a month for each
    metric, and is some minutes late (Amazon CloudWatch User Guide, "Invoke a Lambda function from
    an alarm").

    Of the objects that land only those of the cluster's own tasks count, as its leader wrote them
    in the coordination folder; all do until it has written, and when that cannot be read.

    `function` is the function. `arrivals` counts the cluster's own objects, and the records: the
    last node stays while it counts any. `unhandled` is above 0 while events wait in the queue for
    longer than two minutes, which they do when the function fails, and while there are records: an
    alarm on it is the second way to wake the group.

    Example:
        >>> tasks = lakehouse.configuration
        >>> wake = Wake(
        ...     stack,
        ...     "Wake",
        ...     cluster=cluster,
        ...     watched={landing: [], tasks: ["project/"]},
        ...     landing=landing,
        ...     configuration=tasks,
        ... )
        >>> ways = {"arrivals": wake.arrivals, "unhandled": wake.unhandled}
    """

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        cluster: Cluster,
        watched: Mapping[s3.IBucket, Sequence[str]],
        landing: s3.IBucket,
        configuration: s3.IBucket,
        streams: Sequence[cloudwatch.IMetric] = (),
        log_retention: logs.RetentionDays = logs.RetentionDays.ONE_MONTH,
        removal_policy: cdk.RemovalPolicy = KEPT,
    ) -> None:
        """Create the function and what starts it.

        Args:
            scope: the parent.
            id_: unique below the parent.
            cluster: whose group it wakes.
            watched: buckets, each with the prefixes of the keys that count; none: all of them.
            landing: that of `watched` whose objects are data: they are counted (`LandedObjects`),
                and while no node serves their bytes (`LandedBytes`).
            configuration: the bucket in whose coordination folder the cluster's leader writes which
                objects are its own.
            streams: counts, by the minute, of records that will land; at most 7. Worth it where
                they are held back for longer than such a count is late.
            log_retention: how long its log is kept; default one month.
            removal_policy: what becomes of its log with its stack; default: it is kept.

        Raises:
            ValueError: for more streams than an alarm can look at.
        """
        super().__init__(scope, id_)
        if len(streams) > MOST_STREAMS:
            raise ValueError(f"{len(streams)} streams; an alarm looks at {MOST_STREAMS} at most")
        does = f"wakes {cluster.name}"
        role = self._role(cluster, does)
        let_read_own_landing(role, configuration, cluster.name)
        self.function = group_function(
            self,
            "wake.handler.handle",
            does,
            cluster=cluster,
            role=role,
            log_retention=log_retention,
            removal_policy=removal_policy,
            environment={
                "LANDING_BUCKET": landing.bucket_name,
                "CONFIGURATION_BUCKET": configuration.bucket_name,
                "OWN_LANDING_KEY": own_landing_key(cluster.name),
            },
            max_event_age=_EVENT_AGE,
        )
        queue = hand_over_events(
            self,
            self.function,
            role,
            watched=watched,
            description=f"Polynya: something landed for {cluster.name}",
            window=_WINDOW,
            kept=_EVENT_AGE,
            taken=_TAKEN,
            lost="an event that could not be handled for minutes is of no use to anybody: an alarm "
            "on its age has woken the group by then",
        )
        landed = runtime_metric("LandedObjects", cluster.name, statistic="Sum")
        late = f"IF(FILL(age, 0) > {_LATE_SECONDS}, 1, 0)"
        counts = {f"stream{number}": stream for number, stream in enumerate(streams)}
        if counts:
            self._wake_by(cluster, counts)
        self.arrivals: cloudwatch.IMetric = landed
        if counts:
            self.arrivals = minute_math(_sum(["landed", *counts]), landed=landed, **counts)
        self.unhandled: cloudwatch.IMetric = minute_math(
            " + ".join([late, *map(_filled, counts)]),
            age=queue.metric_approximate_age_of_oldest_message(
                period=ONE_MINUTE, statistic="Maximum"
            ),
            **counts,
        )

    def _wake_by(self, cluster: Cluster, counts: Mapping[str, cloudwatch.IMetric]) -> None:
        """Start the function when records arrive and the group is empty.

        An alarm acts when its state changes: that the size of the group is part of it makes every
        emptying a change. One of five minutes is enough, for the newest are not there yet.
        """
        alarm = cloudwatch.Alarm(
            self,
            "StreamArrivals",
            metric=minute_math(
                f"IF(FILL(desired, 1) > 0, 0, {_sum(list(counts))})",
                desired=group_metric("GroupDesiredCapacity", cluster.group),
                **counts,
            ),
            threshold=0,
            comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_THRESHOLD,
            datapoints_to_alarm=1,
            evaluation_periods=5,
            treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
            alarm_description=f"records are on their way and {cluster.name} has no node: wakes it",
        )
        alarm.add_alarm_action(actions.LambdaAction(self.function))

    def _role(self, cluster: Cluster, does: str) -> iam.Role:
        role = group_role(self, does)
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
        return role


def _sum(names: Sequence[str]) -> str:
    return " + ".join(map(_filled, names))


def _filled(name: str) -> str:
    return f"FILL({name}, 0)"
