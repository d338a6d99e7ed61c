"""`polynya cluster freeze` and `unfreeze`: let nothing move, and let it move again."""

from __future__ import annotations

from polynya.cli.context import Context
from polynya.cli.exit_codes import ExitCode
from polynya.cli.sharing.place import ANYWHERE, Where, place_of


def freeze(
    *,
    reason: str = "",
    where: Where = ANYWHERE,
    context: Context,
) -> int:
    """Stop moving units until `unfreeze`; work continues. Units of a dead node wait, too.

    For example: `polynya cluster freeze --reason "incident 4711"`.

    Args:
        reason: reason to show to other operators.
        where: the cluster.
        context: given by `main`.
    """
    place = place_of(context, where)
    place.wishes().freeze(reason)
    data = {"cluster": place.cluster, "frozen": True, "reason": reason}
    context.output.result("cluster.freeze", data, f"{place.cluster} is frozen: nothing moves")
    return ExitCode.OK


def unfreeze(*, where: Where = ANYWHERE, context: Context) -> int:
    """Allow units to move again.

    For example: `polynya cluster unfreeze`.

    Args:
        where: the cluster.
        context: given by `main`.
    """
    place = place_of(context, where)
    was = place.wishes().unfreeze()
    text = f"{place.cluster}: units move again" if was else f"{place.cluster} was not frozen"
    data = {"cluster": place.cluster, "frozen": False, "was": was}
    context.output.result("cluster.freeze", data, text)
    return ExitCode.OK
