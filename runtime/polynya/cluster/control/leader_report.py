"""The leader's report: which units wait and which nodes are silent, for the status of a cluster.

The leader writes the work of all nodes to the object `heard` when it changes. Nodes report it on
the workload stream, and a command would have to read there for as long as a heartbeat takes.
`heard` is advisory: only the status depends on it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from itertools import chain
from typing import Final

from pydantic import BaseModel, ConfigDict

from polynya.cluster.coordination.documents import (
    Count,
    Document,
    Name,
    Text,
)
from polynya.cluster.coordination.member_state import MemberState, ObservedNode
from polynya.cluster.coordination.store import STORE_ERRORS, DocumentStore
from polynya.cluster.gossip.messages import NodeReport, Picture, UnitReport
from polynya.cluster.gossip.reader import beat_wait
from polynya.cluster.gossip.records import shortened
from polynya.cluster.unit import JobKey
from polynya.store.clock import Clock

#: Path of the document.
HEARD: Final = "heard"

#: Most units that are listed; the rest is counted.
MAX_UNITS: Final = 500
_NAMED_NODES: Final = 3
#: Least time between two writes of changes.
_WRITE_SECONDS: Final = 10.0
#: A node is silent after this many heartbeats without one, and after this many seconds.
_SILENT_HEARTBEATS: Final = 3.0
_SILENT_SECONDS: Final = 60.0
#: Usual size of a heartbeat.
_HEARTBEAT_BYTES: Final = 2560


class WaitingUnit(BaseModel):
    """A unit whose work waits for something, as its node reported it in `epoch`."""

    model_config = ConfigDict(frozen=True, extra="allow")

    task: Name
    name: Name
    epoch: Count
    state: Text
    reason: Text = ""


class LeaderReport(Document):
    """`heard`: what a process received while it led.

    Attributes:
        incarnation: the process; the report does not count once another one leads.
        at: when it was written.
        stream: why nodes receive no heartbeats, empty when they do.
        units: those whose work waits; `more` others do, too.
    """

    incarnation: Name
    at: datetime
    stream: Text = ""
    units: tuple[WaitingUnit, ...] = ()
    more: Count = 0


class LeaderReportWriter:
    """Writes the report while this node leads. `stream`: whether nodes have a workload stream."""

    def __init__(self, document_store: DocumentStore, clock: Clock, *, stream: bool) -> None:
        self._document_store, self._clock, self._stream = document_store, clock, stream
        self._silent_nodes = SilentNodes()
        self._tried_at = float("-inf")
        self._written: LeaderReport | None = None

    def __call__(self, member_state: MemberState, own: NodeReport | None, picture: Picture) -> None:
        """Write what changed, if it is time; a store that does not answer is asked again."""
        now = self._clock.monotonic()
        silent = self._silent_nodes.names(member_state, picture, now) if self._stream else []
        if not member_state.leading or now - self._tried_at < _WRITE_SECONDS:
            return
        units = waiting_units(own, picture, member_state.nodes)
        report = LeaderReport(
            incarnation=member_state.incarnation,
            at=self._clock.now(),
            stream=_stream_trouble(picture.trouble, silent),
            units=tuple(_waiting_unit(unit) for unit in units[:MAX_UNITS]),
            more=max(len(units) - MAX_UNITS, 0),
        )
        before = self._written
        if before is not None and report == before.model_copy(update={"at": report.at}):
            return
        self._tried_at = now
        # Only the status waits for it.
        with suppress(*STORE_ERRORS):
            if self._write(report):
                self._written = report

    def _write(self, report: LeaderReport) -> bool:
        found = self._document_store.read(LeaderReport, HEARD)
        return self._document_store.overwrite(HEARD, report, found)


def waiting_units(
    own: NodeReport | None, picture: Picture, nodes: Mapping[str, ObservedNode]
) -> list[UnitReport]:
    """The units whose work waits on a living node, sorted; of two reports the higher epoch."""
    living = {name for name, node in nodes.items() if not node.dead and node.state != "gone"}
    reports = [
        *(peer.heartbeat.units for name, peer in picture.nodes.items() if name in living),
        own.units if own is not None else (),
    ]
    newest: dict[JobKey, UnitReport] = {}
    for unit in chain.from_iterable(reports):
        if unit.unit not in newest or newest[unit.unit].epoch <= unit.epoch:
            newest[unit.unit] = unit
    return [newest[unit] for unit in sorted(newest) if newest[unit].waits]


class SilentNodes:
    """Finds nodes that live and send no heartbeats; times in monotonic seconds."""

    def __init__(self) -> None:
        self._since: dict[str, float] = {}

    def names(self, member_state: MemberState, picture: Picture, now: float) -> list[str]:
        """Their names, each once, sorted."""
        living = {
            incarnation: node.node
            for incarnation, node in member_state.nodes.items()
            if not node.dead
            and node.state in ("ready", "draining")
            and incarnation != member_state.incarnation
        }
        self._since = {name: self._since.get(name, now) for name in living}
        # Nodes of other clusters make heartbeats rarer, too.
        nodes = max(len(living) + 1, picture.readers)
        pace = beat_wait(nodes, 1, _HEARTBEAT_BYTES, 0, 1.0)
        longest = max(_SILENT_HEARTBEATS * pace.seconds, _SILENT_SECONDS)
        silent = {
            node
            for incarnation, node in living.items()
            if now - self._since[incarnation] > longest and _age(picture, incarnation) > longest
        }
        return sorted(silent)


def _age(picture: Picture, incarnation: str) -> float:
    peer = picture.nodes.get(incarnation)
    return peer.age_seconds if peer is not None else float("inf")


def _stream_trouble(trouble: str | None, silent: Sequence[str]) -> str:
    if trouble is not None:
        return trouble
    more = f" and {len(silent) - _NAMED_NODES} more" if len(silent) > _NAMED_NODES else ""
    return f"no heartbeats of {', '.join(silent[:_NAMED_NODES])}{more}" if silent else ""


def _waiting_unit(unit: UnitReport) -> WaitingUnit:
    return WaitingUnit(
        task=unit.unit.task,
        name=unit.unit.name,
        epoch=unit.epoch,
        state=unit.state,
        reason=shortened(unit.reason),
    )
