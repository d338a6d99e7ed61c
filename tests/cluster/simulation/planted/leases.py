"""Bugs in how sessions, clocks and writes under a condition are handled."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

from polynya.cluster.coordination import member as member_module
from polynya.cluster.coordination.documents import Document, NodeLease, NodeState
from polynya.cluster.coordination.leases import LeaseTable, NodeSession
from polynya.cluster.coordination.member import Member
from polynya.cluster.coordination.member_state import CoordinationPace
from polynya.cluster.coordination.store import (
    STORE_ERRORS,
    DocumentStore,
    incarnation_of,
    node_path,
)
from tests.cluster.simulation.drill import Under
from tests.cluster.simulation.parts.machine import MachineClock
from tests.cluster.simulation.parts.store import Change, StoreLine
from tests.cluster.simulation.planted.bug import Bug, Patch


def paced(**times: float) -> Callable[..., Member]:
    """A member with other times."""
    pace = replace(CoordinationPace(), **times)  # type: ignore[arg-type]

    def made(*given: Any, **named: Any) -> Member:
        return Member(*given, **named, pace=pace)

    return made


class WallClock(MachineClock):
    """Takes the time of the day for the time that passed."""

    def peek(self) -> float:
        """What a person can set."""
        return self.machine.wall().timestamp()


class SleepyClock(MachineClock):
    """CLOCK_MONOTONIC, which stands still while the machine is suspended."""

    def peek(self) -> float:
        """Seconds awake."""
        return self.machine.awake()


def believed(self: DocumentStore, path: str, document: Document, version: str | None) -> bool:
    """An answer that never came is taken for a yes."""
    data = document.model_copy(update={"nonce": self.token()}).encoded()
    with suppress(*STORE_ERRORS):
        if version is None:
            return self._store.put_if_absent(f"{self._root}{path}", data)
        return self._store.put_if_unchanged(f"{self._root}{path}", data, version)
    return True


def without_nonce(self: DocumentStore, path: str, document: Document, version: str | None) -> bool:
    """Each write of the same state has the same bytes, hence the same ETag."""
    data = document.model_copy(update={"nonce": "same"}).encoded()
    if version is None:
        return self._store.put_if_absent(f"{self._root}{path}", data)
    return self._store.put_if_unchanged(f"{self._root}{path}", data, version)


def swap_without_condition(self: StoreLine, path: str, data: bytes, version: str) -> bool:
    """A store that takes the condition and does not look at it."""

    def apply(write: Change) -> bool:
        write(data)
        return True

    return self._ask("put_if", path, apply)


def same_incarnation(self: NodeSession) -> None:
    """A process that starts again is taken for the one before."""
    self.incarnation = incarnation_of(self._me.node, "0")
    self.state = None
    self.until = self._sent = float("-inf")


def revived(self: NodeSession, state: NodeState, leaving: str = "") -> None:
    """Who is marked gone renews its lease as if nothing had happened."""
    due = self._clock.monotonic() >= self._sent + self._pace.renew
    found = self._document_store.read(NodeLease, node_path(self.incarnation))
    if found is None or (state == self.state and not due):
        return
    sent = self._clock.monotonic()
    lease = found.document.model_copy(update={"state": state, "leaving": leaving})
    if self._document_store.write(node_path(self.incarnation), lease, found.version):
        self._renewed(state, sent)


LEASES = (
    Bug(
        "an answer that never came is taken for a yes",
        "redpanda connect#4591, iceberg#12818",
        lambda: (Patch(DocumentStore, "write", believed),),
    ),
    Bug(
        "writes without a nonce, and no reading back",
        "aws-sdk-java-v2#6580; the ABA of ETags",
        lambda: (Patch(DocumentStore, "write", without_nonce),),
    ),
    Bug(
        "the store does not enforce conditions, and nobody probes it",
        "STACKIT#1534, rustfs#1610, mountx#19",
        lambda: (
            Patch(StoreLine, "put_if_unchanged", swap_without_condition),
            Patch(member_module, "probe", lambda *_: None),
        ),
    ),
    Bug(
        "leases end by the wall clock",
        "a model: rows doubled in 39 % of histories",
        under=Under(clock=WallClock),
    ),
    Bug(
        "the clock of leases stands still in suspension",
        "Linux: CLOCK_MONOTONIC",
        under=Under(clock=SleepyClock),
    ),
    Bug(
        "a node trusts its lease for ever",
        "zombie coordinators: iceberg#17551, #17637",
        under=Under(member=paced(trust=1e9)),
    ),
    Bug(
        "a lease is dead after two missed seconds",
        "churn storms of KCL 2",
        lambda: (Patch(LeaseTable, "dead", lambda self, one: self.silent(one) >= 2.0),),
    ),
    Bug(
        "a dead process stays a member for ever",
        "KCL#1452",
        lambda: (Patch(LeaseTable, "dead", lambda self, one: False),),
    ),
    Bug(
        "a process that starts again has the name of the one before",
        "-",
        lambda: (Patch(NodeSession, "_be_new", same_incarnation),),
    ),
    Bug(
        "who is marked gone renews its lease",
        "iceberg#13756 coordinator not stopped",
        lambda: (Patch(NodeSession, "keep", revived),),
    ),
)
