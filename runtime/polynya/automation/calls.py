"""Calls from outside, by webhooks and the API: each starts at most one run, or none.

A call is taken by a conditional write of the automation's state, together with what tells it from
others: so it is taken once, whichever server was asked, and a repeated message is known as one. The
next look of whichever process looks at automations begins its run, by a conditional write as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from polynya.automation.due import DueMoment
from polynya.automation.state import AutomationState, AutomationStore, HeardCall, run_id
from polynya.model.config.automation import ApiTrigger, Automation, WebhookTrigger
from polynya.model.error_catalogue.automations import (
    AUTOMATION_TAKES_NO_CALL,
    TOO_MANY_CALLS,
)

#: How long the key of a call is known.
KEY_KEPT: Final = timedelta(hours=24)
#: Keys and signatures of an automation that are known at a time; more calls are refused.
MOST_HEARD: Final = 2000


@dataclass(frozen=True, slots=True)
class AutomationCall:
    """What somebody asks of an automation.

    Attributes:
        why: who called, for the log of the run.
        mark: random text, which makes the id of the run that of nobody else.
        key: what tells this call from others, None for one that nothing repeats.
        known_until: how long the key is known.
    """

    why: str
    mark: str
    key: str | None = None
    known_until: datetime | None = None


@dataclass(frozen=True, slots=True)
class TakenCall:
    """The run that a call starts.

    `is_repeated`: the same call was taken before. `has_joined`: the run waited already for another
    call, and starts once for both.
    """

    run: str
    is_repeated: bool = False
    has_joined: bool = False


def webhook_of(settings: Automation, name: str) -> WebhookTrigger | None:
    """The webhook of an automation by its name."""
    found = (one for one in settings.triggers if isinstance(one, WebhookTrigger))
    return next((one for one in found if one.webhook == name), None)


def takes_api_calls(settings: Automation) -> bool:
    """Whether the file of an automation lets the API start it."""
    return any(isinstance(one, ApiTrigger) for one in settings.triggers)


def with_call(
    state: AutomationState, settings: Automation, call: AutomationCall, now: datetime
) -> tuple[AutomationState, TakenCall]:
    """The state with a call, and the run that it starts. Pure.

    Raises:
        ConflictError: POLYNYA-AUT-012, the automation is paused or disabled.
        ConflictError: POLYNYA-AUT-013, so many calls are known that this one could not be told.
    """
    heard = _still_known(state.heard, now)
    if call.key is not None and call.key in heard:
        return state, TakenCall(heard[call.key].run, is_repeated=True)
    if not settings.enabled or state.paused is not None:
        word = "paused" if settings.enabled else "disabled"
        raise AUTOMATION_TAKES_NO_CALL(
            where=settings.name, reason=f"it is {word}", fix="resume or enable it, and call again"
        )
    if call.key is not None and len(heard) >= MOST_HEARD:
        raise TOO_MANY_CALLS(where=settings.name, most=MOST_HEARD)
    waits = (state.call, *state.waiting)
    run = next((one.run for one in waits if one is not None and one.run), "")
    taken = TakenCall(run or f"{run_id(now)}-{call.mark}", has_joined=bool(run))
    if call.key is not None and call.known_until is not None:
        heard[call.key] = HeardCall(run=taken.run, until=call.known_until)
    called = state.call if run else DueMoment(now, call.why, taken.run)
    return state.model_copy(update={"call": called, "heard": heard}), taken


def take_call(
    store: AutomationStore, settings: Automation, call: AutomationCall, now: datetime
) -> TakenCall:
    """Take a call, so that the next look begins its run. Raises as `with_call` does."""
    taken: TakenCall | None = None

    def take(state: AutomationState) -> AutomationState | None:
        nonlocal taken
        after, taken = with_call(state, settings, call, now)
        return None if after == state else after

    store.change(settings.name, take)
    assert taken is not None, "the change was asked for"
    return taken


def _still_known(heard: Mapping[str, HeardCall], now: datetime) -> dict[str, HeardCall]:
    return {key: one for key, one in heard.items() if one.until > now}
