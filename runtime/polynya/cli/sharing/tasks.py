"""`polynya cluster tasks`: who has which unit of work."""

from __future__ import annotations

from dataclasses import asdict

from polynya.cli.context import Context
from polynya.cli.exit_codes import ExitCode
from polynya.cli.sharing.place import ANYWHERE, Where, place_of
from polynya.cli.sharing.seen import seen


def tasks(
    task: str | None = None,
    *,
    where: Where = ANYWHERE,
    context: Context,
) -> int:
    """List the units of work of a cluster: the node of each, since when and why.

    If it is unclear whether a node is alive, the command watches its lease for up to 12 seconds.

    For example: `polynya cluster tasks orders`.

    Args:
        task: only units of this task.
        where: the cluster.
        context: given by `main`.
    """
    place = place_of(context, where)
    found = [one for one in seen(place).units if task in (None, one.task)]
    if not found:
        of = f" of {task}" if task is not None else ""
        context.output.note(f"{place.cluster} has no unit{of} on a node or in a plan")
    for one in found:
        node = f" on {one.node}" if one.node is not None else ""
        why = f": {one.reason}" if one.reason else ""
        since = f" since {one.since:%Y-%m-%d %H:%M:%S} UTC" if one.since is not None else ""
        text = f"{one.task}/{one.name}: {one.state}{node}{since}, epoch {one.epoch}{why}"
        text += f"\n  {one.work}: {one.why}" if one.work is not None else ""
        text += "".join(
            f"\n  {said}" for said in (one.place, one.asked, one.outcome) if said is not None
        )
        context.output.result("cluster.unit", asdict(one), text)
    return ExitCode.OK
