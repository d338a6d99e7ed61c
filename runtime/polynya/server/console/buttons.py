"""The actions that pages offer on a task or a dataset, as far as the person may do them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from fastapi import Request

from polynya.server.console.html import may
from polynya.server.operations.manager import COORDINATION
from polynya.server.operations.verbs import VERBS
from polynya.server.routes.datasets import DatasetDetails
from polynya.server.routes.projects import TaskShown


@dataclass(frozen=True, slots=True)
class Button:
    """An action of the API: the text and the icon of its button, and the parameters it is given."""

    verb: str
    label: str
    icon: str
    parameters: Mapping[str, object] = field(default_factory=dict)
    kind: str = ""


#: Kinds of tasks that have tables of their own.
_WITH_TABLES: Final = frozenset({"storage", "streaming_transform", "transform", "data_mart"})
#: Kinds whose tables are compared with what has landed; the others derive their tables.
_LANDED: Final = frozenset({"storage", "streaming_transform"})


def offered(request: Request, buttons: Iterable[Button]) -> list[Button]:
    """The buttons of actions that the person of a request may do."""
    return [one for one in buttons if may(request, VERBS[one.verb].action)]


def of_task(task: TaskShown, datasets: Iterable[str]) -> Iterator[Button]:
    """What can be done with a task, by its kind; `datasets` are names or globs of all it has."""
    name, named = task.name, list(datasets)
    if task.kind == "registered":
        return
    if task.kind == "landing":
        yield from of_capture(name)
    else:
        yield _run(name, "Run", "play", kind="strong")
    if task.kind in _LANDED:
        yield Button("reload", "Reload", "refresh-cw", {"task": name})
    if task.kind in _WITH_TABLES and named:
        # Without a name it would maintain the whole project.
        yield Button("maintain", "Maintain", "wrench", {"datasets": named})
    if task.kind in _WITH_TABLES:
        yield Button("task-recreate", "Recreate", "rotate-cw", {"task": name})
    yield Button("task-stop", "Stop", "square", {"task": name})
    yield Button("task-start", "Start", "power", {"task": name})
    yield Button("task-resume", "Resume", "play", {"task": name})


def _run(
    task: str, label: str, icon: str, more: Mapping[str, object] | None = None, *, kind: str = ""
) -> Button:
    """A run of a task. Where the server belongs to a cluster, the owners of its tables do it."""
    if os.environ.get(COORDINATION):
        return Button("task-run", label, icon, {"tasks": task, **(more or {})}, kind)
    return Button("run", label, icon, {"tasks": task, "once": "true", **(more or {})}, kind)


def of_capture(task: str, actions: Iterable[str] = ()) -> Iterator[Button]:
    """What can be done with a capture: these actions, or all of them where none is named."""
    chosen = frozenset(actions)
    for one in (
        Button("landing-stop", "Stop the capture", "square", {"task": task}),
        Button("landing-resume", "Resume the capture", "play", {"task": task}),
        Button("landing-reload", "Load tables again", "refresh-cw", {"task": task}),
    ):
        if not chosen or one.verb in chosen:
            yield one


def of_dataset(one: DatasetDetails, kind: str) -> Iterator[Button]:
    """What can be done with a dataset; `kind` is that of its task."""
    named = {"task": one.task, "dataset": one.called}
    suspended = bool(one.status.get("suspended"))
    if suspended:
        yield Button("dataset-resume", "Resume", "play", named, "strong")
    yield _run(one.task, "Run", "play", kind="" if suspended else "strong")
    yield _run(one.task, "Apply now", "layers", {"apply": "always"})
    if kind in _LANDED:
        yield Button("reload", "Reload", "refresh-cw", named)
    yield Button("maintain", "Maintain", "wrench", {"datasets": one.name})
    yield Button("verify", "Verify", "shield-check", {"dataset": one.name})
    yield Button("task-recreate", "Recreate", "rotate-cw", named)


def for_part(one: DatasetDetails, part: str) -> Button | None:
    """The action that helps against a part of the health that is not as it should be."""
    if part == "run":
        named = {"task": one.task, "dataset": one.called}
        return Button("dataset-resume", "Resume", "play", named)
    if part == "apply":
        return _run(one.task, "Apply now", "layers", {"apply": "always"})
    if part == "quarantine":
        return Button(
            "quarantine-replay", "Replay", "refresh-cw", {"all": "true", "dataset": one.name}
        )
    if part == "source":
        return Button("reload", "Reload", "refresh-cw", {"task": one.task, "dataset": one.called})
    if part == "table":
        return Button("maintain", "Maintain", "wrench", {"datasets": one.name})
    return None
