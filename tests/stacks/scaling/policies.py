"""Alarms and scaling policies of a template, carried out as CloudWatch and Auto Scaling do.

What is modelled, and where AWS says it (EC2 Auto Scaling User Guide, Amazon CloudWatch User
Guide): an alarm is on when so many of its last values are beyond its threshold, and what is
missing is not, unless older values can stand for it; while it is on its policy is asked each
minute. What adds takes nodes that boot or warm up for none, so it adds only what is beyond them. A
node warms up from the moment in which it is in service. Nothing is removed until all are warm, and
by a simple policy not before its cooldown after a change of size is over. A
target tracking policy adds in proportion after 3 minutes above its target, and removes one after
15 minutes below 90 % of it, while the others can hold it, unless that is turned off (that is what
its alarms show, not a promise). Of several answers the largest wins.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sized
from typing import Any, Final, Protocol

from tests.stacks.house_rules import Template, resources
from tests.stacks.scaling.cloudwatch import Metrics
from tests.stacks.scaling.metric_values import Value

_ABOVE: Final = "GreaterThanThreshold"
_OUT, _IN, _MARGIN = 3, 15, 0.9
_LATEST: Final = 5
_OLDER: Final = 2
"""Values before the periods of an alarm that stand for missing ones: those of the examples of AWS
("Configuring how CloudWatch alarms treat missing data"), which says that their number differs."""


class Nodes(Protocol):
    """What policies ask about the nodes of a group."""

    @property
    def launched(self) -> Sized:
        """All that the group wants, booting or in service."""

    def warm(self, seconds: float) -> int:
        """How many of them have been in service for so long."""


def value_of_alarm(alarm: Mapping[str, Any], metrics: Metrics, now: int) -> Value:
    """The newest value that there is of an alarm that is on, None of one that is off."""
    periods, values = alarm["EvaluationPeriods"], []
    for minute in range(now - periods - _OLDER + 1, now + 1):
        if "Metrics" in alarm:
            values.append(metrics.math(alarm["Metrics"], minute, now))
        else:
            values.append(metrics.at(alarm, alarm["Statistic"], minute, now))
    known = [value for value in values if value is not None][-periods:]
    above, threshold = alarm["ComparisonOperator"] == _ABOVE, alarm["Threshold"]
    beyond = [value > threshold if above else value < threshold for value in known]
    if sum(beyond) < alarm.get("DatapointsToAlarm", periods):
        return None
    return max(known) if periods > sum(beyond) else known[-1]


class Policies:
    """The policies of the one group of a template.

    With `removes_while_booting` the group removes a node while others still boot. Tests of the
    expressions use it: the expressions have to be right on their own.
    """

    def __init__(
        self, template: Template, metrics: Metrics, *, removes_while_booting: bool = False
    ) -> None:
        self._metrics = metrics
        self._policies = resources(template, "AWS::AutoScaling::ScalingPolicy")
        self._alarms = resources(template, "AWS::CloudWatch::Alarm")
        (group,) = resources(template, "AWS::AutoScaling::AutoScalingGroup").values()
        self._warm_up = float(group.get("DefaultInstanceWarmup", 0))
        self._size, self._changed = 0, 0
        self._removes_while_booting = removes_while_booting

    def wanted(self, nodes: Nodes, now: int) -> int:
        """The number of nodes that they ask for."""
        size = len(nodes.launched)
        if size != self._size:
            self._size, self._changed = size, now
        answers = [*self._steps(nodes, now), *self._tracking(nodes, now)]
        more = max(answers, default=size)
        waits = nodes.warm(self._warm_up) < size and not self._removes_while_booting
        if more > size or waits:
            return max(more, size)
        return min(answers, default=size)

    def _steps(self, nodes: Nodes, now: int) -> Iterator[int]:
        for alarm in self._alarms.values():
            for action in alarm.get("AlarmActions", []):
                name = action.get("Ref")
                if (
                    name in self._policies
                    and (value := value_of_alarm(alarm, self._metrics, now)) is not None
                ):
                    yield self._adjusted(name, value - alarm["Threshold"], nodes, now)

    def _adjusted(self, name: str, distance: float, nodes: Nodes, now: int) -> int:
        policy, size = self._policies[name], len(nodes.launched)
        if policy["PolicyType"] == "SimpleScaling":
            cools = (now - self._changed) * 60 < int(policy["Cooldown"])
            return size if cools else size + int(policy["ScalingAdjustment"])
        (change,) = [
            int(step["ScalingAdjustment"])
            for step in policy["StepAdjustments"]
            if step.get("MetricIntervalLowerBound", -math.inf) <= distance
            and distance <= step.get("MetricIntervalUpperBound", math.inf)
        ][:1]
        if policy["AdjustmentType"] == "ExactCapacity":
            return max(change, size)
        return max(size, self._warm(policy, nodes) + change) if change > 0 else size + change

    def _warm(self, policy: Mapping[str, Any], nodes: Nodes) -> int:
        return nodes.warm(policy.get("EstimatedInstanceWarmup", self._warm_up))

    def _tracking(self, nodes: Nodes, now: int) -> Iterator[int]:
        size = len(nodes.launched)
        for policy in self._policies.values():
            if policy["PolicyType"] != "TargetTrackingScaling":
                continue
            target = policy["TargetTrackingConfiguration"]
            queries = target["CustomizedMetricSpecification"]["Metrics"]
            # CloudWatch takes the newest values that there are; those of agents may be late.
            known = (minute for minute in range(now, now - _LATEST, -1)
                     if self._metrics.math(queries, minute, now) is not None)  # fmt: skip
            newest_known = next(known, now)
            minutes = range(newest_known - _IN + 1, newest_known + 1)
            values = [self._metrics.math(queries, minute, now) for minute in minutes]
            aim = target["TargetValue"]
            newest = values[-_OUT:]
            if all(value is not None and value > aim for value in newest):
                warm = max(self._warm(policy, nodes), 1)
                yield max(size, math.ceil(warm * (newest[-1] or 0.0) / aim))
            if target.get("DisableScaleIn"):
                continue
            low = all(value is not None and value < _MARGIN * aim for value in values)
            # One at a time, and not to where the value would be beyond the target again.
            least = math.ceil(size * (newest[-1] or 0.0) / aim)
            yield max(size - 1, least) if low else size
