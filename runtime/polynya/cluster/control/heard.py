"""What the leader heard of the work of all nodes, for people: `heard`, written when it changes.

Nodes tell it on the workload stream, which a person's command would have to listen to for as long
as a heartbeat takes. Advisory, as all of that is: nothing but what people see depends on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final

from pydantic import BaseModel, ConfigDict

from polynya.cluster.coordination.documents import Count, Document, Name, Text
from polynya.cluster.coordination.register import STORE_ERRORS, Register
from polynya.cluster.coordination.standing import NodeSeen, Standing
from polynya.cluster.gossip.encode import shortened
from polynya.cluster.gossip.messages import Picture, Report, UnitHeard
from polynya.cluster.gossip.pace import beat_wait
from polynya.cluster.unit import JobKey
from polynya.store.clock import Clock

HEARD: Final = "heard"

#: So many units are told of; the rest is counted.
MOST_UNITS: Final = 500
#: A change is written so many seconds after the one before, at the soonest.
_EVERY: Final = 10.0
#: A node that was not heard for so many of its heartbeats tells nothing; and so many seconds.
_BEATS: Final = 3.0
_LEAST: Final = 60.0
#: Usual size of a heartbeat, in bytes.
_BEAT_BYTES: Final = 2560


class IllUnit(BaseModel):
    """A unit whose work waits for something, as its node told in `epoch`."""

    model_config = ConfigDict(frozen=True, extra="allow")

    task: Name
    name: Name
    epoch: Count
    state: Text
    reason: Text = ""


class Heard(Document):
    """`heard`: what a process heard while it led.

    Attributes:
        incarnation: the process; another one leads when it says nothing any more.
        at: when it was written.
        stream: why nodes do not hear each other, empty when they do.
        units: those whose work waits; `more` others do, too.
    """

    incarnation: Name
    at: datetime
    stream: Text = ""
    units: tuple[IllUnit, ...] = ()
    more: Count = 0


def ill_units(
    own: Report | None, picture: Picture, nodes: Mapping[str, NodeSeen]
) -> list[UnitHeard]:
    """The units whose work waits on a node that lives, sorted; of two words the higher epoch."""
    told: dict[JobKey, UnitHeard] = {}
    living = {name for name, one in nodes.items() if not one.dead and one.state != "gone"}
    heard = (one.heartbeat for name, one in picture.nodes.items() if name in living)
    for units in (*(one.units for one in heard), own.units if own is not None else ()):
        for one in units:
            if one.unit not in told or told[one.unit].epoch <= one.epoch:
                told[one.unit] = one
    return [told[unit] for unit in sorted(told) if told[unit].is_ill]


class Unheard:
    """Finds nodes that live and tell nothing; times in monotonic seconds."""

    def __init__(self) -> None:
        self._since: dict[str, float] = {}

    def nodes(self, standing: Standing, picture: Picture, now: float) -> list[str]:
        """Their names, each once, sorted."""
        living = {
            name: one.node
            for name, one in standing.nodes.items()
            if not one.dead and one.state in ("ready", "draining") and name != standing.incarnation
        }
        self._since = {name: self._since.get(name, now) for name in living}
        longest = _BEATS * beat_wait(len(living) + 1, 1, _BEAT_BYTES, 0, 1.0).seconds
        longest = max(longest, _LEAST)
        silent = {
            node
            for name, node in living.items()
            if now - self._since[name] > longest and _age(picture, name) > longest
        }
        return sorted(silent)


def _age(picture: Picture, incarnation: str) -> float:
    heard = picture.nodes.get(incarnation)
    return heard.age_seconds if heard is not None else float("inf")


class HeardWriter:
    """Writes it while this node leads. `stream`: whether nodes have one at all."""

    def __init__(self, register: Register, clock: Clock, *, stream: bool) -> None:
        self._register, self._clock, self._stream = register, clock, stream
        self._unheard = Unheard()
        self._tried_at = float("-inf")
        self._said: Heard | None = None

    def __call__(self, standing: Standing, own: Report | None, picture: Picture) -> None:
        """Write what changed, if it is time; a store that does not answer is asked again."""
        now = self._clock.monotonic()
        silent = self._unheard.nodes(standing, picture, now) if self._stream else []
        if not standing.leading or now - self._tried_at < _EVERY:
            return
        units = ill_units(own, picture, standing.nodes)
        heard = Heard(
            incarnation=standing.incarnation,
            at=self._clock.now(),
            stream=_trouble(picture.trouble, silent),
            units=tuple(_document(one) for one in units[:MOST_UNITS]),
            more=max(len(units) - MOST_UNITS, 0),
        )
        if self._said is not None and heard == self._said.model_copy(update={"at": heard.at}):
            return
        self._tried_at = now
        try:
            if self._write(heard):
                self._said = heard
        except STORE_ERRORS:
            # Only what people see waits for it.
            return

    def _write(self, heard: Heard) -> bool:
        found = self._register.read(Heard, HEARD)
        unknown = found.document.model_extra if found is not None else None
        heard = heard.model_copy(update=unknown or {})
        return self._register.write(HEARD, heard, found.version if found is not None else None)


def _trouble(trouble: str | None, silent: Iterable[str]) -> str:
    if trouble is not None:
        return trouble
    names = list(silent)
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"nothing is heard of {', '.join(names[:3])}{more}" if names else ""


def _document(one: UnitHeard) -> IllUnit:
    return IllUnit(
        task=one.unit.task,
        name=one.unit.name,
        epoch=one.epoch,
        state=one.state,
        reason=shortened(one.reason),
    )
