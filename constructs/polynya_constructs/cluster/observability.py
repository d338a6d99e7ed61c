"""What people see of a cluster, and what wakes them."""

from __future__ import annotations

from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sns as sns
from constructs import Construct

from polynya_constructs.cluster.cluster import Cluster
from polynya_constructs.cluster.figures import FiguresWithoutNodes
from polynya_constructs.cluster.scaling import (
    NAMESPACE,
    ONE_MINUTE,
    Scaling,
    group_metric,
    minute_math,
    runtime_metric,
)
from polynya_constructs.cluster.source_watch import SourceWatch
from polynya_constructs.cluster.spot_fallback import SpotFallback

_LOG_PERCENT = 80
"""Of the log that a server keeps at most: time is left to repair the capture, or to raise it."""

_UNSEEN_MINUTES = 15
"""A source that restarts is back by then."""

_BREACHING = cloudwatch.TreatMissingData.BREACHING
_NOT_BREACHING = cloudwatch.TreatMissingData.NOT_BREACHING


class ClusterObservability(Construct):
    """Dashboard and alarms of one cluster.

    The alarms: data is merged too late; nodes run but publish nothing; fewer nodes serve than
    are wanted; Spot has been short for long; the fallback, or the function of figures without
    nodes, fails or does not run; agents fail; datasets are suspended; records are rejected. A
    cluster that captures databases has three more: a capture is behind, it fails, its server is
    about to give it up; one that reads streams has one more: a stream is behind; one that mirrors
    has one more: a mirror is stale; and one that looks at its sources from zero: a source is not
    seen. Each says in its description what to look at.

    Example:
        >>> ClusterObservability(
        ...     stack,
        ...     "Observability",
        ...     cluster=cluster,
        ...     scaling=scaling,
        ...     fallback=fallback,
        ...     figures=figures,
        ... )
    """

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        cluster: Cluster,
        scaling: Scaling,
        fallback: SpotFallback,
        figures: FiguresWithoutNodes,
        oldest_age_minutes: int = 60,
        source_age_minutes: int = 15,
        captures: bool = False,
        streams: bool = False,
        mirrors: bool = False,
        sources: SourceWatch | None = None,
        topic: sns.ITopic | None = None,
    ) -> None:
        """Create them.

        Args:
            scope: the parent.
            id_: unique below the parent.
            cluster: the cluster.
            scaling: whose metrics are shown.
            fallback: whose decisions are shown.
            figures: which a group without nodes depends on.
            oldest_age_minutes: how old landed data may be before it is merged; default 60.
            source_age_minutes: how old a change of a database, or a record of a stream, may be
                before it lands; default 15.
            captures: whether its nodes capture databases.
            streams: whether its nodes read streams.
            mirrors: whether its nodes keep mirrors.
            sources: what looks at its sources while it has no node; default: nothing does.
            topic: where alarms are sent; default: nowhere.

        Raises:
            ValueError: when an age is not at least 1.
        """
        super().__init__(scope, id_)
        for name, age in (
            ("oldest_age_minutes", oldest_age_minutes),
            ("source_age_minutes", source_age_minutes),
        ):
            if age < 1:
                raise ValueError(f"{name} is {age}; it has to be 1 or more")
        self._name, self._topic = cluster.name, topic
        self._desired = group_metric("GroupDesiredCapacity", cluster.group)
        self._fallback_nodes = cloudwatch.Metric(
            namespace=NAMESPACE,
            metric_name="FallbackNodes",
            dimensions_map={"Group": cluster.name},
            statistic="Maximum",
            period=ONE_MINUTE,
        )
        self._alarms(scaling, fallback, oldest_age_minutes)
        self._alarms_of_figures(figures.function)
        self._alarms_of_tasks()
        if captures:
            self._alarms_of_captures(source_age_minutes)
        if streams:
            self._alarm(
                "StreamBehind",
                self._worst("StreamBehindSeconds"),
                above=source_age_minutes * 60,
                minutes=5,
                means="records wait in a stream: is a landing suspended, has the stream more "
                "records than one node can land? `polynya cluster tasks` says what is behind",
            )
        if mirrors:
            self._alarm(
                "MirrorStale",
                self._worst("MirrorTablesStale"),
                above=0,
                minutes=5,
                means="a mirror is behind for longer than its `stale_after`, or it fails: "
                "`polynya mirror status` says which table and why",
            )
        if sources is not None:
            self._alarm_of_sources(sources)
        if cluster.agents_fail is not None:
            self._send(cluster.agents_fail)
        self._dashboard(scaling, fallback)

    def _alarms(self, scaling: Scaling, fallback: SpotFallback, oldest_age_minutes: int) -> None:
        self._alarm(
            "LateData",
            scaling.oldest_age,
            above=oldest_age_minutes * 60,
            minutes=5,
            means="landed data waits too long: is the group at its maximum, is a task suspended?",
        )
        self._alarm(
            "SilentNodes",
            minute_math(
                "IF(FILL(nodes, 0) > 0 AND FILL(backlog, -1) < 0, 1, 0)",
                nodes=scaling.nodes,
                backlog=scaling.backlog,
            ),
            above=0,
            minutes=15,
            missing=_BREACHING,
            means="nodes run but publish nothing: no scaling happens; read the agents' log",
        )
        self._alarm(
            "MissingNodes",
            minute_math("desired - nodes", desired=self._desired, nodes=scaling.nodes),
            above=0,
            minutes=20,
            means="nodes do not get into service: read the group's activities. Three failed boots "
            "suspend its process Launch: read the log of the group, streams INSTANCE/boot",
        )
        self._alarm(
            "LongShortage",
            self._fallback_nodes,
            above=0,
            minutes=6 * 60,
            means="On-Demand has stood in for Spot for hours: allow more instance types",
        )
        self._alarm(
            "FallbackFails",
            fallback.function.metric_errors(period=ONE_MINUTE),
            above=0,
            minutes=5,
            means="the Spot fallback fails: read its log; its role may lack a right",
        )
        runs = fallback.function.metric_invocations(period=ONE_MINUTE)
        self._alarm(
            "FallbackIdle",
            minute_math("IF(FILL(runs, 0) > 0, 0, 1)", runs=runs),
            above=0,
            minutes=15,
            missing=_BREACHING,
            means="the Spot fallback did not run: is its rule disabled?",
        )

    def _alarms_of_figures(self, function: lambda_.IFunction) -> None:
        """An empty group whose figures fail would look like one for which nothing waits."""
        self._alarm(
            "FiguresFail",
            function.metric_errors(period=ONE_MINUTE),
            above=0,
            minutes=5,
            means="the figures without nodes fail: an empty group may not see its data wait; read "
            "the function's log; its role may lack a right",
        )
        self._alarm(
            "FiguresIdle",
            minute_math(
                "IF(FILL(runs, 0) > 0, 0, 1)", runs=function.metric_invocations(period=ONE_MINUTE)
            ),
            above=0,
            minutes=15,
            missing=_BREACHING,
            means="the function of figures without nodes did not run: is its rule disabled?",
        )

    def _alarm_of_sources(self, watch: SourceWatch) -> None:
        """A minute is good in which a look saw everything; with several between two, one of them.

        A group with nodes is looked at as well, so it has good minutes.
        """
        self._alarm(
            "SourcesUnseen",
            minute_math(
                "IF(FILL(runs, 0) > 0 AND FILL(errors, 0) == 0 AND FILL(unseen, 0) == 0, 0, 1)",
                runs=watch.function.metric_invocations(period=ONE_MINUTE),
                errors=watch.function.metric_errors(period=ONE_MINUTE),
                unseen=self._worst("SourcesUnseen"),
            ),
            above=0,
            minutes=max(_UNSEEN_MINUTES, 3 * watch.minutes),
            missing=_BREACHING,
            means="the cluster has no node, and something that may wait for it is not seen: read "
            "the log of the function `wake.sources`. It says which source does not answer and why, "
            "or why it cannot be watched; then set `minimum: 1`",
        )

    def _alarms_of_tasks(self) -> None:
        self._alarm(
            "Suspended",
            self._worst("SuspendedDatasets"),
            above=0,
            minutes=5,
            means="a dataset, or a table of a capture, is suspended until somebody decides: "
            "`polynya cluster tasks` says which and why",
        )
        self._alarm(
            "Quarantine",
            runtime_metric("Quarantined", self._name, statistic="Sum"),
            above=0,
            minutes=15,
            datapoints=1,
            means="records were rejected in the last quarter of an hour: `polynya quarantine` "
            "says which and why",
        )

    def _alarms_of_captures(self, source_age_minutes: int) -> None:
        self._alarm(
            "CaptureBehind",
            self._worst("CaptureLagSeconds"),
            above=source_age_minutes * 60,
            minutes=5,
            means="changes of a database land late: look at `polynya landing status`; a database "
            "that does not answer counts from its last answer",
        )
        self._alarm(
            "CaptureFailing",
            self._worst("CaptureRetries"),
            above=0,
            minutes=5,
            means="a capture fails and is tried again: is the database up, is its network open, is "
            "the password still right? `polynya cluster tasks` has the error",
        )
        self._alarm(
            "SlotInDanger",
            self._worst("CaptureLogPercent"),
            above=_LOG_PERCENT,
            minutes=1,
            means="PostgreSQL is about to drop log that a capture still needs "
            "(max_slot_wal_keep_size): after that the capture must reload all tables",
        )

    def _worst(self, name: str) -> cloudwatch.Metric:
        return runtime_metric(name, self._name, statistic="Maximum")

    def _alarm(
        self,
        id_: str,
        metric: cloudwatch.IMetric,
        *,
        above: float,
        minutes: int,
        means: str,
        datapoints: int | None = None,
        missing: cloudwatch.TreatMissingData = _NOT_BREACHING,
    ) -> None:
        alarm = cloudwatch.Alarm(
            self,
            id_,
            alarm_name=f"{self._name}-{id_}",
            alarm_description=means,
            metric=metric,
            threshold=above,
            comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_THRESHOLD,
            evaluation_periods=minutes,
            datapoints_to_alarm=datapoints,
            treat_missing_data=missing,
        )
        self._send(alarm)

    def _send(self, alarm: cloudwatch.Alarm) -> None:
        if self._topic:
            alarm.add_alarm_action(actions.SnsAction(self._topic))
            alarm.add_ok_action(actions.SnsAction(self._topic))

    def _dashboard(self, scaling: Scaling, fallback: SpotFallback) -> None:
        def graph(title: str, *metrics: cloudwatch.IMetric) -> cloudwatch.GraphWidget:
            return cloudwatch.GraphWidget(title=title, left=list(metrics), width=12)

        cloudwatch.Dashboard(
            self,
            "Dashboard",
            dashboard_name=self._name,
            widgets=[
                [
                    graph("Oldest unmerged data, seconds", scaling.oldest_age),
                    graph("Backlog, seconds of one node", scaling.backlog),
                ],
                [
                    graph("Nodes", self._desired, scaling.nodes, self._fallback_nodes),
                    graph("Spot fallback, failures", fallback.function.metric_errors()),
                ],
            ],
        )
