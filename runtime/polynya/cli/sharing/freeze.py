"""`polynya cluster freeze` and `unfreeze`: let nothing move, and let it move again."""

from __future__ import annotations

from polynya.cli.context import Context
from polynya.cli.exit_codes import ExitCode
from polynya.cli.sharing.place import place_of


def freeze(
    *,
    reason: str = "",
    coordination: str | None = None,
    cluster: str | None = None,
    context: Context,
) -> int:
    """Let no unit move until `unfreeze`; work goes on. What a dead node had waits, too.

    For example: `polynya cluster freeze --reason "incident 4711"`.

    Args:
        reason: what others are told.
        coordination: folder or `s3://BUCKET/PREFIX` as the agents have it; default
            `POLYNYA_COORDINATION`.
        cluster: its name; default `POLYNYA_CLUSTER`, else the project's name.
        context: given by `main`.
    """
    place = place_of(context, coordination, cluster)
    place.wishes().freeze(reason)
    data = {"cluster": place.cluster, "frozen": True, "reason": reason}
    context.output.result("cluster.freeze", data, f"{place.cluster} is frozen: nothing moves")
    return ExitCode.OK


def unfreeze(
    *, coordination: str | None = None, cluster: str | None = None, context: Context
) -> int:
    """Let units move again.

    For example: `polynya cluster unfreeze`.

    Args:
        coordination: folder or `s3://BUCKET/PREFIX` as the agents have it; default
            `POLYNYA_COORDINATION`.
        cluster: its name; default `POLYNYA_CLUSTER`, else the project's name.
        context: given by `main`.
    """
    place = place_of(context, coordination, cluster)
    was = place.wishes().unfreeze()
    text = f"{place.cluster}: units move again" if was else f"{place.cluster} was not frozen"
    data = {"cluster": place.cluster, "frozen": False, "was": was}
    context.output.result("cluster.freeze", data, text)
    return ExitCode.OK
