"""The objects between operators and the network agent: commands, and its sign of life."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from polynya.cluster.coordination.documents import Count, Document, Name, Text

COMMANDS: Final = "commands"
NETWORK_AGENT: Final = "network-agent"

Kind: TypeAlias = Literal["stop", "start", "roll", "scale", "wake"]
KINDS: Final[tuple[Kind, ...]] = ("stop", "start", "roll", "scale", "wake")

#: Id of the command of programs that want a node: one for all of them, the newest one counts.
WAKE: Final = "wake"

CommandState: TypeAlias = Literal["pending", "taken", "done", "failed", "refused"]

TAKEN_WITHIN: Final = timedelta(hours=1)
"""A command that nothing took for so long is refused: its sender no longer expects it."""


Dollars: TypeAlias = Annotated[float, Field(ge=0, le=1_000_000)]


class ClusterCommand(Document):
    """`commands/<id>`: an operator's command for a group, and its outcome.

    Attributes:
        kind: what is requested; a kind that this version does not know is refused.
        nodes: how many, for `scale`.
        state: `pending` until a network agent takes it, then `taken`; `done` when the group is as
            asked, `failed` when it will not be, `refused` when no request was sent.
        steps: the requests that the network agent has sent to the group for it.
        refresh: the newest refresh of the group when it was taken.
        outcome: why it is in its state.
    """

    kind: Name
    nodes: Annotated[int, Field(ge=0, le=10_000, strict=True)] | None = None
    by: Text
    reason: Text = ""
    since: datetime
    state: CommandState = "pending"
    steps: tuple[Name, ...] = ()
    refresh: Text | None = None
    taken_by: Text | None = None
    taken_at: datetime | None = None
    ended_at: datetime | None = None
    outcome: Text = ""

    @property
    def is_open(self) -> bool:
        """Whether something is still to be done."""
        return self.state in ("pending", "taken")

    def text(self) -> str:
        """The command in words."""
        return f"scale to {self.nodes}" if self.kind == "scale" else self.kind


class Outage(BaseModel):
    """A time in which the network agent did not reach what it needs."""

    model_config = ConfigDict(frozen=True, extra="allow")

    since: datetime
    until: datetime
    reason: Text


class GroupReport(BaseModel):
    """The group of a cluster, as the network agent saw it last.

    Attributes:
        phase: one of `phase.Phase`, or one that a newer version knows.
        reason: of the phase.
        since: of the phase.
    """

    model_config = ConfigDict(frozen=True, extra="allow")

    minimum: Count
    maximum: Count
    desired: Count
    in_service: Count
    starting: Count
    ending: Count
    stopped: bool = False
    seen_at: datetime
    phase: Name = "serving"
    reason: Text = ""
    since: datetime | None = None


class MachinePrice(BaseModel):
    """What a machine of a type costs in a zone, in US dollars an hour; None: AWS told no price.

    `spot_at` and `on_demand_at` are when AWS told it, `asked_at` when it was asked last.
    """

    model_config = ConfigDict(frozen=True, extra="allow")

    machine: Name
    zone: Name
    asked_at: datetime
    spot: Dollars | None = None
    spot_at: datetime | None = None
    on_demand: Dollars | None = None
    on_demand_at: datetime | None = None


class PriceReport(BaseModel):
    """The prices of the machines of a group; `trouble`: why the last question failed, `since`."""

    model_config = ConfigDict(frozen=True, extra="allow")

    machines: tuple[MachinePrice, ...] = ()
    trouble: Text = ""
    since: datetime | None = None


class AgentReport(Document):
    """`network-agent`: the sign of life of the network agent that serves this cluster.

    Attributes:
        agent: its name. `token` is another one for each process.
        state: whether it reaches the group; a report that is not renewed says nothing any more.
        since: of the state.
        outage: the last time in which it was disconnected.
        group: None when there is no such group, or it was never seen.
        update: why the version that is pinned does not run, empty when it does.
        prices: of the machines of the group, None before the first answer.
    """

    agent: Name
    token: Name
    version: Text = ""
    state: Literal["connected", "disconnected"]
    since: datetime
    reason: Text = ""
    renewed_at: datetime
    outage: Outage | None = None
    group: GroupReport | None = None
    update: Text = ""
    prices: PriceReport | None = None


def command_path(name: str) -> str:
    """Where the command of this id is."""
    return f"{COMMANDS}/{name}"


def command_id(now: datetime, token: str) -> str:
    """A unique id that sorts like the commands. `token`: random hex digits."""
    return f"{now:%Y%m%dT%H%M%S.%f}Z-{token[:8]}"


def id_of(path: str) -> str:
    """The id of the command at a path."""
    return path.rpartition("/")[2]
