"""The task file of a proposal: each setting on a line of its own, with its reason as a comment."""

from __future__ import annotations

from collections.abc import Iterator

from polynya.proposal.proposal import TriedProposal
from polynya.proposal.settings import DatasetProposal, ProposedEvents
from polynya.proposal.yaml_lines import (
    YamlLine,
    one_line,
    setting_line,
    yaml_lines,
    yaml_name,
    yaml_value,
)


def task_text(tried: TriedProposal, schema: str, folder: str | None = None) -> str:
    """The task file; `folder` is that of the landing zone in which the files are.

    By default it has the name of the dataset.
    """
    proposal, name = tried.proposal, tried.family.name
    outcome = one_line(str(tried.outcome))
    lines: list[YamlLine] = [
        ("landing:", None),
        (f"  path: {yaml_value(folder or name)}", None),
        (f"  format: {proposal.format.value}", proposal.format.reason),
        *(setting_line(2, key, setting) for key, setting in proposal.landing.items()),
        ("datasets:", None),
        (f"  - name: {name}", None),
        (f"    path: {yaml_value(tried.family.glob)}", "taken in name order"),
        *events_lines(proposal.events),
        *_columns(proposal),
    ]
    head = (
        "# yaml-language-server: $schema=../.polynya/schema/task.v1.json\n"
        f"# Proposed from {tried.outcome.records:,} records: look at each line.\n"
        f"# {outcome[0].upper()}{outcome[1:]}.\n"
        "apiVersion: polynya/v1\nkind: storage\n"
        f"name: {name}\nschema: {schema}\n"
    )
    return head + yaml_lines(lines)


def events_lines(events: ProposedEvents) -> Iterator[YamlLine]:
    """How records become rows, as settings of a dataset."""
    if events.key is None:
        yield "    mode: append_only", events.appended
    else:
        yield f"    keys: [{yaml_value(str(events.key.value))}]", events.key.reason
    if events.key is not None and events.sequence is not None:
        yield f"    sequence_by: [{yaml_value(str(events.sequence.value))}]", events.sequence.reason
    if events.timestamp is not None:
        yield f"    timestamp: {yaml_value(str(events.timestamp.value))}", events.timestamp.reason
    if events.key is None:
        return
    if events.deletes is not None:
        yield setting_line(4, "apply_as_deletes", events.deletes)
    if events.left_out:
        names = yaml_value(list(events.left_out))
        yield f"    except_columns: {names}", "about the change, not the record"
    yield "    history: true", "every version; leave it out to keep the newest only"


def _columns(proposal: DatasetProposal) -> Iterator[YamlLine]:
    if not proposal.columns:
        return
    yield "    columns:", None
    for name, setting in proposal.columns.items():
        yield f"      {yaml_name(name)}: {yaml_value(setting.value)}", setting.reason
