"""Reading `automations/*.yml`: each automation with its zones, and what is wrong with it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from polynya.model.config.automation import (
    Automation,
    OverdueTrigger,
    ReloadAction,
    RunAction,
    ScheduleTrigger,
    TaskTrigger,
    WebhookTrigger,
)
from polynya.model.config.schedule import Cron, Recurrence, ZonedCron, on_clock
from polynya.model.documents.files import DocumentFile, document_files, parse_file, read_file
from polynya.model.documents.problems import Problem, located, suggest
from polynya.model.documents.yaml import ListNode, Node, NodePath
from polynya.model.error_catalogue.automations import (
    AUTOMATION_CYCLE,
    AUTOMATION_TASK_UNKNOWN,
    SCHEDULE_NEVER_COMES,
    SCHEDULE_WITHOUT_ZONE,
    WEBHOOK_SECRET_SHARED,
)
from polynya.model.error_catalogue.configuration import DUPLICATE_NAME, SECRET_IN_FILE
from polynya.model.errors import ConfigError
from polynya.model.loader import LoadedProject
from polynya.model.names import shown
from polynya.model.project_parts import entry, is_written_out

AUTOMATION_FOLDER: Final = "automations"


@dataclass(frozen=True, slots=True)
class LoadedAutomation:
    """An automation; `clocks` are the schedules of its triggers by their index."""

    settings: Automation
    file: str
    clocks: Mapping[int, ZonedCron | Recurrence]


def load_automations(
    project: LoadedProject, environment: Mapping[str, str] | None = None
) -> tuple[list[LoadedAutomation], list[ConfigError]]:
    """Read all automations of a project: those that are right, and what is wrong with the others.

    `environment` holds the variables for `${env:NAME}`, by default the process's own.
    """
    variables = os.environ if environment is None else environment
    errors: list[ConfigError] = []
    loaded: dict[str, LoadedAutomation] = {}
    files: dict[str, DocumentFile] = {}
    secrets: dict[str, str] = {}
    for path in document_files(project.directory / AUTOMATION_FOLDER):
        shown_as = f"{AUTOMATION_FOLDER}/{path.name}"
        file = read_file(
            path, shown_as, variables, errors, _is_read_at_use, bound=project.bindings.variables
        )
        settings = parse_file(file, Automation, "automation", errors) if file else None
        if file is None or settings is None:
            continue
        clocks, problems = _clocks(settings, project.project.time_zone)
        problems += _unknown_tasks(settings, project)
        problems += written_webhook_secrets(file.document)
        problems += _shared_webhooks(settings, secrets)
        if settings.name in loaded:
            message = f"{loaded[settings.name].file} has an automation of this name already"
            problems.append(Problem(("name",), DUPLICATE_NAME(message)))
        errors.extend(located(problems, file.document, file.shown_as))
        if file.sound and not problems:
            loaded[settings.name] = LoadedAutomation(settings, shown_as, clocks)
            files[settings.name] = file
    shares = project.project.cluster is not None
    for cycle in cycles([one.settings for one in loaded.values()], reloads=shares):
        file = files[cycle[0]]
        problem = Problem(("triggers",), AUTOMATION_CYCLE(path=" → ".join((*cycle, cycle[0]))))
        errors.extend(located([problem], file.document, file.shown_as))
        for name in cycle:
            loaded.pop(name, None)
    return list(loaded.values()), errors


def _is_read_at_use(path: NodePath) -> bool:
    """Whether a value is a reference that is read when a webhook is called."""
    return len(path) == 3 and path[0] == "triggers" and path[2] == "secret"


def written_webhook_secrets(document: Node) -> Iterator[Problem]:
    """Yield secrets of webhooks that are written out in a file."""
    triggers = entry(document, "triggers")
    for index, trigger in enumerate(triggers.items if isinstance(triggers, ListNode) else ()):
        if is_written_out(entry(trigger, "secret")):
            error = SECRET_IN_FILE(what="a secret", example='secret: "${env:HOOK_SECRET}"')
            yield Problem(("triggers", index, "secret"), error)


def _shared_webhooks(settings: Automation, secrets: dict[str, str]) -> Iterator[Problem]:
    """Yield webhooks that share a name or a secret with another one; `secrets` are those so far."""
    names: set[str] = set()
    for index, trigger in enumerate(settings.triggers):
        if not isinstance(trigger, WebhookTrigger):
            continue
        if trigger.webhook in names:
            message = "the automation has a webhook of this name already"
            yield Problem(("triggers", index, "webhook"), DUPLICATE_NAME(message))
            continue
        names.add(trigger.webhook)
        name = f"{settings.name}/{trigger.webhook}"
        other = secrets.setdefault(trigger.secret.get_secret_value(), name)
        if other != name:
            error = WEBHOOK_SECRET_SHARED(other=shown(other))
            yield Problem(("triggers", index, "secret"), error)


def _clocks(
    settings: Automation, default: str | None
) -> tuple[dict[int, ZonedCron | Recurrence], list[Problem]]:
    clocks: dict[int, ZonedCron | Recurrence] = {}
    problems: list[Problem] = []
    for index, trigger in enumerate(settings.triggers):
        if not isinstance(trigger, ScheduleTrigger):
            continue
        schedule, zone = trigger.schedule, trigger.time_zone or default
        has_own = isinstance(schedule, Recurrence) and schedule.text.startswith("DTSTART")
        if zone is None and not has_own:
            problems.append(Problem(("triggers", index, "schedule"), SCHEDULE_WITHOUT_ZONE()))
            continue
        assert isinstance(schedule, Cron | Recurrence), "a schedule of a file"
        clock = on_clock(schedule, zone or "UTC")
        if trigger.start is not None and trigger.end is not None:
            first = clock.next_after(trigger.start)
            if first is None or first > trigger.end:
                error = SCHEDULE_NEVER_COMES(schedule=shown(str(schedule)))
                problems.append(Problem(("triggers", index, "schedule"), error))
        clocks[index] = clock
    return clocks, problems


def _unknown_tasks(settings: Automation, project: LoadedProject) -> Iterator[Problem]:
    # A task whose file has an error has reported that one.
    if project.errors:
        return
    names = [task.name for task in project.works]
    places: list[tuple[tuple[str | int, ...], str]] = []
    for index, trigger in enumerate(settings.triggers):
        if isinstance(trigger, TaskTrigger):
            places += [
                (("triggers", index, "after", n), one) for n, one in enumerate(trigger.after)
            ]
        elif isinstance(trigger, OverdueTrigger):
            places.append((("triggers", index, "overdue"), trigger.overdue))
    for index, action in enumerate(settings.actions):
        if isinstance(action, RunAction):
            places += [(("actions", index, "run", n), one) for n, one in enumerate(action.run)]
        elif isinstance(action, ReloadAction):
            places.append((("actions", index, "reload"), action.reload))
    for path, task in places:
        if task not in names:
            error = AUTOMATION_TASK_UNKNOWN(task=shown(task), fix=suggest(task, names))
            yield Problem(path, error)


def _tasks_run_by(automation: Automation, *, reloads: bool) -> Iterator[str]:
    for action in automation.actions:
        if isinstance(action, RunAction):
            yield from action.run
        elif isinstance(action, ReloadAction) and reloads:
            yield action.reload


def awaited_tasks(automations: Iterable[LoadedAutomation]) -> frozenset[str]:
    """The tasks whose ends start automations."""
    found: set[str] = set()
    for one in automations:
        for trigger in one.settings.triggers:
            if isinstance(trigger, TaskTrigger):
                found.update(trigger.after)
            elif isinstance(trigger, OverdueTrigger):
                found.add(trigger.overdue)
    return frozenset(found)


def cycles(automations: Sequence[Automation], *, reloads: bool = False) -> list[tuple[str, ...]]:
    """Automations that start each other without end, one cycle for each group of them.

    One starts another when it runs a task that the other waits for with `after`. In a cluster
    (`reloads`) one that reloads it does, too. The path of each cycle names automations and tasks in
    turn: `(automation, task, automation, task, …)`.
    """
    starts: dict[str, list[tuple[str, str]]] = {one.name: [] for one in automations}
    for one in automations:
        for task in dict.fromkeys(_tasks_run_by(one, reloads=reloads)):
            starts[one.name] += [
                (task, other.name)
                for other in automations
                for trigger in other.triggers
                if isinstance(trigger, TaskTrigger) and task in trigger.after
            ]
    found: list[tuple[str, ...]] = []
    done: set[str] = set()
    for first in list(starts):
        # Depth first with a stack of its own: a chain may be longer than Python's.
        path: list[str] = [first]
        tasks: list[str] = []
        rest = [iter(starts[first])]
        while rest and first not in done:
            step = next(rest[-1], None)
            if step is None:
                rest.pop()
                done.add(path.pop())
                if tasks:
                    tasks.pop()
                continue
            task, name = step
            if name in path:
                at = path.index(name)
                between = [*tasks[at:], task]
                pairs = zip(path[at:], between, strict=True)
                cycle = tuple(part for pair in pairs for part in pair)
                if not any(set(cycle[::2]) & set(other[::2]) for other in found):
                    found.append(cycle)
            elif name not in done:
                path.append(name)
                tasks.append(task)
                rest.append(iter(starts[name]))
    return found
