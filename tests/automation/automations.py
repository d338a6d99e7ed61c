"""Automations for tests, as their files would give them."""

from __future__ import annotations

from typing import Any

from polynya.model.automations import LoadedAutomation
from polynya.model.config.automation import Automation, ScheduleTrigger
from polynya.model.config.schedule import on_clock

VALIDATE = {"validate": True}


def automation(name: str = "nightly", **settings: Any) -> LoadedAutomation:
    """An automation whose schedules are on the clock of Berlin unless they name another one."""
    head = {"apiVersion": "polynya/v1", "kind": "automation", "name": name}
    written = Automation.model_validate({**head, "actions": [VALIDATE], **settings})
    clocks = {
        index: on_clock(trigger.schedule, trigger.time_zone or "Europe/Berlin")
        for index, trigger in enumerate(written.triggers)
        if isinstance(trigger, ScheduleTrigger)
    }
    return LoadedAutomation(written, f"automations/{name}.yml", clocks)
