"""Where the objects of a cluster are: the one place that makes a path of a name, and back.

A name is one element of a path whatever is in it: all but letters, digits and `_.-~` is
percent-encoded as UTF-8, and so is a leading dot.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import quote, unquote

from polynya.cluster.unit import JobKey

NODES: Final = "nodes"
PLANS: Final = "plans"
WANTED: Final = "wanted"
DIFFERENCES: Final = "differences"
UNITS: Final = "units"
DRAINS: Final = "drains"
MOVES: Final = "moves"
TASKS: Final = "tasks"
WISHES: Final = "wishes"
OUTCOMES: Final = "outcomes"
PROBES: Final = "probes"
LEADER: Final = "leader"
FREEZE: Final = "freeze"
WANTED_UNITS: Final = f"{WANTED}/units"


def element(name: str) -> str:
    """The name as one element of a path. Raises ValueError when it is empty."""
    if not name:
        raise ValueError("an empty name has no path")
    encoded = quote(name, safe="")
    return f"%2E{encoded[1:]}" if encoded.startswith(".") else encoded


def name_of(encoded: str) -> str:
    """The name that `element` made an element of."""
    return unquote(encoded)


def node_path(incarnation: str) -> str:
    """The session lease of an incarnation."""
    return f"{NODES}/{element(incarnation)}"


def plan_path(incarnation: str) -> str:
    """What the leader wants an incarnation to have."""
    return f"{PLANS}/{element(incarnation)}"


def difference_path(incarnation: str) -> str:
    """How the units that an incarnation knows differ from those that the leader knows."""
    return f"{DIFFERENCES}/{element(incarnation)}"


def unit_path(unit: JobKey) -> str:
    """Who owns a unit."""
    return f"{UNITS}/{element(unit.task)}/{element(unit.name)}"


def drain_path(node: str) -> str:
    """A person's wish that a node has nothing."""
    return f"{DRAINS}/{element(node)}"


def move_path(unit: JobKey) -> str:
    """A person's wish that a unit is on one node."""
    return f"{MOVES}/{element(unit.task)}/{element(unit.name)}"


def task_path(task: str) -> str:
    """A person's wish that a task stands still."""
    return f"{TASKS}/{element(task)}"


def wish_path(unit: JobKey) -> str:
    """What a person wants done with a unit."""
    return f"{WISHES}/{element(unit.task)}/{element(unit.name)}"


def outcome_path(unit: JobKey) -> str:
    """What became of the last wish for a unit."""
    return f"{OUTCOMES}/{element(unit.task)}/{element(unit.name)}"


def unit_at(path: str) -> JobKey | None:
    """The unit whose object is at `path`, None when it is that of no unit."""
    parts = path.split("/")
    if len(parts) != 3 or parts[0] not in {UNITS, MOVES, WISHES, OUTCOMES}:
        return None
    return JobKey(name_of(parts[1]), name_of(parts[2]))


def incarnation_of(node: str, token: str) -> str:
    """A process on a node: its node id and a token that no other process has, of hex digits."""
    return f"{node}.{token}"


def node_of(incarnation: str) -> str:
    """The node id in an incarnation."""
    return incarnation.rpartition(".")[0]
