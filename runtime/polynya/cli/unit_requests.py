"""Requests for units of a running cluster: written for their owners, and waited for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

from cyclopts import Parameter

from polynya.cli.cluster_location import ClusterLocation
from polynya.cli.cluster_requests import no_such_unit
from polynya.cli.context import CommandContext
from polynya.cli.exit_codes import ExitCode
from polynya.store.clock import SystemClock

if TYPE_CHECKING:
    from polynya.cluster.coordination.documents import UnitOutcome, UnitRequest
    from polynya.cluster.unit import JobKey

OnlyDataset: TypeAlias = Annotated[str | None, Parameter(help="only this dataset.")]

_POLL_SECONDS: Final = 2.0


def send_request(
    context: CommandContext,
    location: ClusterLocation,
    task: str,
    request: UnitRequest,
    *,
    wait: bool,
) -> int:
    """Write a request for the units of a task, or for the dataset that it names.

    With `wait` the outcomes are shown, and the exit code is 1 if one unit could not do it.

    Raises:
        ConfigError: the cluster has no such unit (POLYNYA-CLI-001).
        ConflictError: one of them has a pending request (POLYNYA-AGT-023).
    """
    return send_requests(context, location, [(task, request)], wait=wait)


def send_requests(
    context: CommandContext,
    location: ClusterLocation,
    asked: Sequence[tuple[str, UnitRequest]],
    *,
    wait: bool,
) -> int:
    """The same for the requests of several tasks, each with a unit of its own."""
    requests, output = location.requests(), context.output
    pending = []
    units = [
        (unit, request)
        for task, request in asked
        for unit in units_of(location, task, request.dataset)
    ]
    requests.refuse_pending(unit for unit, _ in units)
    for unit, request in units:
        # A unit that discovers its datasets needs the name; any other unit is the dataset.
        dataset = request.dataset if unit.name == unit.task else None
        pending.append((unit, requests.ask(unit, request.model_copy(update={"dataset": dataset}))))
        data = {
            "task": unit.task,
            "name": unit.name,
            "kind": request.kind,
            "reason": request.reason,
        }
        output.result("unit.asked", data, f"{unit.task}/{unit.name}: {request.kind} is requested")
    for text in _delays(location):
        output.warning(text)
    return _outcomes(context, location, pending) if wait else ExitCode.OK


def units_of(location: ClusterLocation, task: str, dataset: str | None) -> list[JobKey]:
    """The units of a task that the cluster knows, or the one to which a dataset belongs.

    Raises:
        ConfigError: there is none (POLYNYA-CLI-001).
    """
    # Start-up time: pydantic models of all documents.
    from polynya.cluster.control.reading import known_units, read_cluster

    units = known_units(read_cluster(location.store, location.cluster))
    of_task = [unit for unit in units if unit.task == task]
    matches = [
        unit for unit in of_task if dataset in (None, unit.name, unit.name.rpartition(".")[2])
    ]
    # Only its owner knows whether a task that discovers its datasets has this one.
    matches = matches or [unit for unit in of_task if unit.name == unit.task]
    if not matches:
        raise no_such_unit(location, task if dataset is None else f"{task}/{dataset}", units)
    return matches


def _delays(location: ClusterLocation) -> list[str]:
    """Why pending requests of a cluster are not carried out now."""
    # Start-up time: pydantic models of all documents.
    from polynya.cli.cluster_status import seen

    return [text for text in seen(location).asked if ", waits: " in text]


def _outcomes(
    context: CommandContext, location: ClusterLocation, pending: Sequence[tuple[JobKey, str]]
) -> int:
    failed = False
    for unit, nonce in pending:
        outcome = _outcome(location, unit, nonce)
        if outcome is None:
            failed = True
            context.output.warning(f"{unit.task}/{unit.name}: the request was withdrawn")
            continue
        failed = failed or not outcome.done
        data = outcome.model_dump(exclude={"v", "nonce", "wish"}) | {
            "task": unit.task,
            "name": unit.name,
        }
        text = outcome.text if outcome.done else f"not done: {outcome.text}"
        context.output.result("unit.outcome", data, f"{outcome.kind}: {text}")
    return ExitCode.FAILED if failed else ExitCode.OK


def _outcome(location: ClusterLocation, unit: JobKey, nonce: str) -> UnitOutcome | None:
    """The outcome of a request as soon as there is one; None if the request was withdrawn."""
    # Start-up time: pydantic models of all documents.
    from polynya.cluster.coordination import store
    from polynya.cluster.coordination.documents import UnitOutcome, UnitRequest

    register, clock = location.register(), SystemClock()
    while True:
        pending = register.read(UnitRequest, store.request_path(unit))
        if pending is None or pending.document.nonce != nonce:
            outcome = register.read(UnitOutcome, store.outcome_path(unit))
            matches = outcome is not None and nonce in ("", outcome.document.wish)
            return outcome.document if outcome is not None and matches else None
        clock.sleep(_POLL_SECONDS)
