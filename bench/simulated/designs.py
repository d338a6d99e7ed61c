"""Four answers to a Spot shortage, as controllers of simulated groups."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Protocol

from bench.simulated.group import Group
from polynya_constructs.functions.spot_fallback.decision import QUIET, Facts, Intention, Mix, decide

ALL_SPOT = Mix(base=0, percentage=0)
_EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Minute:
    """What a controller hears at the end of a minute.

    Attributes:
        number: of the minute.
        desired: nodes that the scaling policies ask for.
        event: whether the event of a failed launch arrived.
    """

    number: int
    desired: int
    event: bool


class Design(Protocol):
    """A controller; `groups` are made once, `act` runs at the end of every minute."""

    groups: list[Group]

    def act(self, heard: Minute) -> None:
        """Look at the groups and change what they are told."""


class DoNothing:
    """A Spot group as AWS runs it."""

    name = "do nothing"

    def __init__(self) -> None:
        self.groups = [Group(0, ALL_SPOT)]

    def act(self, heard: Minute) -> None:
        """Nobody acts."""
        self.groups[0].desired = heard.desired


class FlipPercentage:
    """An event sets the On-Demand percentage to 100; an hour after the last one it is 0 again."""

    name = "flip the percentage"
    calm_minutes = 60

    def __init__(self) -> None:
        self.groups = [Group(0, ALL_SPOT)]
        self.last: int | None = None

    def act(self, heard: Minute) -> None:
        """Hear the event, or go back after the calm."""
        group = self.groups[0]
        group.desired = heard.desired
        if heard.event:
            self.last = heard.number
            group.mix = Mix(base=0, percentage=100)
        elif self.last is not None and heard.number - self.last >= self.calm_minutes:
            self.last = None
            group.mix = ALL_SPOT


class TwoGroups:
    """A second, On-Demand group takes what the Spot group lacks; alarms step it up and down."""

    name = "two groups"
    minutes_to_add = 2
    minutes_to_remove = int(QUIET.total_seconds() // 60)  # as patient as the fallback

    def __init__(self) -> None:
        self.groups = [Group(0, ALL_SPOT), Group(0, Mix(base=0, percentage=100))]
        self.lacking = self.spare = 0

    def act(self, heard: Minute) -> None:
        """Evaluate the metric math desired - Spot in service - fallback's desired."""
        spot, fallback = self.groups
        spot.desired = heard.desired
        missing = heard.desired - spot.serving(heard.number) - fallback.desired
        self.lacking = self.lacking + 1 if missing > 0 else 0
        self.spare = self.spare + 1 if missing < 0 else 0
        if self.lacking >= self.minutes_to_add:
            fallback.desired += missing
            self.lacking = 0
        elif self.spare >= self.minutes_to_remove:
            fallback.desired -= 1
            self.spare = 0


class RaiseBase:
    """What Polynya deploys: the very function of the Lambda, every minute."""

    name = "raise the base"

    def __init__(self) -> None:
        self.groups = [Group(0, ALL_SPOT)]
        self.intention: Intention | None = None

    def act(self, heard: Minute) -> None:
        """Read the group, decide, write the base."""
        group = self.groups[0]
        group.desired = heard.desired
        failed = group.failures[-1] if group.failures else None
        facts = Facts(
            now=_EPOCH + timedelta(minutes=heard.number),
            desired=heard.desired,
            mix=group.mix,
            configured_base=0,
            spot_alive=group.alive(spot=True),
            last_shortage=None if failed is None else _EPOCH + timedelta(minutes=failed),
            intention=self.intention,
        )
        self.intention = decide(facts).intention
        group.mix = Mix(self.intention.base, group.mix.percentage)


DESIGNS = (DoNothing, FlipPercentage, TwoGroups, RaiseBase)
