"""Flows as the lines of YAML that stand in the file of a task."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from pydantic import ValidationError

from polynya.model.config.flow import FlowStep
from polynya.model.documents.yaml import (
    ListNode,
    MapNode,
    Node,
    ScalarNode,
    TextPosition,
    read_document,
)
from polynya.model.error_catalogue.server_console import FLOW_NOT_EDITED
from polynya.model.names import shown
from polynya.server.console.forms import plain, yaml_text

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
    `read_document`; ValidationError for a step that is none.
    """
    root, _ = read_document(text, file)
    lines = text.split("\n")
    found = _flow_of(root, dataset)
    if found is None or file.endswith(".json"):
        raise FLOW_NOT_EDITED(where=file, dataset=shown(dataset), reason="its file has no `flow:`")
    position, flow = found
    first, column = position.line - 1, position.column - 1
    where = f"{file}:{position.line}:{position.column}"
    if _BEFORE_KEY.fullmatch(lines[first][:column]) is None:
        raise FLOW_NOT_EDITED(where=where, dataset=shown(dataset), reason="`flow` begins no line")
    end = _end(lines, first, column)
    if any("${" in line for line in lines[first:end]):
        raise FLOW_NOT_EDITED(where=where, dataset=shown(dataset), reason="it has references")
    there = list(_written(lines, flow, end))
    indent = len(there[0][1][0]) - len(there[0][1][0].lstrip(" ")) if there else column + 2
    made = [f"{lines[first][:column]}flow:"]
    for step in steps:
        same = next((one for one in there if one[0] == FlowStep.model_validate(step)), None)
        if same is not None:
            there.remove(same)
        # A step that is as before stays as it was written, with its comments.
        made += same[1] if same is not None else flow_lines([step], indent)
    return "\n".join([*lines[:first], *made, *lines[end:]])


def _flow_of(root: Node, dataset: str) -> tuple[TextPosition, Node] | None:
    """The key `flow` of a dataset, and its value."""
    datasets = root.entries.get("datasets") if isinstance(root, MapNode) else None
    for one in datasets[1].items if datasets and isinstance(datasets[1], ListNode) else ():
        if isinstance(one, MapNode) and "name" in one.entries and "flow" in one.entries:
            name = one.entries["name"][1]
            if isinstance(name, ScalarNode) and name.value == dataset:
                return one.entries["flow"]
    return None


def _written(lines: Sequence[str], flow: Node, end: int) -> Iterator[tuple[FlowStep, list[str]]]:
    """The steps that stand in lines of their own, each with its lines."""
    items = flow.items if isinstance(flow, ListNode) else ()
    starts = [one.position.line - 1 for one in items]
    for item, begin, after in zip(items, starts, [*starts[1:], end], strict=True):
        before = lines[begin][: item.position.column - 1]
        if before.strip() != "-" or after <= begin:
            continue
        try:
            yield FlowStep.model_validate(plain(item)), list(lines[begin:after])
        except ValidationError:
            continue


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
    # Expressions stand in quotes, also where YAML reads them without.
    text = (
        json.dumps(settings, ensure_ascii=False)
        if isinstance(settings, str)
        else yaml_text(settings)
    )
    line = f"- {processor}: {text}"
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
