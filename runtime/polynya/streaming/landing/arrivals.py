"""Streams that were not there before, and what the policy says of them: pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from polynya.model.config.evolution import Policy
from polynya.model.contract.identifiers import shown
from polynya.model.errors import OperationError, TaskStoppedError


@dataclass(frozen=True, slots=True)
class Judged:
    """What is landed of the streams that there are.

    Attributes:
        tables: the streams that are landed, by landed table.
        ignored: streams that are left out, by the policy `ignore`.
        suspended: streams that wait for a decision.
    """

    tables: Mapping[str, tuple[str, ...]]
    ignored: tuple[str, ...] = ()
    suspended: tuple[str, ...] = ()


def judge(
    found: Mapping[str, tuple[str, ...]],
    known: Collection[str] | None,
    policy: Policy,
    is_asked_for: Callable[[str], bool],
) -> Judged:
    """Decide what is landed.

    Args:
        found: the streams that there are now, by landed table.
        known: those that were landed before; None: it is the first look, and what is there is what
            was asked for.
        policy: of the task, for those that a wildcard meets later.
        is_asked_for: whether a stream is named in the task.
    """
    there = {stream for streams in found.values() for stream in streams}
    new = (
        set()
        if known is None or policy == "apply"
        else {one for one in there if one not in known and not is_asked_for(one)}
    )
    tables = {
        table: tuple(one for one in streams if one not in new) for table, streams in found.items()
    }
    left = tuple(sorted(new))
    return Judged(
        tables={table: streams for table, streams in tables.items() if streams},
        ignored=left if policy == "ignore" else (),
        suspended=left if policy in {"suspend", "stop"} else (),
    )


def waits(judged: Judged, policy: Policy, where: str) -> OperationError | None:
    """The error for streams that wait for a decision, None when none does.

    With the policy `stop` it ends the task.
    """
    if not judged.suspended:
        return None
    names = ", ".join(shown(one) for one in judged.suspended[:5])
    kind = TaskStoppedError if policy == "stop" else OperationError
    return kind(
        "POLYNYA-STR-016",
        f"there are new topics, and the policy for that is `{policy}`: {names}",
        where=where,
        state="they are not landed, and keep their records as long as they are set to",
        fix="name them in `topics`, take wildcards out of it, or change `on_new_topic`",
    )
