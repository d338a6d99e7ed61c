"""Alarms and scaling policies of a template, carried out as CloudWatch and Auto Scaling do.

What is modelled, and where AWS says it (EC2 Auto Scaling User Guide, Amazon CloudWatch User
Guide): an alarm is on when so many of its last values are beyond its threshold, and what is
missing is not; while it is on its policy is asked each minute; a step that added waits for the
warm-up of what it added; a target tracking policy adds in proportion after 3 minutes above its
target, counts what boots, and removes one after 15 minutes below 90 % of it, while the others can
hold it (that is what its alarms show, not a promise); of several answers the largest wins.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, Final

from tests.stacks.house_rules import Template, resources
from tests.stacks.scaling.cloudwatch import Metrics
from tests.stacks.scaling.metric_values import Value

_ABOVE: Final = "GreaterThanThreshold"
_OUT, _IN, _MARGIN = 3, 15, 0.9
_LATEST: Final = 5


class Policies:
    """The policies of the one group of a template."""

    def __init__(self, template: Template, metrics: Metrics) -> None:
        self._metrics = metrics
        self._policies = resources(template, "AWS::AutoScaling::ScalingPolicy")
        self._alarms = resources(template, "AWS::CloudWatch::Alarm")
        self._added: dict[str, int] = {}

    def wanted(self, size: int, serving: int, now: int) -> int:
        """The number of nodes that they ask for, of a group with `size` nodes."""
        answers = [*self._steps(size, now), *self._tracking(size, serving, now)]
        more = max(answers, default=size)
        return more if more > size else min(answers, default=size)

    def _steps(self, size: int, now: int) -> Iterator[int]:
        for alarm in self._alarms.values():
            for action in alarm.get("AlarmActions", []):
                name = action.get("Ref")
                if name in self._policies and (value := self._on(alarm, now)) is not None:
                    yield self._adjusted(name, value - alarm["Threshold"], size, now)

    def _on(self, alarm: Mapping[str, Any], now: int) -> Value:
        """The newest value that there is of an alarm that is on, None of one that is off."""
        periods, values = alarm["EvaluationPeriods"], []
        for minute in range(now - periods + 1, now + 1):
            if "Metrics" in alarm:
                values.append(self._metrics.math(alarm["Metrics"], minute, now))
            else:
                values.append(self._metrics.at(alarm, alarm["Statistic"], minute, now))
        known = [value for value in values if value is not None]
        above, threshold = alarm["ComparisonOperator"] == _ABOVE, alarm["Threshold"]
        beyond = [value > threshold if above else value < threshold for value in known]
        if sum(beyond) < alarm.get("DatapointsToAlarm", periods):
            return None
        return max(known) if periods > sum(beyond) else known[-1]

    def _adjusted(self, name: str, distance: float, size: int, now: int) -> int:
        policy = self._policies[name]
        warm_up = policy.get("EstimatedInstanceWarmup", 0) / 60
        if now - self._added.get(name, -math.inf) < warm_up:
            return size
        (change,) = [
            int(step["ScalingAdjustment"])
            for step in policy["StepAdjustments"]
            if step.get("MetricIntervalLowerBound", -math.inf) <= distance
            and distance <= step.get("MetricIntervalUpperBound", math.inf)
        ][:1]
        if policy["AdjustmentType"] == "ExactCapacity":
            return max(change, size)
        if change > 0:
            self._added[name] = now
        return size + change

    def _tracking(self, size: int, serving: int, now: int) -> Iterator[int]:
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
                yield max(size, math.ceil(max(serving, 1) * (newest[-1] or 0.0) / aim))
            low = all(value is not None and value < _MARGIN * aim for value in values)
            # One at a time, and not to where the value would be beyond the target again.
            least = math.ceil(serving * (newest[-1] or 0.0) / aim)
            yield max(size - 1, least) if low and serving == size else size
