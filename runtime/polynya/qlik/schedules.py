"""Schedules of tasks: those of a full load become its own, the others automations that are off."""

from __future__ import annotations

from typing import Any

from polynya.model.config.schedule import parse_recurrence, time_zone
from polynya.qlik.documents import QlikValue
from polynya.qlik.project import QlikProject, QlikTask

#: What a task becomes that Polynya runs once, when an automation says so.
_RUN_ONCE = frozenset({"storage", "transform", "data_mart"})


def own_schedule(task: QlikTask) -> str | None:
    """The schedule of a capture that repeats its full load; None: the export has none for it."""
    found = [trigger for item in _timed(task) for trigger in _triggers(item)]
    if len(found) != 1:
        return None
    for item in _timed(task):
        _use(item)
    zone, rule = found[0]["time_zone"], found[0]["schedule"]
    if zone in {"UTC", "Etc/UTC"}:
        return str(rule)
    return f"DTSTART;TZID={zone}:20260101T000000 RRULE:{rule}"


def add_automations(project: QlikProject) -> None:
    """Give each task with moments an automation that runs it once at each of them.

    It is off: `polynya run` works on all tasks as soon as there is something to do, and two
    processes must not work on one task.
    """
    made = project.made
    for task in project.tasks:
        content = made.tasks.get(task.made, ({}, ()))[0]
        if content.get("kind") not in _RUN_ONCE:
            continue
        items = [item for item in _timed(task) if _triggers(item)]
        if not items:
            continue
        triggers = [trigger for item in items for trigger in _triggers(item)]
        for item in items:
            _use(item)
        automation: dict[str, Any] = {
            "apiVersion": "polynya/v1", "kind": "automation", "name": task.made,
            "enabled": False, "triggers": triggers, "actions": [{"run": [task.made]}],
        }  # fmt: skip
        todo = "set `enabled: true`, and leave the task out of other runs: `polynya run TASKS`"
        made.automations[task.made] = (automation, (f"From {items[0].where}", todo))


def _timed(task: QlikTask) -> list[QlikValue]:
    found = task.document("schedule.yaml").items("scheduling")
    return [
        one for one in found
        if (kind := one.at("schedulingType")) is not None and kind.content == "TIME_BASED"
    ]  # fmt: skip


def _triggers(item: QlikValue) -> list[dict[str, str]]:
    """The rules of a schedule with their zone; none if one of them is not understood."""
    zone = item.at("timeBasedScheduling", "timezone")
    name = zone.content if zone is not None else None
    found = []
    try:
        time_zone(str(name))
        for rule in item.items("timeBasedScheduling", "schedule"):
            text = str(rule.content).removeprefix("RRULE:")
            parse_recurrence(text)
            found.append({"schedule": text, "time_zone": str(name)})
    except ValueError:
        return []
    return found


def _use(item: QlikValue) -> None:
    for path in (("schedulingType",), ("timeBasedScheduling",)):
        if (value := item.at(*path)) is not None:
            for leaf in value.leaves():
                known = {"schedulingType", "timezone", "schedule"} & set(map(str, leaf.path))
                leaf.used = leaf.used or bool(known)
