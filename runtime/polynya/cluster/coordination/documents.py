"""The objects of a cluster: small JSON documents, each with a version and a nonce.

Nodes of two versions can share a cluster. Unknown fields, also nested ones, survive a rewrite of
the document, so a later version may add fields and announce them with a higher `minor`. A document
with a higher major version `v` is not understood, and therefore never overwritten.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, ClassVar, Final, Literal, Self, TypeAlias, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from polynya.cluster.unit import JobKey
from polynya.model.error_catalogue.cluster import CLUSTER_OBJECT_UNREADABLE
from polynya.model.errors import OperationError

#: Largest document that is read, in bytes: a plan of many thousand units.
MAX_DOCUMENT_BYTES: Final = 16_000_000
VERSION: Final = 1

Name: TypeAlias = Annotated[str, Field(min_length=1, max_length=1024)]
#: Characters of a text.
MAX_TEXT: Final = 4096
Text: TypeAlias = Annotated[str, Field(max_length=MAX_TEXT)]
Count: TypeAlias = Annotated[int, Field(ge=0)]
NodeState: TypeAlias = Literal["ready", "draining", "gone"]


class Document(BaseModel):
    """What all have in common. `nonce` is another one with each write, set by the register."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="allow")

    v: int = VERSION
    nonce: Text = ""

    def encoded(self) -> bytes:
        """The object's content."""
        return self.model_dump_json().encode() + b"\n"


class NodeLease(Document):
    """`nodes/<incarnation>`: a process of a node, alive while it renews this.

    Attributes:
        on_demand: the machine is not a Spot instance.
        capacity: how much work it can do next to others: its processors.
        since: when it came into its state.
        version: of Polynya.
        renewed_at: the clock of the node when it renewed the lease, for display; no node uses it.
        machine, zone: type and zone of its instance; empty outside EC2.
        leaving: why it drains or has left, for display, such as the notice of a Spot interruption.
    """

    node: Name
    incarnation: Name
    state: NodeState
    on_demand: bool = False
    capacity: Annotated[float, Field(gt=0, le=1_000_000)] = 1.0
    since: datetime
    version: Text = ""
    renewed_at: datetime | None = None
    machine: Text = ""
    zone: Text = ""
    leaving: Text = ""


class LeaderLease(Document):
    """`leader`: the planning process, none if `incarnation` is None. `term` grows with each holder.

    `configuration` is the fingerprint of the units that its configuration has; empty: of a version
    that does not say so.
    """

    node: Name | None = None
    incarnation: Name | None = None
    term: Count
    configuration: Text = ""


_KNOWN_OF_UNIT: Final = TypeAdapter(tuple[Name, Name, Text])


def _of_unit(value: tuple[Any, ...]) -> tuple[Any, ...]:
    """Check what this version knows of a unit, and leave the rest as it is."""
    return (*_KNOWN_OF_UNIT.validate_python(value[:3]), *value[3:])


#: A unit of a plan: its task, its name and why it is there; a later version may add to it.
PlannedUnit: TypeAlias = Annotated[tuple[Any, ...], AfterValidator(_of_unit)]


_NAME_OF_UNIT: Final = TypeAdapter(tuple[Name, Name])


def _named(value: tuple[Any, ...]) -> tuple[Any, ...]:
    return (*_NAME_OF_UNIT.validate_python(value[:2]), *value[2:])


#: A unit in a list: its task and its name; a later version may add to it.
ListedUnit: TypeAlias = Annotated[tuple[Any, ...], AfterValidator(_named)]


#: A lease: the incarnation and a version of the object; a later version may add to it.
LeaseVersion: TypeAlias = Annotated[tuple[Any, ...], AfterValidator(_named)]


class LeaderUnits(Document):
    """`wanted/units`: the units of the leader's configuration, with their fingerprint.

    It is for nodes whose own configuration is another one for long.
    """

    configuration: Text
    units: tuple[ListedUnit, ...] = ()

    def keys(self) -> frozenset[JobKey]:
        """The units."""
        return keys_of(self.units)


class UnitDifference(Document):
    """`differences/<incarnation>`: how what a process knows differs from what the leader knows.

    Attributes:
        configuration: fingerprint of the units that this process knows.
        base: of those of the leader, when this was written.
        more: units that this process knows and the leader does not.
        less: units that the leader knows and this process does not.
    """

    configuration: Text
    base: Text
    more: tuple[ListedUnit, ...] = ()
    less: tuple[ListedUnit, ...] = ()


def keys_of(units: tuple[tuple[Any, ...], ...]) -> frozenset[JobKey]:
    """The units of a list."""
    return frozenset(JobKey(task, name) for task, name, *_ in units)


