"""`polynya cluster move` and `unmove`: put units on a node of one's choice."""

from __future__ import annotations

from typing import TYPE_CHECKING

from polynya.cli.context import Context
from polynya.cli.exit_codes import ExitCode
from polynya.cli.options import usage_error
from polynya.cli.sharing.place import ANYWHERE, Place, Where, place_of
from polynya.cli.sharing.waiting import warn_of_waiting

if TYPE_CHECKING:
    from polynya.cluster.unit import JobKey


def move(
    unit: str,
    node: str,
    /,
    *,
    reason: str = "",
    where: Where = ANYWHERE,
    context: Context,
) -> int:
    """Keep a task, or one dataset of it, on a node until `unmove`, while the node is ready.

    For example: `polynya cluster move shop/orders n2`.

    Args:
        unit: `TASK` for all its units, or `TASK/DATASET`.
        node: id of the node.
        reason: reason to show to other operators.
        where: the cluster.
        context: given by `main`.
    """
    place = place_of(context, where)
    wishes = place.wishes()
    for one in _units(place, unit):
        wishes.move(one, node, reason)
        data = {"task": one.task, "name": one.name, "node": node, "reason": reason}
        context.output.result("cluster.move", data, f"{one.task}/{one.name} is to go to {node}")
    warn_of_waiting(context, place, target=node)
    return ExitCode.OK


def unmove(
    unit: str,
    /,
    *,
    where: Where = ANYWHERE,
    context: Context,
) -> int:
    """Let the leader place moved units again.

    For example: `polynya cluster unmove shop/orders`.

    Args:
        unit: `TASK` for all its units, or `TASK/DATASET`.
        where: the cluster.
        context: given by `main`.
    """
    place = place_of(context, where)
    wishes = place.wishes()
    for one in _units(place, unit):
        was = wishes.unmove(one)
        what = "goes where the leader wants it" if was else "was not moved by anybody"
        data = {"task": one.task, "name": one.name, "node": None, "was": was}
        context.output.result("cluster.move", data, f"{one.task}/{one.name} {what}")
    return ExitCode.OK


def _units(place: Place, text: str) -> list[JobKey]:
    """The units that a text names, of those that the cluster knows."""
    # Start-up time: pydantic models of all documents.
    from polynya.cluster.control.reading import known_units, read_cluster

    task, _, dataset = text.partition("/")
    known = known_units(read_cluster(place.store, place.cluster))
    found = [
        one
        for one in known
        if one.task == task and (not dataset or one.name == dataset or _last(one) == dataset)
    ]
    if not found:
        names = ", ".join(f"{one.task}/{one.name}" for one in known[:20])
        raise usage_error(
            f"the cluster {place.cluster} has no unit `{text}`",
            f"one of {names}" if names else "start its agents first",
        )
    return found


def _last(unit: JobKey) -> str:
    """The dataset without its schema."""
    return unit.name.rpartition(".")[2]
