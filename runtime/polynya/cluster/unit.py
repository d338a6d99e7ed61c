"""The unit of work of a cluster: what fails for itself, moves between nodes and is owned by one."""

from __future__ import annotations

from typing import NamedTuple


class JobKey(NamedTuple):
    """A piece of work that fails for itself: a dataset, or a task that finds its datasets."""

    task: str
    name: str
