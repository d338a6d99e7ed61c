"""What a wish waits for: a node or task that there is not, a drained node, a frozen cluster."""

from __future__ import annotations

from collections.abc import Collection

from polynya.cli.context import CommandContext
from polynya.cli.sharing.place import Place


def warn_of_waiting(
    context: CommandContext,
    place: Place,
    *,
    node: str | None = None,
    target: str | None = None,
    task: str | None = None,
) -> None:
    """Say why what was just asked of a node, or of a task, is not done now.

    It was written down all the same: the node or the task may come. `target` is a node that is to
    get units, `node` one that is to lose them; both wait in a frozen cluster.
    """
    # Start-up time: pydantic models of all documents.
    from polynya.cluster.control.asked import by_whom
    from polynya.cluster.control.reading import known_units, read_cluster

    reading = read_cluster(place.store, place.cluster)
    nodes = {lease.node for lease in reading.leases.values() if lease.state != "gone"}
    tasks = {unit.task for unit in known_units(reading)}
    said, of_node = context.output, target or node
    if of_node is not None and of_node not in nodes:
        said.warning(f"{place.cluster} has no node {of_node} now, so this waits for it{_of(nodes)}")
    if target is not None and (drain := reading.drains.get(target)) is not None:
        said.warning(
            f"{target} was drained by {by_whom(drain)}: it gets nothing until "
            f"`polynya cluster undrain {target}`"
        )
    if task is not None and task not in tasks:
        said.warning(f"{place.cluster} has no task {task} now, so this waits for it{_of(tasks)}")
    if of_node is not None and reading.freeze is not None:
        said.warning(f"{place.cluster} was frozen by {by_whom(reading.freeze)}: nothing moves now")


def _of(names: Collection[str]) -> str:
    """Those that there are, the first of them by name."""
    return f"; it has {', '.join(sorted(names)[:20])}" if names else ""
