"""The unit of work of a cluster: it fails alone, moves between nodes and has one owner."""

from __future__ import annotations

from typing import NamedTuple


class JobKey(NamedTuple):
    """A piece of work that fails alone: a dataset, or a task that finds its datasets."""

    task: str
    name: str
