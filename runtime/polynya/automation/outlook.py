"""What is to come of an automation: whether it waits, and its next moments. Pure."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from datetime import datetime
from itertools import islice
from typing import Literal, TypeAlias

from polynya.automation.state import AutomationState
from polynya.model.automations import LoadedAutomation
from polynya.model.config.automation import ScheduleTrigger
from polynya.model.config.schedule import Recurrence, ZonedCron

#: `disabled` by its file, `paused` by an operator.
AutomationWord: TypeAlias = Literal["waiting", "running", "paused", "disabled"]


def word_of(automation: LoadedAutomation, state: AutomationState) -> AutomationWord:
    """What an automation does now."""
    if state.running is not None:
        return "running"
    if not automation.settings.enabled:
        return "disabled"
    return "waiting" if state.paused is None else "paused"


def next_moments(
    automation: LoadedAutomation, state: AutomationState, now: datetime, most: int = 1
) -> list[datetime]:
    """The next moments of its schedules, in UTC; none while it is paused or disabled."""
    if state.paused is not None or not automation.settings.enabled:
        return []
    coming = [
        _moments(trigger, automation.clocks[index], now)
        for index, trigger in enumerate(automation.settings.triggers)
        if isinstance(trigger, ScheduleTrigger)
    ]
    found: list[datetime] = []
    # Two schedules may name the same moment, which is one run.
    for moment in islice(heapq.merge(*coming), most * max(1, len(coming))):
        if moment not in found[-1:] and len(found) < most:
            found.append(moment)
    return found


def _moments(
    trigger: ScheduleTrigger, clock: ZonedCron | Recurrence, now: datetime
) -> Iterator[datetime]:
    start = now if trigger.start is None else max(now, trigger.start)
    moment = clock.next_after(start)
    while moment is not None and (trigger.end is None or moment <= trigger.end):
        yield moment
        moment = clock.next_after(moment)
