"""The rules of a project: where each is written, and masks that would come too late."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from polynya.model.config.connected import ConnectedCapture
from polynya.model.config.rules import TransformationRule
from polynya.model.config.stream_landing import DirectTask, StreamingLanding
from polynya.model.config.task import StorageTask
from polynya.model.config.task_kinds import Task
from polynya.model.documents.problems import Problem
from polynya.model.documents.yaml import ListNode, Node, node_at, position_of
from polynya.model.error_catalogue.configuration import MASK_AFTER_LANDING, SECRET_IN_FILE
from polynya.model.errors import ConfigError
from polynya.model.names import shown
from polynya.model.project_parts import entry, is_written_out


def placed(
    rules: Iterable[TransformationRule], document: Node, file: str
) -> tuple[TransformationRule, ...]:
    """The rules of a file, each with `file:line:col`."""
    positions = (
        (rule, position_of(document, ("rules", index))) for index, rule in enumerate(rules)
    )
    return tuple(rule.at(f"{file}:{at.line}:{at.column}") for rule, at in positions)


def written_rule_keys(document: Node) -> Iterator[Problem]:
    """Yield keys of hashes that are written out in the rules of a file."""
    rules = node_at(document, ("rules",))
    for index, rule in enumerate(rules.items if isinstance(rules, ListNode) else ()):
        key = entry(entry(entry(rule, "mask"), "hash"), "key")
        if is_written_out(key):
            path = ("rules", index, "mask", "hash", "key")
            yield Problem(path, SECRET_IN_FILE(what="a key", example="key: {env: HASH_KEY}"))


def late_masks(task: StorageTask, tasks: Iterable[Task]) -> Iterator[ConfigError]:
    """Yield masks for values that another task of the project writes before this one reads them.

    `tasks` are all tasks of the project.
    """
    if isinstance(task, DirectTask):
        return
    writers = [
        (one.place, f"landing `{one.name}`", _advice(one))
        for one in tasks
        if isinstance(one, StreamingLanding | ConnectedCapture)
    ]
    writer = next((one for one in writers if one[0] == task.landing.path), None)
    if writer is None and task.landing.format == "stream":
        writer = task.landing.path, f"what landed {shown(task.landing.path)}", _advice(None)
    if writer is None:
        return
    for rule in task.rules:
        named = [one.name for one in task.datasets]
        masked = [name for name in named if rule.when.takes_dataset(task.schema_, name)]
        if rule.mask is not None and (masked or not named):
            dataset = masked[0] if masked else f"of task {task.name}"
            yield MASK_AFTER_LANDING(
                where=rule.place, dataset=shown(dataset), landing=writer[1], fix=writer[2]
            )


def _advice(landing: StreamingLanding | ConnectedCapture | None) -> str:
    if isinstance(landing, ConnectedCapture):
        return "write the mask under `mask` of the capture, and let `when` leave this dataset out"
    return "set `direct: true` on the landing, or let `when` leave this dataset out"
