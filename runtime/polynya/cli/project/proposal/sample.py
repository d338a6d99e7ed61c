"""Read a sample of a landed file, and write the task file that it speaks for."""

from __future__ import annotations

import csv
import itertools
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from polynya.cli.project.proposal.propose import Choice, Proposal, propose
from polynya.model.errors import ConfigError

#: Records that are looked at.
MOST: Final = 1000
_FORMATS: Final = {
    ".json": "json", ".jsonl": "json", ".ndjson": "json", ".csv": "csv", ".parquet": "parquet",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Sample:
    """The first records of a file, and its format as a task names it."""

    format: str
    records: list[dict[str, Any]]


def read_sample(file: Path) -> Sample:
    """Read the first records of a file of JSON lines, CSV or Parquet.

    Raises:
        ConfigError: there is no such file, its format is another one, or it cannot be read.
    """
    kind = _FORMATS.get(file.suffix.lower())
    if kind is None:
        raise _bad(file, "its name does not end in .json, .jsonl, .ndjson, .csv or .parquet")
    try:
        records = {"json": _json, "csv": _csv, "parquet": _parquet}[kind](file)
    except OSError as error:
        raise _bad(file, error.strerror or str(error)) from error
    except (ValueError, csv.Error) as error:
        raise _bad(file, str(error)) from error
    if not records or not any(records):
        raise _bad(file, "it holds no records")
    return Sample(kind, records)


def task_text(sample: Sample, name: str, schema: str, pattern: str) -> str:
    """The task file for files like the sample, each proposed setting with its reason."""
    made = propose(sample.records, name)
    merges = made.key is not None and made.sequence is not None
    lines = [
        (f"  - name: {name}", None),
        (f"    path: {json.dumps(pattern)}", "taken in name order"),
        *(_merged(made) if merges else _appended(made)),
        *_columns(made),
    ]
    head = (
        "# yaml-language-server: $schema=../.polynya/schema/task.v1.json\n"
        f"# Proposed from {len(sample.records):,} records: look at each line.\n"
        "apiVersion: polynya/v1\nkind: storage\n"
        f"name: {name}\nschema: {schema}\n"
        f"landing: {{path: {name}, format: {sample.format}}}\ndatasets:\n"
    )
    body = (f"{text:<48} # {reason}" if reason else text for text, reason in lines)
    return head + "\n".join(body) + "\n"


_Line = tuple[str, str | None]


def _merged(made: Proposal) -> list[_Line]:
    assert made.key is not None
    assert made.sequence is not None
    lines = [_listed("keys", made.key), _listed("sequence_by", made.sequence)]
    if made.timestamp is not None:
        lines.append((f"    timestamp: {_name(made.timestamp.value)}", made.timestamp.reason))
    if made.deletes is not None:
        text = f"    apply_as_deletes: {json.dumps(made.deletes.value)}"
        lines.append((text, made.deletes.reason))
    if made.left_out:
        names = ", ".join(map(_name, made.left_out))
        lines.append((f"    except_columns: [{names}]", "about the change, not the record"))
    lines.append(("    history: true", "every version; leave it out to keep the newest only"))
    return lines


def _appended(made: Proposal) -> list[_Line]:
    lacks = "identifies a record" if made.key is None else "orders the events of a record"
    reason = f"nothing in the sample {lacks}; else set keys and sequence_by instead"
    return [("    mode: append_only", reason)]


def _columns(made: Proposal) -> list[_Line]:
    if not made.columns:
        return []
    rows = [(f"      {_name(one)}: {c.value}", c.reason) for one, c in made.columns.items()]
    return [("    columns:", None), *rows]


def _listed(setting: str, choice: Choice) -> _Line:
    return f"    {setting}: [{_name(choice.value)}]", choice.reason


def _name(column: str) -> str:
    """A name in YAML; one that is no plain word stands in quotes, and so does `no`."""
    plain = column.isascii() and column.isidentifier()
    words = {"y", "n", "yes", "no", "on", "off", "true", "false", "null"}
    return column if plain and column.lower() not in words else json.dumps(column)


def _json(file: Path) -> list[dict[str, Any]]:
    with file.open(encoding="utf-8-sig") as lines:
        found = [json.loads(line) for line in itertools.islice(lines, MOST) if line.strip()]
    if not all(isinstance(record, dict) for record in found):
        raise ValueError("a line is not an object")
    return found


def _csv(file: Path) -> list[dict[str, Any]]:
    with file.open(encoding="utf-8-sig", newline="") as lines:
        rows = list(itertools.islice(csv.reader(lines), MOST + 1))
    if not rows or len(set(rows[0])) < len(rows[0]):
        raise ValueError("its first line does not name the columns")
    return [
        {name: value or None for name, value in zip(rows[0], row, strict=False)}
        for row in rows[1:]
        if row
    ]


def _parquet(file: Path) -> list[dict[str, Any]]:
    # Start-up time: pyarrow.
    from polynya.formats.records.int96 import exact_batches

    with file.open("rb") as content:
        batch = next(exact_batches(content, MOST), None)
    return [] if batch is None else batch.to_pylist()


def _bad(file: Path, why: str) -> ConfigError:
    return ConfigError(
        "POLYNYA-CLI-005",
        f"no settings can be proposed from this file: {why}",
        where=str(file),
        state="nothing was written",
        fix="give a file of JSON lines, CSV with a header line, or Parquet, not compressed",
    )
