"""Figures of a node, once a minute, whoever takes them: CloudWatch, or a file for Prometheus."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeAlias

Unit: TypeAlias = Literal["Seconds", "Bytes", "Bytes/Second", "Count", "Count/Second", "Percent"]


@dataclass(frozen=True, slots=True)
class Metric:
    """One figure. `grown`: how much a total grew since the minute before, not how much there is."""

    name: str
    unit: Unit
    value: float
    grown: bool = False


@dataclass(frozen=True, slots=True)
class Figures:
    """Figures of one thing.

    `of` is empty for the part of this node in what the figures of all nodes make together;
    `{"Node": ...}` for the node alone, `{"Task": ...}` for its part in those of a task, with a
    `"Stream"` beside it for those of a stream of that task.
    """

    of: Mapping[str, str]
    metrics: tuple[Metric, ...]


@dataclass(frozen=True, slots=True)
class Minute:
    """What a node publishes in a minute of the clock."""

    at: datetime
    cluster: str
    node: str
    state: str
    figures: tuple[Figures, ...]


#: Takes the figures of a minute. Raises OSError when they cannot be written.
MetricsSink: TypeAlias = Callable[[Minute], None]
