"""Metrics of a node once a minute: CloudWatch's embedded metric format, or a file for Prometheus.

CloudWatch makes metrics of lines of JSON in a log ("Specification: Embedded metric format", Amazon
CloudWatch User Guide). Prometheus' node exporter reads a text file. Its names are those of
CloudWatch in snake case, with `polynya_` before and the unit after; the metrics of a task begin
with `polynya_task_` ("Exposition formats" and "Metric and label naming", Prometheus documentation).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal, TypeAlias

Unit: TypeAlias = Literal["Seconds", "Bytes", "Bytes/Second", "Count", "Count/Second", "Percent"]


@dataclass(frozen=True, slots=True)
class Metric:
    """One figure. `grown`: the increase of a total since the minute before, not the total."""

    name: str
    unit: Unit
    value: float
    grown: bool = False


@dataclass(frozen=True, slots=True)
class MetricGroup:
    """MetricGroup of one thing.

    `of` is empty for this node's part of the cluster's totals, `{"Node": ...}` for the node alone,
    and `{"Task": ...}` for its part of a task's totals, with a `"Stream"` next to it for those of a
    stream of that task.
    """

    of: Mapping[str, str]
    metrics: tuple[Metric, ...]


@dataclass(frozen=True, slots=True)
class Minute:
    """The metrics that a node publishes for a minute of the clock."""

    at: datetime
    cluster: str
    node: str
    state: str
    figures: tuple[MetricGroup, ...]


#: Takes the metrics of a minute. Raises OSError when they cannot be written.
MetricsSink: TypeAlias = Callable[[Minute], None]


#: Name of a time series, and its labels as text.
_Series: TypeAlias = tuple[str, str]

_SUFFIXES: Final = {
    "Seconds": "_seconds",
    "Bytes": "_bytes",
    "Bytes/Second": "_bytes_per_second",
    "Count": "",
    "Count/Second": "_per_second",
    "Percent": "_percent",
}
_WORD: Final = re.compile(r"(?<!^)(?=[A-Z])")
_ESCAPED: Final = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


class PrometheusText:
    """The text of the file, minute after minute. It keeps the totals of what grows."""

    def __init__(self) -> None:
        self._totals: dict[_Series, float] = {}

    def of(self, minute: Minute) -> str:
        """The file of a minute. Series of a removed task disappear, their totals are kept."""
        by_name: dict[str, tuple[str, list[str]]] = {}
        for (name, labels), kind, value in self._series(minute):
            lines = by_name.setdefault(name, (kind, []))[1]
            lines.append(f"{name}{{{labels}}} {value:.15g}")
        text = []
        for name, (kind, lines) in sorted(by_name.items()):
            text += [f"# TYPE {name} {kind}", *lines]
        return "\n".join([*text, ""])

    def _series(self, minute: Minute) -> Iterator[tuple[_Series, str, float]]:
        for figures in minute.figures:
            if "Node" in figures.of:
                # Every series has the node as a label already.
                continue
            labels = _labels(minute, figures)
            for metric in figures.metrics:
                series = (_name(metric, of_task="Task" in figures.of), labels)
                if metric.grown:
                    self._totals[series] = self._totals.get(series, 0.0) + metric.value
                    yield series, "counter", self._totals[series]
                else:
                    yield series, "gauge", metric.value


def _name(metric: Metric, *, of_task: bool) -> str:
    word = _WORD.sub("_", metric.name).lower()
    suffix = _SUFFIXES[metric.unit]
    name = word if f"_{word}".endswith(suffix) else word + suffix
    return f"polynya_{'task_' if of_task else ''}{name}{'_total' if metric.grown else ''}"


def _labels(minute: Minute, figures: MetricGroup) -> str:
    labels = {"cluster": minute.cluster, "node": minute.node}
    labels |= {name.lower(): value for name, value in figures.of.items()}
    return ",".join(f'{name}="{value.translate(_ESCAPED)}"' for name, value in labels.items())


#: CloudWatch namespace of all metrics; alarms and scaling policies of a cluster read it.
NAMESPACE: Final = "Polynya"


def emf_records(minute: Minute) -> Iterator[dict[str, Any]]:
    """The metrics of a minute, one line for each group."""
    for figures in minute.figures:
        yield _record(figures, minute)


def _record(figures: MetricGroup, minute: Minute) -> dict[str, Any]:
    """One line. Node and state are properties in the log and not dimensions of metrics."""
    dimensions = {"Cluster": minute.cluster, **figures.of}
    directive = {
        "Namespace": NAMESPACE,
        "Dimensions": [list(dimensions)],
        "Metrics": [{"Name": metric.name, "Unit": metric.unit} for metric in figures.metrics],
    }
    head = {"Timestamp": int(minute.at.timestamp() * 1000), "CloudWatchMetrics": [directive]}
    properties = {"node": minute.node, "state": minute.state}
    values = {metric.name: metric.value for metric in figures.metrics}
    return {"_aws": head, **properties, **dimensions, **values}
