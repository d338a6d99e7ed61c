"""Flows as the lines of YAML that stand in the file of a task."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from polynya.model.documents.yaml import ListNode, MapNode, ScalarNode, read_document
from polynya.model.error_catalogue.server_console import FLOW_NOT_EDITED
from polynya.model.names import shown
from polynya.server.console.forms import yaml_text

#: A step with more characters is written with a line for each setting.
_LONGEST: Final = 90
#: What stands before a key that begins a line: spaces, or the sign of an item.
_BEFORE_KEY: Final = re.compile(r" *(- +)*")

Step = Mapping[str, Any]


def flow_lines(steps: Sequence[Step], indent: int) -> list[str]:
    """The items of a flow, each a mapping of a processor to its settings."""
    return [" " * indent + line for step in steps for line in _step_lines(step)]


def with_flow(text: str, file: str, dataset: str, steps: Sequence[Step]) -> str:
    """The text of a task's file with another flow of one dataset; all other lines stay.

    Raises ConfigError POLYNYA-SRV-131 where the flow does not stand in lines of its own, and as
    `read_document`.
    """
    root, _ = read_document(text, file)
    lines = text.split("\n")
    position = None
    datasets = root.entries.get("datasets") if isinstance(root, MapNode) else None
    for one in datasets[1].items if datasets and isinstance(datasets[1], ListNode) else ():
        if isinstance(one, MapNode) and "name" in one.entries and "flow" in one.entries:
            name = one.entries["name"][1]
            if isinstance(name, ScalarNode) and name.value == dataset:
                position = one.entries["flow"][0]
    if position is None or file.endswith(".json"):
        raise FLOW_NOT_EDITED(where=file, dataset=shown(dataset), reason="its file has no `flow:`")
    first, column = position.line - 1, position.column - 1
    where = f"{file}:{position.line}:{position.column}"
    if _BEFORE_KEY.fullmatch(lines[first][:column]) is None:
        raise FLOW_NOT_EDITED(where=where, dataset=shown(dataset), reason="`flow` begins no line")
    end = _end(lines, first, column)
    made = [f"{lines[first][:column]}flow:", *flow_lines(steps, column + 2)]
    return "\n".join([*lines[:first], *made, *lines[end:]])


def new_transform(task: str, reads: Sequence[str], dataset: str, keys: Sequence[str]) -> str:
    """The file of a transform with one table, up to its flow."""
    return "\n".join(
        [
            "apiVersion: polynya/v1",
            "kind: transform",
            f"name: {yaml_text(task)}",
            f"from: {yaml_text(list(reads))}",
            "datasets:",
            f"  - name: {yaml_text(dataset)}",
            f"    keys: {yaml_text(list(keys))}",
            "    flow:",
            "",
        ]
    )


def _end(lines: Sequence[str], first: int, column: int) -> int:
    """The line after the value of a key: blank lines and comments at its end stay outside."""
    end = first + 1
    for number in range(first + 1, len(lines)):
        line = lines[number]
        inner = line.lstrip(" ")
        depth = len(line) - len(inner)
        if not inner.strip() or inner.startswith("#"):
            continue
        if depth < column or (depth == column and not inner.startswith("- ")):
            break
        end = number + 1
    return end


def _step_lines(step: Step) -> Iterator[str]:
    ((processor, settings),) = step.items()
    settings = _short(processor, settings)
    line = f"- {processor}: {yaml_text(settings)}"
    if len(line) <= _LONGEST or not isinstance(settings, Mapping):
        yield line
        return
    yield f"- {processor}:"
    for name, value in settings.items():
        line = f"    {name}: {yaml_text(value)}"
        if len(line) <= _LONGEST or not isinstance(value, Mapping):
            yield line
            continue
        yield f"    {name}:"
        yield from (f"      {yaml_text(str(key))}: {yaml_text(one)}" for key, one in value.items())


def _short(processor: str, settings: Mapping[str, Any]) -> Any:
    """The short form of settings that have one."""
    short = {"filter": "condition", "select": "columns"}.get(processor)
    return settings[short] if short is not None and set(settings) == {short} else settings
