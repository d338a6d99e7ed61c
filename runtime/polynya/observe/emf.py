"""Metrics as lines of JSON in CloudWatch's embedded metric format.

CloudWatch makes metrics of such a line when it reads it in a log ("Specification: Embedded metric
format", Amazon CloudWatch User Guide).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from polynya.observe.figures import Figures, Minute

#: Of every metric of the runtime; alarms and scaling policies of a cluster look there.
NAMESPACE: Final = "Polynya"


def emf_records(minute: Minute) -> Iterator[dict[str, Any]]:
    """The figures of a minute, a line for each thing that they are of."""
    for figures in minute.figures:
        yield _record(figures, minute)


def _record(figures: Figures, minute: Minute) -> dict[str, Any]:
    """One line. Node and state are kept beside the figures in the log and make no metric."""
    dimensions = {"Cluster": minute.cluster, **figures.of}
    directive = {
        "Namespace": NAMESPACE,
        "Dimensions": [list(dimensions)],
        "Metrics": [{"Name": one.name, "Unit": one.unit} for one in figures.metrics],
    }
    head = {"Timestamp": int(minute.at.timestamp() * 1000), "CloudWatchMetrics": [directive]}
    properties = {"node": minute.node, "state": minute.state}
    values = {one.name: one.value for one in figures.metrics}
    return {"_aws": head, **properties, **dimensions, **values}
