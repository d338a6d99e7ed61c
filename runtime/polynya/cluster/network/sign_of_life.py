"""The sign of life of the network agent: one object in each cluster that it serves."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from polynya.cluster.coordination.store import DocumentStore
from polynya.cluster.network.commands import phase_of
from polynya.cluster.network.documents import (
    NETWORK_AGENT,
    AgentReport,
    GroupReport,
    Outage,
    PriceReport,
)
from polynya.cluster.network.link import Link
from polynya.store.clock import Clock
from polynya.store.jobs import GroupFacts

RENEW_SECONDS: Final = 30.0
"""How often it is renewed."""

SILENT_AFTER_SECONDS: Final = 120.0
"""Age by the clock of the reader from which on a network agent counts as silent."""


#: The reason of a failed launch may be long; a text of a document has at most 4096 characters.
_MAX_CHARACTERS: Final = 2000


@dataclass(frozen=True, slots=True)
class AgentIdentity:
    """This process: its name, a token of its own, the version of Polynya."""

    name: str
    token: str
    version: str


class SignOfLife:
    """Renews the object. Raises what the store raises."""

    def __init__(self, document_store: DocumentStore, me: AgentIdentity, clock: Clock) -> None:
        self._document_store, self._me, self._clock = document_store, me, clock
        self._renewed = float("-inf")
        self._reported: tuple[bool, str | None, str] | None = None

    def renew(
        self,
        link: Link,
        group: GroupReport | None,
        *,
        update: str = "",
        prices: PriceReport | None = None,
    ) -> None:
        """Write when it is due, or when something changed.

        `update` is the trouble with the version of this process, for operators; `prices` are None
        where this process has none, and those of before stay.
        """
        due = self._clock.monotonic() - self._renewed >= RENEW_SECONDS
        report_key = (link.connected, group.phase if group is not None else None, update)
        if not due and report_key == self._reported:
            return
        found = self._document_store.read(AgentReport, NETWORK_AGENT)
        before = found.document if found is not None else None
        report = AgentReport(
            agent=self._me.name,
            token=self._me.token,
            version=self._me.version,
            state="connected" if link.connected else "disconnected",
            since=link.since,
            reason=link.reason,
            renewed_at=self._clock.now(),
            update=update,
            outage=_with_unknown(link.outage, before.outage if before is not None else None),
            group=_since_then(group, before.group if before is not None else None),
            prices=prices or (before.prices if before is not None else None),
        )
        if self._document_store.overwrite(NETWORK_AGENT, report, found):
            self._renewed, self._reported = self._clock.monotonic(), report_key


def _since_then(group: GroupReport | None, before: GroupReport | None) -> GroupReport | None:
    """A phase that lasts keeps its beginning, whichever process saw it."""
    if group is None or before is None:
        return group
    group = group.model_copy(update=before.model_extra or {})
    if group.phase != before.phase:
        return group
    return group.model_copy(update={"since": before.since})


def _with_unknown(outage: Outage | None, before: Outage | None) -> Outage | None:
    """An outage with what a later version has said of it; the one before if there was no other."""
    if outage is None or before is None:
        return outage or before
    return outage.model_copy(update=before.model_extra or {})


def why_no_agent(document_store: DocumentStore, now: datetime) -> str | None:
    """Why no network agent can carry out a command, None when one can.

    Raises what the store raises.
    """
    found = document_store.read(AgentReport, NETWORK_AGENT)
    if found is None:
        return "no network agent ever served this cluster"
    return why_disconnected(found.document, now)


def why_disconnected(report: AgentReport, now: datetime) -> str | None:
    """Why a network agent is not connected by its sign of life, None when it is."""
    age = (now - report.renewed_at).total_seconds()
    if age > SILENT_AFTER_SECONDS:
        renewed = f"{report.renewed_at:%Y-%m-%d %H:%M:%S} UTC"
        return f"the network agent {report.agent} last reported at {renewed}"
    if report.state == "disconnected":
        return f"the network agent {report.agent} is disconnected: {report.reason}"
    return None


def seen_group(facts: GroupFacts | None, seen_at: datetime) -> GroupReport | None:
    """The group as the sign of life reports it."""
    if facts is None:
        return None
    phase, reason = phase_of(facts)
    return GroupReport(
        minimum=facts.bounds.minimum,
        maximum=facts.bounds.maximum,
        desired=facts.bounds.desired,
        in_service=facts.in_service,
        starting=facts.starting,
        ending=facts.ending,
        stopped=facts.is_stopped,
        seen_at=seen_at,
        phase=phase,
        reason=reason[:_MAX_CHARACTERS],
        since=seen_at,
    )
