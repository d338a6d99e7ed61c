"""Requests for units of a running cluster: written for their owners, and waited for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from polynya.cli.cluster_moves import Place
from polynya.cli.context import CommandContext
from polynya.cli.exit_codes import ExitCode
from polynya.cli.options import usage_error
from polynya.store.clock import SystemClock

if TYPE_CHECKING:
    from polynya.cluster.coordination.documents import UnitOutcome, UnitRequest
    from polynya.cluster.unit import JobKey

_STEP_SECONDS: Final = 2.0


def ask(
    context: CommandContext,
    place: Place,
    task: str,
    wish: UnitRequest,
    *,
    wait: bool,
) -> int:
    """Ask it of the units of a task, or of the dataset that the wish names, and show what it meets.

    Exit code 1 when it was waited for and one unit could not do it.

    Raises:
        ConfigError: the cluster has no such unit (POLYNYA-CLI-001).
        ConflictError: something is asked of one of them already (POLYNYA-AGT-023).
    """
    wishes, output = place.wishes(), context.output
    asked = []
    units = units_of(place, task, wish.dataset)
    wishes.refuse_pending(units)
    for unit in units:
        # A unit that finds its datasets is told which; any other one is the dataset.
        named = wish.dataset if unit.name == unit.task else None
        asked.append((unit, wishes.ask(unit, wish.model_copy(update={"dataset": named}))))
        data = {"task": unit.task, "name": unit.name, "kind": wish.kind, "reason": wish.reason}
        output.result("unit.asked", data, f"{unit.task}/{unit.name}: {wish.kind} is asked for")
    for text in _waits(place):
        output.warning(text)
    return _awaited(context, place, asked) if wait else ExitCode.OK


def units_of(place: Place, task: str, dataset: str | None) -> list[JobKey]:
    """The units of a task that the cluster knows, or the one to which a dataset belongs.

    Raises:
        ConfigError: there is none (POLYNYA-CLI-001).
    """
    # Start-up time: pydantic models of all documents.
    from polynya.cluster.control.reading import known_units, read_cluster

    known = known_units(read_cluster(place.store, place.cluster))
    units = [one for one in known if one.task == task]
    found = [
        one
        for one in units
        if dataset is None or dataset in (one.name, one.name.rpartition(".")[2])
    ]
    # Whether a task that finds its datasets has this one its owner knows.
    found = found or [one for one in units if one.name == one.task]
    if not found:
        names = ", ".join(f"{one.task}/{one.name}" for one in known[:20])
        what = task if dataset is None else f"{task}/{dataset}"
        raise usage_error(
            f"the cluster {place.cluster} has no unit `{what}`",
            f"one of {names}" if names else "start its agents first",
        )
    return found


def _waits(place: Place) -> list[str]:
    """Why what was asked is not begun now."""
    # Start-up time: pydantic models of all documents.
    from polynya.cli.cluster_status import seen

    return [one for one in seen(place).asked if ", waits: " in one]


def _awaited(context: CommandContext, place: Place, asked: Sequence[tuple[JobKey, str]]) -> int:
    failed = False
    for unit, wish in asked:
        outcome = _outcome(place, unit, wish)
        if outcome is None:
            failed = True
            context.output.warning(f"{unit.task}/{unit.name}: somebody took it back")
            continue
        failed = failed or not outcome.done
        data = outcome.model_dump(exclude={"v", "nonce", "wish"}) | {
            "task": unit.task,
            "name": unit.name,
        }
        how = "" if outcome.done else "not done: "
        context.output.result("unit.outcome", data, f"{outcome.kind}: {how}{outcome.text}")
    return ExitCode.FAILED if failed else ExitCode.OK


def _outcome(place: Place, unit: JobKey, wish: str) -> UnitOutcome | None:
    """What became of a wish, once that is known; None when it was taken back."""
    # Start-up time: pydantic models of all documents.
    from polynya.cluster.coordination import store
    from polynya.cluster.coordination.documents import UnitOutcome, UnitRequest

    register, clock = place.register(), SystemClock()
    while True:
        left = register.read(UnitRequest, store.request_path(unit))
        if left is None or left.document.nonce != wish:
            found = register.read(UnitOutcome, store.outcome_path(unit))
            done = found is not None and wish in ("", found.document.wish)
            return found.document if found is not None and done else None
        clock.sleep(_STEP_SECONDS)
