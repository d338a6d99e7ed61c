"""The Spot interruptions of a cluster, which outlast the leases of its nodes.

A lease is deleted an hour after its last renewal. So a node that AWS takes back writes an object of
its own. Its name has the moment, so a listing of the cluster counts them and none is read.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from polynya.cluster.coordination.documents import Document, Name, Text
from polynya.cluster.coordination.member_state import NodeIdentity
from polynya.cluster.coordination.store import STORE_ERRORS, DocumentStore, element
from polynya.cluster.spot import INTERRUPTION

log = logging.getLogger(__name__)

INTERRUPTIONS: Final = "interruptions"
#: For so long they are counted; the next node that is interrupted deletes older ones.
KEPT: Final = timedelta(days=30)
_FORM: Final = "%Y%m%dT%H%M%SZ"


class Interruption(Document):
    """`interruptions/<moment>-<node>`: AWS took a node back."""

    node: Name
    machine: Text = ""
    zone: Text = ""
    reason: Text = ""
    at: datetime


@dataclass(frozen=True, slots=True)
class InterruptionCounts:
    """How many nodes were interrupted in the last 24 hours and the last 30 days."""

    day: int = 0
    month: int = 0


def moment_of(path: str) -> datetime | None:
    """When the interruption at a path was; None for another object."""
    folder, _, name = path.partition("/")
    if folder != INTERRUPTIONS:
        return None
    try:
        return datetime.strptime(name.partition("-")[0], _FORM).replace(tzinfo=UTC)
    except ValueError:
        return None


def count_interruptions(moments: Iterable[datetime], now: datetime) -> InterruptionCounts:
    """Those of the last 24 hours and of the last 30 days."""
    ages = [now - one for one in moments]
    return InterruptionCounts(
        sum(age < timedelta(days=1) for age in ages), sum(age < KEPT for age in ages)
    )


class InterruptionLog:
    """Writes the interruption of this node, once. Called with why it drains."""

    def __init__(
        self, document_store: DocumentStore, me: NodeIdentity, now: Callable[[], datetime]
    ) -> None:
        self._document_store, self._me, self._now = document_store, me, now
        self._at: datetime | None = None
        self._done = False

    def __call__(self, leaving: str) -> None:
        """Take note of why the node drains; a store that fails is asked again with the next call.

        Raises nothing that the store raises: the node has two minutes for its work.
        """
        if self._done or not leaving.startswith(INTERRUPTION):
            return
        self._at = self._at or self._now()
        path = f"{INTERRUPTIONS}/{self._at.astimezone(UTC):{_FORM}}-{element(self._me.node)}"
        one = Interruption(
            node=self._me.node,
            machine=self._me.machine,
            zone=self._me.zone,
            reason=leaving,
            at=self._at,
        )
        try:
            self._done = self._document_store.write(path, one, None)
            self._delete_old(self._at)
        except STORE_ERRORS as error:
            log.info("the interruption of %s is not written yet: %s", self._me.node, error)

    def _delete_old(self, now: datetime) -> None:
        for path, info in self._document_store.list(INTERRUPTIONS).items():
            at = moment_of(path)
            if at is not None and now - at > KEPT:
                self._document_store.delete(path, info.version)
