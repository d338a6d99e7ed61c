"""Requests of operators to a cluster, its tasks and its units, stored as objects.

`Requests` writes and withdraws requests. `TaskRequests` and `UnitRequests` read them in every node.
The owner of a unit carries out the request for the unit and deletes it. It writes the outcome
first, so that a node that dies in between leaves no request that looks pending. A new owner may
have an old listing, up to half a minute, with a request that the former owner has carried out; so
it reads the request again.

`Leaving` is a request of the node itself. When AWS recommends to leave an instance, an interruption
is more likely but not certain. So the node asks for its own drain as soon as another node can take
its work, and keeps running; a node that is alone keeps working.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Final, cast, get_args

from polynya.cluster.coordination import documents, store
from polynya.cluster.coordination.documents import Document, TaskRequest, UnitOutcome, UnitRequest
from polynya.cluster.coordination.member_state import MemberState
from polynya.cluster.coordination.store import STORE_ERRORS, DocumentStore, StoredDocument
from polynya.cluster.unit import JobKey
from polynya.engine.commands.unit_command import UnitCommand, UnitCommandType
from polynya.engine.policy import ApplyMode
from polynya.model.config.aws import AwsAccess
from polynya.model.config.dataset import ReloadMode
from polynya.model.config.maintenance import ACTIONS, ActionName
from polynya.model.error_catalogue.cluster import CLUSTER_OBJECT_CONTENDED, UNIT_REQUEST_PENDING
from polynya.model.errors import ConflictError, OperationError, PolynyaError
from polynya.model.names import parse_location
from polynya.store.clock import Clock, Retry
from polynya.store.object_store import ObjectStore
from polynya.store.places import store_at

#: A concurrent write of the same request is rare: after this many tries something is wrong.
_WRITE_TRIES: Final = 5


class Requests:
    """Writes and withdraws the requests for one cluster.

    Args:
        document_store: the documents of the cluster.
        by: the author of the requests.
        now: the wall clock, for operators to read.
    """

    def __init__(self, document_store: DocumentStore, by: str, now: Callable[[], datetime]) -> None:
        self._document_store, self._by, self._now = document_store, by, now

    def drain(self, node: str, reason: str) -> None:
        """Give a node no units, until `undrain`."""
        request = documents.DrainRequest(by=self._by, reason=reason, since=self._now())
        self._write(store.drain_path(node), request)

    def undrain(self, node: str, *, own: bool = False) -> bool:
        """Let a node have units again; `own`: only if the request has the same author.

        False when there was no such request.
        """
        found = self._document_store.read(documents.DrainRequest, store.drain_path(node))
        if own and (found is None or found.document.by != self._by):
            return False
        return self._withdraw(documents.DrainRequest, store.drain_path(node))

    def freeze(self, reason: str) -> None:
        """Let nothing move, until `unfreeze`; work continues."""
        request = documents.Freeze(by=self._by, reason=reason, since=self._now())
        self._write(store.FREEZE, request)

    def unfreeze(self) -> bool:
        """Let units move again. False when nothing was frozen."""
        return self._withdraw(documents.Freeze, store.FREEZE)

    def move(self, unit: JobKey, to: str, reason: str) -> None:
        """Let a unit be on the node `to`, until `unmove`."""
        request = documents.MoveRequest(to=to, by=self._by, reason=reason, since=self._now())
        self._write(store.move_path(unit), request)

    def unmove(self, unit: JobKey) -> bool:
        """Let the leader place a unit again. False when it was not moved by request."""
        return self._withdraw(documents.MoveRequest, store.move_path(unit))

    def stop(self, task: str, reason: str) -> None:
        """Stop a task on all nodes, until `start`."""
        request = documents.TaskRequest(
            state="stopped", by=self._by, reason=reason, since=self._now()
        )
        self._write(store.task_path(task), request)

    def start(self, task: str) -> bool:
        """Let a task continue. False when it was not stopped."""
        found = self._document_store.read(documents.TaskRequest, store.task_path(task))
        stopped = found is not None and found.document.state == "stopped"
        return self._withdraw(documents.TaskRequest, store.task_path(task)) and stopped

    def resume(self, task: str, reason: str) -> None:
        """Let a task continue, and retry its suspended jobs."""
        request = documents.TaskRequest(
            state="started", by=self._by, reason=reason, since=self._now()
        )
        self._write(store.task_path(task), request)

    def refuse_pending(self, units: Iterable[JobKey]) -> None:
        """Raise ConflictError when one of the units has a pending request (POLYNYA-AGT-023)."""
        for unit in units:
            found = self._document_store.read(UnitRequest, store.request_path(unit))
            if found is not None:
                raise _pending_error(unit, found.document)

    def ask(self, unit: JobKey, request: UnitRequest) -> str:
        """Request a command for a unit; returns the nonce of the request.

        Raises:
            ConflictError: the unit has a pending request (POLYNYA-AGT-023).
        """
        path = store.request_path(unit)
        own = request.model_copy(update={"by": self._by, "since": self._now()})
        for _ in range(_WRITE_TRIES):
            mine = self._document_store.write(path, own, None)
            found = self._document_store.read(UnitRequest, path)
            if mine and found is not None:
                return found.document.nonce
            if mine:
                # Its owner was faster: the request is done.
                return ""
            if found is not None:
                raise _pending_error(unit, found.document)
        raise CLUSTER_OBJECT_CONTENDED(where=path)

    def withdraw(self, unit: JobKey) -> bool:
        """Withdraw the request for a unit. False when there is none, or no longer."""
        return self._withdraw(UnitRequest, store.request_path(unit))

    def _write(self, path: str, request: Document) -> None:
        """Write a request; unknown fields of the previous one are kept.

        Raises:
            OperationError: the previous one is damaged or of a newer version (POLYNYA-AGT-012).
            ConflictError: another process keeps changing it (POLYNYA-AGT-022).
        """
        for _ in range(_WRITE_TRIES):
            found = self._document_store.read(type(request), path)
            if self._document_store.overwrite(path, request, found):
                return
        raise CLUSTER_OBJECT_CONTENDED(where=path)

    def _withdraw(self, kind: type[Document], path: str) -> bool:
        for _ in range(_WRITE_TRIES):
            found = self._document_store.read(kind, path)
            if found is None:
                return False
            if self._document_store.delete(path, found.version):
                return True
        raise CLUSTER_OBJECT_CONTENDED(where=path)


def _pending_error(unit: JobKey, request: UnitRequest) -> ConflictError:
    return UNIT_REQUEST_PENDING(
        where=f"{unit.task}/{unit.name}",
        why=request.reason or None,
        unit=unit.name,
        request=request.kind,
        by=request.by,
        since=request.since,
    )


@dataclass(frozen=True, slots=True)
class PendingRequest:
    """A request that this version can execute. `nonce` is that of its document."""

    nonce: str
    command: UnitCommand
    by: str
    since: datetime
    reason: str = ""

    def text(self) -> str:
        """The command, its author and the reason."""
        return f"{self.command.kind}, asked by {self.by}" + (
            f": {self.reason}" if self.reason else ""
        )


@dataclass(frozen=True, slots=True)
class FinishedRequest:
    """A request with its outcome; `done`: it was executed, else `text` says why not."""

    unit: JobKey
    request: PendingRequest
    done: bool
    text: str
    epoch: int


@dataclass(frozen=True, slots=True)
class PendingRequests:
    """All pending requests for tasks and units.

    Attributes:
        stopped: the reason by stopped task.
        resumed: the nonce of the request by task that is retried.
        units: the request by unit, which is executed before the work of the unit continues.
    """

    stopped: Mapping[str, str] = field(default_factory=dict)
    resumed: Mapping[str, str] = field(default_factory=dict)
    units: Mapping[JobKey, PendingRequest] = field(default_factory=dict)


class WorkRequests:
    """Requests for tasks and their units. `node` is the id of this one."""

    def __init__(self, document_store: DocumentStore, node: str, clock: Clock) -> None:
        self._tasks = TaskRequests(document_store, clock)
        self._units = UnitRequests(document_store, node, clock)

    def __call__(self) -> PendingRequests:
        """The requests that are pending now, those for units as they were listed last."""
        return replace(self._tasks(), units=self._units())

    def confirmed(self, requests: PendingRequests, grants: Mapping[JobKey, int]) -> PendingRequests:
        """The same requests, with those for units that this node owns, read under its grants."""
        return replace(requests, units=self._units.confirmed(grants))

    def settle(self, finished: FinishedRequest) -> None:
        """Write the outcome of a request. Usable from any thread."""
        self._units.settle(finished)


#: Between two listings of the requests for tasks; operators do not mind this delay.
_TASK_LISTING_SECONDS: Final = 10.0


class TaskRequests:
    """Reads the requests for tasks. If the store does not answer, the known ones stay."""

    def __init__(self, document_store: DocumentStore, clock: Clock) -> None:
        self._document_store, self._clock = document_store, clock
        #: Version and document by path; None for one that cannot be understood.
        self._known: dict[str, tuple[str, TaskRequest | None]] = {}
        self._read_at: float | None = None

    def __call__(self) -> PendingRequests:
        """The requests that are pending now."""
        now = self._clock.monotonic()
        if self._read_at is None or now - self._read_at >= _TASK_LISTING_SECONDS:
            # The member meets the same trouble of the store in this turn, and reports it.
            with suppress(PolynyaError, OSError):
                self._read()
                self._read_at = now
        requests = {
            store.name_of(path.rpartition("/")[2]): request
            for path, (_, request) in self._known.items()
            if request is not None
        }
        return PendingRequests(
            {
                task: _why(request)
                for task, request in requests.items()
                if request.state == "stopped"
            },
            {
                task: request.nonce
                for task, request in requests.items()
                if request.state == "started"
            },
        )

    def _read(self) -> None:
        listed = self._document_store.list(store.TASKS)
        versions = {path: info.version for path, info in listed.items()}
        known = {path: request for path, request in self._known.items() if path in versions}
        for path, version in versions.items():
            if path not in known or known[path][0] != version:
                known[path] = (version, self._read_request(path))
        self._known = known

    def _read_request(self, path: str) -> TaskRequest | None:
        """The request in an object; None for one that cannot be read."""
        try:
            found = self._document_store.read(TaskRequest, path)
        except OperationError:
            return None
        return found.document if found is not None else None


def _why(request: TaskRequest) -> str:
    return f"stopped by {request.by}" + (f": {request.reason}" if request.reason else "")


#: Between two listings of the requests for units, which take minutes.
UNIT_LISTING_SECONDS: Final = 30.0


class UnitRequests:
    """Reads the requests for units, and writes their outcomes. `node` is the id of this node.

    If the store does not answer, the known requests stay. Called on one thread; `settle` may be
    called on any.
    """

    def __init__(self, document_store: DocumentStore, node: str, clock: Clock) -> None:
        self._document_store, self._node, self._clock = document_store, node, clock
        #: Version and request by path; None for one that is done or unknown to this version.
        self._known: dict[str, tuple[str, PendingRequest | None]] = {}
        self._settled: deque[FinishedRequest] = deque()
        self._read_at: float | None = None
        #: Units with a request, and the epoch under which it was read again.
        self._confirmed: dict[JobKey, int] = {}

    def settle(self, finished: FinishedRequest) -> None:
        """Write the outcome of a request with the next call."""
        self._settled.append(finished)

    def __call__(self) -> Mapping[JobKey, PendingRequest]:
        """The requests by unit, as they were listed last. First it writes outcomes."""
        # The member meets the same trouble of the store in this turn, and reports it.
        with suppress(*STORE_ERRORS):
            self._write_outcomes()
        now = self._clock.monotonic()
        if self._read_at is None or now - self._read_at >= UNIT_LISTING_SECONDS:
            with suppress(*STORE_ERRORS):
                self._read()
                self._read_at = now
        return self._pending_requests()

    def confirmed(self, grants: Mapping[JobKey, int]) -> Mapping[JobKey, PendingRequest]:
        """The requests for units of this node, each read again after the unit was granted.

        A request that cannot be read again is left out.
        """
        before = self._confirmed
        sure = {unit: epoch for unit, epoch in before.items() if grants.get(unit) == epoch}
        for unit in self._pending_requests():
            if unit in grants and unit not in sure:
                with suppress(*STORE_ERRORS):
                    self._read_again(unit)
                    sure[unit] = grants[unit]
        self._confirmed = sure
        return {unit: request for unit, request in self._pending_requests().items() if unit in sure}

    def _pending_requests(self) -> dict[JobKey, PendingRequest]:
        done = {finished.request.nonce for finished in list(self._settled)}
        units = ((store.unit_at(path), request) for path, (_, request) in self._known.items())
        return {
            unit: request
            for unit, request in units
            if unit is not None and request is not None and request.nonce not in done
        }

    def _write_outcomes(self) -> None:
        while self._settled:
            finished = self._settled[0]
            if not self._write(finished):
                return
            self._withdraw(finished.unit, finished.request.nonce)
            self._known.pop(store.request_path(finished.unit), None)
            self._settled.popleft()

    def _write(self, finished: FinishedRequest) -> bool:
        """Write the outcome of a request; False: try again later."""
        path = store.outcome_path(finished.unit)
        found = self._document_store.read(UnitOutcome, path)
        if found is not None and found.document.epoch > finished.epoch:
            # A later owner of the unit wrote it.
            return True
        outcome = UnitOutcome(
            wish=finished.request.nonce,
            kind=finished.request.command.kind,
            done=finished.done,
            text=finished.text[:2000],
            node=self._node,
            epoch=finished.epoch,
            by=finished.request.by,
            asked=finished.request.since,
            ended=self._clock.now(),
        )
        return self._document_store.overwrite(path, outcome, found)

    def _withdraw(self, unit: JobKey, nonce: str) -> None:
        path = store.request_path(unit)
        found = self._document_store.read(UnitRequest, path)
        if found is not None and found.document.nonce == nonce:
            self._document_store.delete(path, found.version)

    def _read(self) -> None:
        listed = self._document_store.list(store.REQUESTS)
        versions = {path: info.version for path, info in listed.items()}
        known = {path: request for path, request in self._known.items() if path in versions}
        for path, version in versions.items():
            if path not in known or known[path][0] != version:
                known[path] = (version, self._read_request(path))
        self._known = known

    def _read_again(self, unit: JobKey) -> None:
        path = store.request_path(unit)
        self._known[path] = (self._known[path][0], self._read_request(path))

    def _read_request(self, path: str) -> PendingRequest | None:
        unit = store.unit_at(path)
        try:
            found = self._document_store.read(UnitRequest, path)
        except OperationError:
            return None
        if unit is None or found is None or self._is_done(unit, found):
            return None
        return _pending_request(found.document)

    def _is_done(self, unit: JobKey, found: StoredDocument[UnitRequest]) -> bool:
        """Whether its last owner wrote the outcome and died before the delete; then delete it."""
        outcome = self._document_store.read(UnitOutcome, store.outcome_path(unit))
        done = outcome is not None and outcome.document.wish == found.document.nonce
        if done:
            self._document_store.delete(store.request_path(unit), found.version)
        return done


def _pending_request(request: UnitRequest) -> PendingRequest | None:
    """The command of a request; None for one that only another version can execute."""
    default = UnitCommand("reload")
    mode, apply = request.mode or default.mode, request.apply or default.apply
    known = request.kind in get_args(UnitCommandType) and mode in get_args(ReloadMode)
    if not known or apply not in get_args(ApplyMode) or set(request.actions) - set(ACTIONS):
        return None
    command = UnitCommand(
        cast("UnitCommandType", request.kind),
        request.dataset,
        cast("ReloadMode", mode),
        request.files,
        request.as_of,
        request.accept_incomplete,
        cast("ApplyMode", apply),
        cast("tuple[ActionName, ...]", request.actions),
    )
    return PendingRequest(request.nonce, command, request.by, request.since, request.reason)


class Leaving:
    """Requests the drain of one node, in that node's own name.

    Called before each turn of the member, on the member's thread; what the store refuses is tried
    again before the next one.
    """

    def __init__(self, requests: Requests, node: str) -> None:
        self._requests, self._node = requests, node
        self._reason: str | None = None
        self._is_back = False

    def prefer(self, reason: str) -> None:
        """Leave when another node is ready. Usable from any thread."""
        self._reason = reason

    def __call__(self, member_state: MemberState) -> None:
        """Write or withdraw the request."""
        with suppress(PolynyaError, OSError):
            if not self._is_back:
                # The instance that AWS recommended to leave is gone, or was spared.
                self._requests.undrain(self._node, own=True)
                self._is_back = True
            reason = self._reason
            if reason is not None and _has_successor(member_state, self._node):
                self._requests.drain(self._node, reason)
                self._reason = None


def _has_successor(member_state: MemberState, node: str) -> bool:
    return any(
        other.node != node
        and other.state == "ready"
        and not other.dead
        and other.drained_by is None
        for other in member_state.nodes.values()
    )


#: A turn that the store holds up for longer, in seconds, is worth less than the next one.
_RETRY_SECONDS: Final = 4.0


def coordination_store(place: str, access: AwsAccess) -> ObjectStore:
    """A folder, which is made if need be, or a place in a bucket.

    Raises:
        ConfigError: no such place can be (POLYNYA-CFG-009, 011, 018).
    """
    where = parse_location(place, Path.cwd(), "--coordination")
    if isinstance(where, Path):
        return store_at(where, access)
    # Start-up time: the AWS SDK takes as long as the rest of a command on local folders.
    from polynya.store.aws.s3 import S3ObjectStore

    return S3ObjectStore(where, access, retry=Retry(deadline=_RETRY_SECONDS))