class NodePlan(Document):
    """`plans/<incarnation>`: the units that a node should have. `number` grows with each write.

    Attributes:
        dead: leases that were not renewed in time when this was written, in the version that the
            leader saw all that time. A lease that is still in it was not renewed since.
    """

    term: Count
    number: Count
    units: tuple[PlannedUnit, ...] = ()
    dead: tuple[LeaseVersion, ...] = ()

    def dead_leases(self) -> dict[str, str]:
        """Versions by incarnation."""
        return {incarnation: version for incarnation, version, *_ in self.dead}

    def reasons(self) -> dict[JobKey, str]:
        """The units, each with its reason."""
        return {JobKey(task, name): reason for task, name, reason, *_ in self.units}

    def with_units(self, units: Mapping[JobKey, str]) -> Self:
        """The plan with these units; what else is known of one stays with it."""
        more = {JobKey(task, name): rest for task, name, _, *rest in self.units}
        listed = tuple((*unit, why, *more.get(unit, ())) for unit, why in sorted(units.items()))
        return self.model_copy(update={"units": listed})


class UnitOwnership(Document):
    """`units/<task>/<name>`: the process that works on the unit; none when `owner` is None.

    `owner` is an incarnation. `epoch` grows by at least 1 with each new owner and never falls.
    """

    owner: Name | None = None
    node: Name | None = None
    epoch: Count
    since: datetime
    reason: Text = ""


class Freeze(Document):
    """`freeze`: nothing moves while this exists."""

    by: Text
    reason: Text = ""
    since: datetime


class DrainRequest(Document):
    """`drains/<node>`: the node should have no units while this exists."""

    by: Text
    reason: Text = ""
    since: datetime


class MoveRequest(Document):
    """`moves/<task>/<name>`: the unit should be on the node `to` while this exists."""

    to: Name
    by: Text
    reason: Text = ""
    since: datetime


class TaskRequest(Document):
    """`tasks/<task>`: the task is stopped while this says `stopped`."""

    state: Literal["stopped", "started"]
    by: Text
    reason: Text = ""
    since: datetime


class UnitRequest(Document):
    """`wishes/<task>/<name>`: a request for the unit, executed once before its work continues.

    Its owner deletes it when it is done. The nonce tells it from the next one.

    Attributes:
        kind: a `UnitCommandType`; what a version does not know it leaves to others.
        dataset: one of a unit that finds several, None for all of them.
        mode, files, as_of, accept_incomplete: of a reload.
        apply: of a `run`. actions: of `maintain`, which takes them even if they do not pay.
    """

    kind: Name
    dataset: Name | None = None
    mode: Name | None = None
    files: Name | None = None
    as_of: datetime | None = None
    accept_incomplete: bool = False
    apply: Name | None = None
    actions: tuple[Name, ...] = ()
    by: Text
    reason: Text = ""
    since: datetime


class UnitOutcome(Document):
    """`outcomes/<task>/<name>`: the outcome of the last request for the unit.

    Attributes:
        wish: the nonce of the request.
        done: whether it was carried out; else `text` says why not.
        node, epoch: of its owner then.
        by, asked: the author of the request, and when it was made.
    """

    wish: Text
    kind: Name
    done: bool
    text: Text = ""
    node: Name
    epoch: Count
    by: Text
    asked: datetime
    ended: datetime


D = TypeVar("D", bound=Document)


class NewerDocumentError(OperationError):
    """Raised for a document of a version that this Polynya does not know."""


def parse(kind: type[D], data: bytes, where: str) -> D:
    """The document in an object.

    Raises:
        OperationError: it is not such a document (POLYNYA-AGT-012).
        NewerDocumentError: it is of a newer version (the same code).
    """
    try:
        found = kind.model_validate_json(data)
    except ValidationError as error:
        # One of a newer version may lack what this version knows.
        _refuse_newer(_version_in(data), where)
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))
        why = f"{place}: {first['msg']}" if place else first["msg"]
        raise CLUSTER_OBJECT_UNREADABLE(where=where, why=why) from None
    _refuse_newer(found.v, where)
    return found


def _version_in(data: bytes) -> int:
    """The version of what may be no document."""
    try:
        return Document.model_validate_json(data).v
    except ValidationError:
        return VERSION


def _refuse_newer(version: int, where: str) -> None:
    if version > VERSION:
        why = f"version {version} of a newer Polynya; this one knows {VERSION}"
        raise CLUSTER_OBJECT_UNREADABLE.raising(NewerDocumentError)(where=where, why=why)
