"""Metrics of a simulated time, minute by minute, as CloudWatch keeps and answers them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeAlias

from tests.stacks.scaling.metric_values import Value, value_of

BEGIN: Final = datetime(2026, 1, 5, 6, tzinfo=UTC)
"""Minute 0."""

_LATE: Final = {"AWS/SQS": 1}
"""Minutes until metrics of a service are there."""

_Key: TypeAlias = tuple[str, str, frozenset[tuple[str, str]]]
_STATISTICS: Final[Mapping[str, Callable[[Sequence[float]], float]]] = {
    "Sum": sum,
    "Maximum": max,
    "Average": lambda values: sum(values) / len(values),
}


class Metrics:
    """All values of all metrics. Also the client of CloudWatch, as far as a function asks it.

    `agents_late` are the minutes until the figures of agents are there.
    """

    def __init__(self, *, agents_late: int = 0) -> None:
        self._late = {**_LATE, "Polynya": agents_late}
        self._values: dict[_Key, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
        self._latest = max(self._late.values())
        # Alarms ask for the same minutes again and again.
        self._puts: Counter[int] = Counter()
        self._known: dict[tuple[int, ...], Value] = {}

    def put(
        self, namespace: str, name: str, dimensions: Mapping[str, str], minute: int, value: float
    ) -> None:
        self._values[namespace, name, frozenset(dimensions.items())][minute].append(value)
        self._puts[minute] += 1

    def take(self, line: Mapping[str, Any]) -> None:
        """Make metrics of a line in the embedded metric format, as CloudWatch Logs does."""
        at = datetime.fromtimestamp(line["_aws"]["Timestamp"] / 1000, UTC)
        minute = int((at - BEGIN) / timedelta(minutes=1))
        for directive in line["_aws"]["CloudWatchMetrics"]:
            for names in directive["Dimensions"]:
                dimensions = {name: line[name] for name in names}
                for metric in directive["Metrics"]:
                    value = line[metric["Name"]]
                    self.put(directive["Namespace"], metric["Name"], dimensions, minute, value)

    def at(self, metric: Mapping[str, Any], statistic: str, minute: int, now: int) -> Value:
        """The value of a metric of a template in a minute, as it is known now."""
        namespace = metric["Namespace"]
        if minute > now - self._late.get(namespace, 0):
            return None
        dimensions = frozenset((each["Name"], each["Value"]) for each in metric["Dimensions"])
        values = self._values.get((namespace, metric["MetricName"], dimensions), {}).get(minute)
        return _STATISTICS[statistic](values) if values else None

    def math(self, queries: Sequence[Mapping[str, Any]], minute: int, now: int) -> Value:
        """What the metric math of an alarm or a policy comes to in a minute, as known now."""
        asked = (id(queries), minute, self._puts[minute], min(now - minute, self._latest))
        if asked not in self._known:
            self._known[asked] = self._math(queries, minute, now)
        return self._known[asked]

    def _math(self, queries: Sequence[Mapping[str, Any]], minute: int, now: int) -> Value:
        by_id = {query["Id"]: query for query in queries}
        (returned,) = [query for query in queries if query.get("ReturnData", True)]

        def value(query: Mapping[str, Any]) -> Value:
            if "Expression" in query:
                return value_of(query["Expression"], _Lazy(lambda name: value(by_id[name]), by_id))
            stat = query["MetricStat"]
            return self.at(stat["Metric"], stat["Stat"], minute, now)

        return value(returned)

    def get_metric_statistics(self, **asked: Any) -> dict[str, Any]:
        """As the client of CloudWatch answers it."""
        dimensions = frozenset((each["Name"], each["Value"]) for each in asked["Dimensions"])
        known = self._values.get((asked["Namespace"], asked["MetricName"], dimensions), {})
        periods: dict[datetime, list[float]] = defaultdict(list)
        for minute, values in known.items():
            at = BEGIN + timedelta(minutes=minute)
            if asked["StartTime"].replace(second=0) <= at < asked["EndTime"]:
                start = at.timestamp() // asked["Period"] * asked["Period"]
                periods[datetime.fromtimestamp(start, UTC)] += values
        (statistic,) = asked["Statistics"]
        done = _STATISTICS[statistic]
        points = [{"Timestamp": at, statistic: done(values)} for at, values in periods.items()]
        return {"Datapoints": points}


class _Lazy(Mapping[str, Value]):
    """Values by id, each looked up when an expression names it."""

    def __init__(self, value: Callable[[str], Value], names: Mapping[str, object]) -> None:
        self._value, self._names = value, names

    def __getitem__(self, name: str) -> Value:
        return self._value(name)

    def __iter__(self) -> Any:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)
