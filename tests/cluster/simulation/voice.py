"""What an agent tells by the stream and hears: the real records and the real listener."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from polynya.cluster.coordination.member_state import MemberState
from polynya.cluster.gossip.messages import (
    Heartbeat,
    Hint,
    HintKind,
    Sender,
    UnitReport,
)
from polynya.cluster.gossip.records import heartbeat_records, hint_record
from polynya.cluster.gossip.stream import Listener
from polynya.cluster.unit import JobKey
from tests.cluster.simulation.parts.machine import Machine, day
from tests.cluster.simulation.parts.stream import Stream

BEAT_SECONDS = 10.0
HINTS: Mapping[str, HintKind] = {"released": "released", "planned": "planned"}


class Voice:
    """Of one process, from its first turn on; `wake` is called when there is a reason to look."""

    def __init__(
        self, stream: Stream, machine: Machine, cluster: str, incarnation: str, process: str
    ) -> None:
        self._stream, self._machine = stream, machine
        self._sender = Sender(cluster, machine.name, incarnation)
        self._listener = Listener(self._sender)
        self._process = process
        self._seq = 0
        self._beat_at = float("-inf")

    def listen(self, wake: Callable[[], None]) -> None:
        """Hear what comes."""

        def hear(data: bytes) -> None:
            if self._listener.take(data, self._machine.elapsed()):
                wake()

        self._stream.listeners[self._process] = hear

    def tell(self, member_state: MemberState, loads: Mapping[JobKey, float]) -> None:
        """Tell the others what a turn brought, and now and then how it goes."""
        for kind in sorted({HINTS[one.what] for one in member_state.actions if one.what in HINTS}):
            self._seq += 1
            at = self._machine.wall()
            self._stream.put(hint_record(Hint(kind, self._sender, self._seq, at)))
        if self._machine.elapsed() >= self._beat_at + BEAT_SECONDS:
            self._beat_at = self._machine.elapsed()
            self._seq += 1
            for record in heartbeat_records(self._heartbeat(member_state, loads)):
                self._stream.put(record)

    def _heartbeat(self, member_state: MemberState, loads: Mapping[JobKey, float]) -> Heartbeat:
        units = tuple(
            UnitReport(unit, epoch, loads.get(unit, 1.0), 0.0, 0.0)
            for unit, epoch in member_state.grants.items()
        )
        return Heartbeat(
            self._sender,
            self._seq,
            day(self._machine.elapsed()),
            member_state.state or "starting",
            0.5,
            0.5,
            units,
        )

    def heard(self) -> dict[JobKey, float]:
        """The load of the units of the others."""
        heard = self._listener.received(self._machine.elapsed()).values()
        return {one.unit: one.load for told in heard for one in told.heartbeat.units}
