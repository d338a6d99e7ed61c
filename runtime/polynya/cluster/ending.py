"""How an agent ends: why, what it waits for, and until when."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, auto

from polynya.model.errors import PolynyaError
from polynya.observe.events import EventSink
from polynya.observe.node import AgentDraining, AgentStopped
from polynya.store.clock import Clock


class Ended(Enum):
    """How an agent ended; after RESTART its process has to start again."""

    DRAINED = auto()
    CUT_OFF = auto()
    RESTART = auto()


@dataclass(slots=True)
class _Drain:
    reason: str
    then: Ended
    since: float
    within: float


class Ending:
    """The end of one agent.

    Args:
        node: its name.
        within_seconds: longest time that it may take, unless somebody asks for less.
        clock: of its deadline.
        tell: takes what happens.
        for_good: called when the agent is going to end and not to start again.
    """

    def __init__(
        self,
        node: str,
        within_seconds: float,
        clock: Clock,
        tell: EventSink,
        for_good: Callable[[], None],
    ) -> None:
        self._node, self._within_seconds, self._clock = node, within_seconds, clock
        self._tell, self._for_good = tell, for_good
        self._drain: _Drain | None = None
        #: Why the agent could not go on, None when somebody asked it to end.
        self.failure: PolynyaError | None = None

    @property
    def begun(self) -> bool:
        """Whether the agent starts nothing more."""
        return self._drain is not None

    def begin(self, reason: str, then: Ended, within_seconds: float | None = None) -> None:
        """Begin to end. Of several reasons the first is told, and the nearest deadline counts."""
        if then is Ended.DRAINED:
            self._for_good()
        now, within = self._clock.monotonic(), self._within_seconds
        if within_seconds is not None:
            within = min(within, within_seconds)
        if self._drain is None:
            self._drain = _Drain(reason, then, now, within)
            self._tell(AgentDraining(subject=self._node, reason=reason, within_seconds=within))
            return
        self._drain.within = min(self._drain.within, now - self._drain.since + within)
        if then is Ended.DRAINED:
            # An agent that was told to end does not start again.
            self._drain.then = then

    def fail(self, error: PolynyaError) -> None:
        """Begin to end because the agent cannot go on."""
        self.failure = self.failure or error
        self.begin(str(error), Ended.DRAINED)

    def come(self, at_work: Sequence[str], *, handing_over: bool) -> Ended | None:
        """How the agent has ended, None while it goes on.

        Args:
            at_work: names of the jobs that work.
            handing_over: other nodes still wait for this one to release its units.
        """
        drain, now = self._drain, self._clock.monotonic()
        if drain is None:
            return None
        waits = bool(at_work) or (handing_over and self.failure is None)
        if waits and now - drain.since < drain.within:
            return None
        self._tell(
            AgentStopped(
                subject=self._node,
                reason=drain.reason,
                seconds=round(now - drain.since, 3),
                cut_off=tuple(sorted(at_work)),
            )
        )
        return Ended.CUT_OFF if at_work and drain.then is Ended.DRAINED else drain.then
