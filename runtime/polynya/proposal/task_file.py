"""The task file of a proposal: each setting on a line of its own, with its reason as a comment."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final, TypeAlias

from polynya.proposal.proposal import TriedProposal
from polynya.proposal.settings import DatasetProposal, ProposedEvents, ProposedSetting

#: Where comments begin, if the setting is not longer.
_COMMENT: Final = 48
_WORDS: Final = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})
_Line: TypeAlias = tuple[str, str | None]


def task_text(tried: TriedProposal, schema: str, folder: str | None = None) -> str:
    """The task file; `folder` is that of the landing zone in which the files are.

    By default it has the name of the dataset.
    """
    proposal, name = tried.proposal, tried.family.name
    outcome = _one_line(str(tried.outcome))
    lines: list[_Line] = [
        ("landing:", None),
        (f"  path: {yaml_value(folder or name)}", None),
        (f"  format: {proposal.format.value}", proposal.format.reason),
        *(_line(2, key, setting) for key, setting in proposal.landing.items()),
        ("datasets:", None),
        (f"  - name: {name}", None),
        (f"    path: {yaml_text(tried.family.glob)}", "taken in name order"),
        *_events(proposal.events),
        *_columns(proposal),
    ]
    head = (
        "# yaml-language-server: $schema=../.polynya/schema/task.v1.json\n"
        f"# Proposed from {tried.outcome.records:,} records: look at each line.\n"
        f"# {outcome[0].upper()}{outcome[1:]}.\n"
        "apiVersion: polynya/v1\nkind: storage\n"
        f"name: {name}\nschema: {schema}\n"
    )
    body = (
        f"{text:<{_COMMENT}} # {_one_line(reason)}" if reason else text for text, reason in lines
    )
    return head + "\n".join(body) + "\n"


def _events(events: ProposedEvents) -> Iterator[_Line]:
    if events.key is None or events.sequence is None:
        yield "    mode: append_only", events.appended
    else:
        yield f"    keys: [{yaml_name(str(events.key.value))}]", events.key.reason
        yield f"    sequence_by: [{yaml_name(str(events.sequence.value))}]", events.sequence.reason
    if events.timestamp is not None:
        yield f"    timestamp: {yaml_name(str(events.timestamp.value))}", events.timestamp.reason
    if events.key is None:
        return
    if events.deletes is not None:
        yield _line(4, "apply_as_deletes", events.deletes)
    if events.left_out:
        names = ", ".join(map(yaml_name, events.left_out))
        yield f"    except_columns: [{names}]", "about the change, not the record"
    yield "    history: true", "every version; leave it out to keep the newest only"


def _columns(proposal: DatasetProposal) -> Iterator[_Line]:
    if not proposal.columns:
        return
    yield "    columns:", None
    for name, setting in proposal.columns.items():
        yield f"      {yaml_name(name)}: {yaml_value(setting.value)}", setting.reason


def _line(indent: int, key: str, setting: ProposedSetting) -> _Line:
    return f"{' ' * indent}{key}: {yaml_value(setting.value)}", setting.reason


def yaml_name(name: str) -> str:
    """A name in YAML; anything but a plain word is quoted, and so is `no`."""
    plain = name.isascii() and name.isidentifier() and name.lower() not in _WORDS
    return name if plain else yaml_text(name)


def yaml_value(value: Any) -> str:
    """A value on one line of YAML."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {yaml_value(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, str):
        return yaml_name(value)
    return json.dumps(value)


def yaml_text(text: str) -> str:
    """A text in double quotes; what cannot be printed is escaped."""
    quoted = json.dumps(text, ensure_ascii=False)
    return "".join(c if c.isprintable() else _escaped(ord(c)) for c in quoted)


def _escaped(code: int) -> str:
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _one_line(text: str) -> str:
    """A comment: names of columns may hold anything."""
    return "".join(c if c.isprintable() else "?" for c in text)
