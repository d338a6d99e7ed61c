"""This process as others see it: its lease, which it creates, renews and in the end marks gone."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

from polynya.cluster.coordination.documents import NodeLease, NodeState
from polynya.cluster.coordination.paths import incarnation_of, node_of, node_path
from polynya.cluster.coordination.register import Found, Register
from polynya.cluster.coordination.standing import Me, Pace
from polynya.model.errors import ConflictError, OperationError
from polynya.store.clock import Clock

#: An earlier process that still renews its lease gets between a read and a write at times.
_ATTEMPTS: Final = 3


class Session:
    """The lease of this process.

    Attributes:
        incarnation: this process; another one when the lease was lost and a new one is needed.
        state: what the lease says, None while there is none.
        until: monotonic seconds until which this node trusts its lease.
        lapses: how often the lease was not trusted for a while and then renewed.
        before: earlier incarnations of this node, which this one marked gone.
        attempts: incarnations of this process. The lease of one that got no answer may come late.
    """

    def __init__(self, register: Register, me: Me, clock: Clock, pace: Pace) -> None:
        self._register, self._me, self._clock, self._pace = register, me, clock, pace
        self.before: set[str] = set()
        self.attempts: set[str] = set()
        self.lapses = 0
        self._leaving = False
        self.incarnation = ""
        self.state: NodeState | None = None
        self.until = self._sent = -math.inf
        self._be_new()

    @property
    def trusted(self) -> bool:
        """Whether no other node can take this one for dead yet."""
        return self._clock.monotonic() < self.until

    def begin(self, listed: Iterable[str]) -> None:
        """Mark earlier incarnations of this node gone, then create the lease.

        The caller holds the lock of the work folder, so that an earlier process is no more.
        Raises what the store raises; then the next attempt is another incarnation.
        """
        for one in listed:
            if node_of(one) == self._me.node and one != self.incarnation:
                self.mark_gone(one)
        lease = NodeLease(
            node=self._me.node,
            incarnation=self.incarnation,
            state="ready",
            on_demand=self._me.on_demand,
            capacity=self._me.capacity,
            since=self._clock.now(),
            version=self._me.version,
            renewed_at=self._clock.now(),
        )
        attempt, sent = self.incarnation, self._clock.monotonic()
        self.attempts.add(attempt)
        self._be_new()
        if self._register.write(node_path(attempt), lease, None):
            self.incarnation = attempt
            self._renewed("ready", sent)

    def keep(self, state: NodeState) -> None:
        """Renew the lease when that is due or it has to say something else.

        Raises:
            ConflictError: somebody else marked it gone (POLYNYA-AGT-011).
            DependencyError: what the store raises.
        """
        due = self._clock.monotonic() >= self._sent + self._pace.renew
        if state == self.state and not due:
            return
        found = self._read()
        if found is None:
            # Deleted, or damaged: nobody can tell what it said, so this is another process now.
            self._be_new()
            return
        lease = found.document
        if lease.state == "gone":
            if not self._leaving:
                raise _replaced(self.incarnation)
            # Written by us, although the answer was lost.
            self.state = "gone"
            return
        now = self._clock.now()
        since = lease.since if lease.state == state else now
        update = {"state": state, "since": since, "renewed_at": now}
        renewed = lease.model_copy(update=update)
        self._leaving = self._leaving or state == "gone"
        sent = self._clock.monotonic()
        if self._register.write(node_path(self.incarnation), renewed, found.version):
            self.lapses += sent >= self.until
            self._renewed(state, sent)

    def mark_gone(self, other: str) -> None:
        """Let nobody wait for a process that is no more. Raises what the store raises."""
        for _ in range(_ATTEMPTS):
            found = self._register.read(NodeLease, node_path(other))
            if found is None or found.document.state == "gone":
                break
            update = {"state": "gone", "since": self._clock.now()}
            gone = found.document.model_copy(update=update)
            if self._register.write(node_path(other), gone, found.version):
                break
        else:
            # It is waited for as any other process is: until its lease ends.
            return
        self.before.add(other)

    def _read(self) -> Found[NodeLease] | None:
        try:
            return self._register.read(NodeLease, node_path(self.incarnation))
        except OperationError:
            return None

    def _renewed(self, state: NodeState, sent: float) -> None:
        self.state, self._sent = state, sent
        self.until = sent + self._pace.trust * self._pace.ttl

    def _be_new(self) -> None:
        self.incarnation = incarnation_of(self._me.node, self._register.token())
        self.state = None
        self.until = self._sent = -math.inf


def _replaced(incarnation: str) -> ConflictError:
    return ConflictError(
        "POLYNYA-AGT-011",
        "another process with the id of this node took its place in the cluster",
        where=incarnation,
        state="this process works no more; what it had not committed, the other repeats",
        fix="give each node an id of its own with `--node-id`; the process that began last goes on",
    )
