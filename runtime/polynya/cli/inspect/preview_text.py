"""A preview as people read it, on a terminal of 80 columns as on a wide one."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from polynya.cli.inspect.grid import grid, value_text
from polynya.model.config.evolution import policy_in_words
from polynya.observe.events import counted

if TYPE_CHECKING:
    from polynya.engine.preview.seen import DatasetPreview, SeenColumn, SeenMessages

#: Where the type of a column comes from, in words.
_ORIGINS: Final = {
    "declared": "declared in `columns`",
    "table": "the table",
    "schema": "declared by the source",
    "inferred": "inferred from the values",
    "expression": "of its expression",
    "nothing": "only NULL so far",
}
_OPERATIONS: Final = {
    "L": "load", "I": "insert", "U": "upsert", "D": "delete", "T": "truncate",
}  # fmt: skip
_INDENT: Final = "  "


def preview_text(one: DatasetPreview, width: int) -> str:
    """All that a preview says, in lines of at most `width` characters, but for long words."""
    title = one.dataset
    if one.is_rest:
        title += ": records of no table"
    elif one.messages is not None:
        title += ": messages that have not landed"
    lines = [title, *_facts(one, width)]
    if one.columns:
        lines += ["", f"{_INDENT}columns", *_columns(one.columns, width)]
    if one.changes:
        lines += ["", f"{_INDENT}changes of the source, and the policy that decides"]
        for change in one.changes:
            text = f"{change.kind}: {policy_in_words(change.policy)}: {change}"
            lines += _wrapped(text, width, 2 * _INDENT)
    if one.records:
        lines += ["", f"{_INDENT}records, the first {len(one.records)}", *_records(one, width)]
    if one.files and not one.is_rest:
        lines += ["", *_rows(one, width)]
    if one.refused:
        lines += ["", *_quarantine(one, width)]
    return "\n".join(map(_printable, [*lines, ""]))


def _facts(one: DatasetPreview, width: int) -> Iterator[str]:
    table = "; no table yet" if one.is_new else "; has a table"
    facts: dict[str, str] = {"task": f"{one.task}, {one.format}{'' if one.is_rest else table}"}
    if one.messages is not None:
        facts |= dict(_messages(one, one.messages))
    elif not one.files:
        facts["files"] = "nothing new has landed"
    else:
        facts["files"] = _files(one)
        facts["records"] = _counts(one)
        if not one.is_rest:
            facts["keys"] = ", ".join(one.keys) or "none: every record is appended"
        if one.sequence_by:
            facts["order"] = f"by {', '.join(one.sequence_by)}"
    if one.excluded:
        facts["left out"] = ", ".join(one.excluded)
    if one.halted is not None:
        facts["REFUSED"] = f"a run would copy nothing of it: {one.halted}"
    for name, text in facts.items():
        yield from _wrapped(text, width, _INDENT, f"{name:<9}")
    for note in one.notes:
        yield from _wrapped(note, width, _INDENT, f"{'note':<9}")


def _messages(one: DatasetPreview, read: SeenMessages) -> Iterator[tuple[str, str]]:
    more = f"; {counted(read.behind, read.unit[:-1])} behind" if read.behind else ""
    yield "task", f"{one.task}, lands {read.source}, content {read.content}"
    yield "messages", f"{read.count:,} read of {', '.join(read.streams)}{more}"
    if one.files:
        yield "records", _counts(one)


def _files(one: DatasetPreview) -> str:
    kind = "a full load" if one.load else "changes"
    more = one.files_waiting - len(one.files)
    named = ", ".join(one.files[:2])
    if len(one.files) > 2:
        named += f" and {len(one.files) - 2:,} more"
    return f"{named} ({kind})" + (f"; {more:,} more are waiting" if more > 0 else "")


def _counts(one: DatasetPreview) -> str:
    rejected = sum((one.quarantined or {}).values())
    filtered = one.filtered or {}
    text = f"{one.looked_at:,} read"
    if one.is_cut:
        text = f"the first {one.looked_at:,} read; later ones may change types"
    if rejected:
        text += f"; {rejected:,} to quarantine"
    left_out = [f"{count:,} {reason.replace('_', ' ')}" for reason, count in filtered.items()]
    return text + (f"; left out: {', '.join(left_out)}" if left_out else "")


def _columns(columns: Sequence[SeenColumn], width: int) -> Iterator[str]:
    rows = []
    for one in columns:
        origin = _ORIGINS[one.origin]
        if one.was is not None:
            origin += f", was {one.was}"
        rows.append([one.name, one.type, origin + (", key" if one.is_key else "")])
    yield from grid(("name", "type", "from"), rows, width, 2 * _INDENT)


def _records(one: DatasetPreview, width: int) -> Iterator[str]:
    order = list(one.records[0].sequence)
    keys = [name for name in one.keys if name not in order]
    rows = [
        [
            record.file.rpartition("/")[2],
            str(record.number),
            _OPERATIONS.get(record.operation, record.operation),
            *(value_text(record.sequence[name]) for name in order),
            *(value_text(record.key[name]) for name in keys),
        ]
        for record in one.records
    ]
    yield from grid(("file", "record", "operation", *order, *keys), rows, width, 2 * _INDENT)


def _rows(one: DatasetPreview, width: int) -> Iterator[str]:
    noun = "row" if one.row_count == 1 else "rows"
    shown = "" if len(one.rows) == one.row_count else f", the first {len(one.rows)}"
    alone = "" if one.is_new else ", by these records alone"
    if one.messages is None:
        yield f"{_INDENT}{one.row_count:,} {noun} in the live view{alone}{shown}"
    else:
        yield f"{_INDENT}{_plural(one.row_count, 'record')} of these messages{shown}"
    if not one.rows:
        return
    names = list(one.rows[0].values)
    rows = [[_cell(row.values, row.stored, name) for name in names] for row in one.rows]
    yield from grid(names, rows, width, 2 * _INDENT)


def _plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _cell(values: Mapping[str, object], stored: Sequence[str], name: str) -> str:
    return "(as stored)" if name in stored else value_text(values[name])


def _quarantine(one: DatasetPreview, width: int) -> Iterator[str]:
    counts = one.quarantined or {}
    total = sum(counts.values())
    said = ", ".join(f"{count:,} {rule}" for rule, count in counts.items())
    shown = "" if len(one.refused) == total else f"; the first {len(one.refused)}"
    yield f"{_INDENT}to quarantine: {said}{shown}"
    for record in one.refused:
        place = "the whole file" if record.number is None else f"record {record.number}"
        text = f"{record.file.rpartition('/')[2]}, {place}: {record.error}"
        yield from _wrapped(text, width, 2 * _INDENT)


def _wrapped(text: str, width: int, indent: str, head: str = "") -> list[str]:
    return textwrap.wrap(
        text,
        width,
        initial_indent=indent + head,
        subsequent_indent=indent + " " * (len(head) or 2),
        break_long_words=False,
        break_on_hyphens=False,
    )


def _printable(line: str) -> str:
    """A line without what would steer a terminal: names and values come from files."""
    return "".join(one if one.isprintable() else "�" for one in line)
