"""Metrics as lines of JSON in CloudWatch's embedded metric format.

CloudWatch makes metrics of such a line when it reads it in a log ("Specification: Embedded metric
format", Amazon CloudWatch User Guide).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

#: Of every metric of the runtime; alarms and scaling policies of a cluster look there.
NAMESPACE: Final = "Polynya"

Unit = Literal["Seconds", "Bytes", "Count", "Percent"]


@dataclass(frozen=True, slots=True)
class Metric:
    """One figure."""

    name: str
    unit: Unit
    value: float


def emf_record(
    metrics: Sequence[Metric],
    dimensions: Mapping[str, str],
    at: datetime,
    properties: Mapping[str, object],
) -> dict[str, object]:
    """One line: `metrics` under `dimensions`.

    `properties` are kept beside them in the log and make no metric.
    """
    directive = {
        "Namespace": NAMESPACE,
        "Dimensions": [list(dimensions)],
        "Metrics": [{"Name": one.name, "Unit": one.unit} for one in metrics],
    }
    head = {"Timestamp": int(at.timestamp() * 1000), "CloudWatchMetrics": [directive]}
    figures = {one.name: one.value for one in metrics}
    return {"_aws": head, **properties, **dimensions, **figures}
