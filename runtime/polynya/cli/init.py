"""`polynya init`: a project that runs as it is, or a task proposed from a sample file."""

from __future__ import annotations

import csv
import itertools
import json
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Annotated, Any, Final

from cyclopts import Parameter

from polynya.cli.context import Context
from polynya.cli.exit_codes import ExitCode
from polynya.model.error_catalogue.configuration import (
    FILES_IN_THE_WAY,
    NO_SETTINGS_FROM_FILE,
    WRONG_USAGE,
)
from polynya.model.errors import ConfigError
from polynya.model.json_schema import SCHEMA_FILES, schema_text
from polynya.model.loader import PROJECT_FILES
from polynya.model.names import check_name, column_problem

SCHEMA_FOLDER: Final = ".polynya/schema"
ESSENTIAL: Final = ("polynya.yml", "tasks", "landing")
"""Files and folders of the project itself; what is in the way there is never kept silently."""

_PROJECT: Final = """\
# yaml-language-server: $schema=.polynya/schema/project.v1.json
apiVersion: polynya/v1
kind: project
name: {name}
targets:
  local: {{landing: ./landing, warehouse: ./warehouse}}
"""

_TASK: Final = """\
# yaml-language-server: $schema=../.polynya/schema/task.v1.json
apiVersion: polynya/v1
kind: storage
name: users
schema: shop                     # views shop.users, shop.users__history, shop.users__changes
landing: {path: users, format: json}
datasets:
  - name: users
    path: "*.json"               # taken in name order
    keys: [userId]
    sequence_by: [sequenceNum]
    timestamp: eventTime
    apply_as_deletes: "operation = 'DELETE'"
    except_columns: [operation, sequenceNum, eventTime]
    history: true
"""

_TESTS: Final = """\
# yaml-language-server: $schema=../.polynya/schema/tests.v1.json
apiVersion: polynya/v1
kind: tests
tests:
  - name: an update that arrives late goes into history
    task: users
    given:
      - events:
          - {userId: 1, name: Ana, city: Leon, operation: INSERT, sequenceNum: 1, eventTime: "2026-01-01T00:00:01Z"}
          - {userId: 1, name: Ana, city: Tepic, operation: UPDATE, sequenceNum: 3, eventTime: "2026-01-01T00:00:03Z"}
      - events:
          - {userId: 1, name: Ana, city: Puebla, operation: UPDATE, sequenceNum: 2, eventTime: "2026-01-01T00:00:02Z"}
    expect:
      current:
        - {userId: 1, city: Tepic}
      history:
        - {city: Leon, hdr__from_timestamp: "2026-01-01T00:00:01Z", hdr__to_timestamp: "2026-01-01T00:00:02Z"}
        - {city: Puebla, hdr__from_timestamp: "2026-01-01T00:00:02Z", hdr__to_timestamp: "2026-01-01T00:00:03Z"}
        - {city: Tepic, hdr__from_timestamp: "2026-01-01T00:00:03Z", hdr__to_timestamp: null}

  - name: a record without a key goes to quarantine
    task: users
    given:
      - events:
          - {userId: null, name: Nobody, operation: INSERT, sequenceNum: 1}
    expect:
      current: []
      quarantined:
        - {rule: null_key, file: users/0001.json, offset: 0}
"""  # noqa: E501 - a row is a line

_EVENTS: Final = (
    (124, "Raul", "Oaxaca", "INSERT", 1, "2026-01-01T00:00:01Z"),
    (123, "Isabel", "Monterrey", "INSERT", 1, "2026-01-01T00:00:01Z"),
    (125, "Mercedes", "Tijuana", "INSERT", 2, "2026-01-01T00:00:02Z"),
    (126, "Lily", "Cancun", "INSERT", 2, "2026-01-01T00:00:02Z"),
    (123, None, None, "DELETE", 6, "2026-01-01T00:00:06Z"),
    (125, "Mercedes", "Guadalajara", "UPDATE", 6, "2026-01-01T00:00:06Z"),
    (125, "Mercedes", "Mexicali", "UPDATE", 5, "2026-01-01T00:00:05Z"),
    (123, "Isabel", "Chihuahua", "UPDATE", 5, "2026-01-01T00:00:05Z"),
)
_COLUMNS: Final = ("userId", "name", "city", "operation", "sequenceNum", "eventTime")

_GITIGNORE: Final = """\
# Tables, and what has landed: data, not configuration.
warehouse/
landing/*/*
!landing/users/0001.json
# What Polynya keeps for itself; the schemas for editors are shared.
.polynya/*
!.polynya/schema/
# Secrets and logs.
.env
*.log
"""


def project_files(name: str, *, example: bool = True) -> dict[str, str]:
    """Return the files of a new project by their path, in the order in which people read them.

    Without `example` it has no task, no test and no data.
    """
    editor = {
        "yaml.schemas": {
            f"{SCHEMA_FOLDER}/project.v1.json": ["polynya.yml", "polynya.yaml"],
            f"{SCHEMA_FOLDER}/task.v1.json": ["tasks/*.yml", "tasks/*.yaml"],
            f"{SCHEMA_FOLDER}/tests.v1.json": ["tests/*.yml", "tests/*.yaml"],
            f"{SCHEMA_FOLDER}/connection.v1.json": ["connections/*.yml", "connections/*.yaml"],
        },
        "json.schemas": [
            {"fileMatch": ["polynya.json"], "url": f"./{SCHEMA_FOLDER}/project.v1.json"},
            {"fileMatch": ["tasks/*.json"], "url": f"./{SCHEMA_FOLDER}/task.v1.json"},
            {"fileMatch": ["tests/*.json"], "url": f"./{SCHEMA_FOLDER}/tests.v1.json"},
            {
                "fileMatch": ["connections/*.json"],
                "url": f"./{SCHEMA_FOLDER}/connection.v1.json",
            },
        ],
    }
    shown = {
        "tasks/users.yml": _TASK,
        "tests/users.yml": _TESTS,
        "landing/users/0001.json": _events(),
    }
    return {
        "polynya.yml": _PROJECT.format(name=name),
        **(shown if example else {}),
        ".gitignore": _GITIGNORE,
        ".vscode/settings.json": json.dumps(editor, indent=2) + "\n",
        ".vscode/extensions.json": '{"recommendations": ["redhat.vscode-yaml"]}\n',
        **{f"{SCHEMA_FOLDER}/{file}": schema_text(file) for file in SCHEMA_FILES},
    }


def _events() -> str:
    rows = (dict(zip(_COLUMNS, event, strict=True)) for event in _EVENTS)
    return "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)


Record = Mapping[str, Any]

_OPERATION: Final = frozenset({"op", "operation", "_op", "op_type", "change_type", "action"})
_DELETES: Final = frozenset({"d", "delete", "deleted", "remove"})
_OPERATIONS: Final = _DELETES | frozenset(
    {"i", "u", "c", "r", "insert", "update", "create", "upsert", "read", "inserted", "updated"}
)
#: Parts of names, the best first.
_SEQUENCE: Final = ("sequence", "seq", "lsn", "scn", "version", "offset", "updated", "modified")
_TIME: Final = ("event", "updated", "modified", "changed", "timestamp", "created", "time", "at")
_MONEY: Final = frozenset({"price", "amount", "total", "cost", "fee", "balance", "tax", "discount"})
_ISO: Final = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|[+-]\d\d:?\d\d)?")
_WHOLE: Final = re.compile(r"-?\d{1,18}")


@dataclass(frozen=True, slots=True)
class ProposedSetting:
    """Columns or a text for a setting, and why."""

    value: str
    reason: str


@dataclass(frozen=True, slots=True)
class Proposal:
    """Settings of a dataset. None is a setting that nothing in the sample speaks for.

    `columns` are types by column, to be declared because inference would take another one.
    """

    key: ProposedSetting | None
    sequence: ProposedSetting | None
    timestamp: ProposedSetting | None
    deletes: ProposedSetting | None
    left_out: tuple[str, ...]
    columns: Mapping[str, ProposedSetting]


def propose(records: Sequence[Record], name: str) -> Proposal:
    """The settings for records of a dataset that is called `name`."""
    names = dict.fromkeys(column for record in records for column in record)
    columns = [column for column in names if column_problem(column) is None]
    values = {column: [record.get(column) for record in records] for column in columns}
    operation, deletes = _operation(values)
    key = _key(values, name, len(records))
    others = {c: v for c, v in values.items() if c != operation and (not key or c != key.value)}
    times = [column for column, column_values in others.items() if _all(column_values, _is_time)]
    sequence = _sequence(others, times)
    timestamp = _timestamp(times)
    types = {column: _zone(values[column]) for column in times}
    types |= {c: _MONEY_TYPE for c, v in others.items() if _is_money(c) and _all(v, _is_number)}
    used = {choice.value for choice in (sequence, timestamp) if choice is not None}
    shown = {c: t for c, t in types.items() if t is not None and (t is not _NO_ZONE or c in used)}
    unseen = [operation, sequence.value if sequence and sequence.value not in times else None]
    return Proposal(key, sequence, timestamp, deletes, tuple(c for c in unseen if c), shown)


_MONEY_TYPE: Final = ProposedSetting(
    '"decimal(18,4)"', "sounds like money; whole numbers alone would make it bigint"
)
_ZONED: Final = ProposedSetting("timestamp", "ISO 8601 with a zone in each record")
_NO_ZONE: Final = ProposedSetting("timestamp", "ISO 8601 without a zone: taken as UTC")


def _operation(values: Mapping[str, list[Any]]) -> tuple[str | None, ProposedSetting | None]:
    for column, column_values in values.items():
        present = [value for value in column_values if value is not None]
        if column.lower() not in _OPERATION or not all(isinstance(v, str) for v in present):
            continue
        spelt = set(present)
        if spelt and {value.lower() for value in spelt} <= _OPERATIONS:
            deletes = sorted(value for value in spelt if value.lower() in _DELETES)
            if not deletes:
                short = all(len(value) == 1 for value in spelt)
                return column, ProposedSetting(
                    f"{column} = '{'D' if short else 'DELETE'}'",
                    "no delete is in the sample: check",
                )
            texts = ", ".join(f"'{value}'" for value in deletes)
            test = f"= {texts}" if len(deletes) == 1 else f"IN ({texts})"
            seen = sum(value in deletes for value in column_values)
            return column, ProposedSetting(f"{column} {test}", f"{seen} in the sample")
    return None, None


def _key(values: Mapping[str, list[Any]], name: str, count: int) -> ProposedSetting | None:
    singular = name.lower().removesuffix("s")
    named = {"id", f"{singular}id", f"{name.lower()}id", "key", "uuid"}
    whole = [c for c, v in values.items() if _all(v, _is_scalar) and len(v) == count]
    for column in whole:
        if column.lower().replace("_", "") in {candidate.replace("_", "") for candidate in named}:
            return ProposedSetting(column, f"by its name; never NULL in {count:,} records")
    for column in whole:
        if column.lower().endswith("id"):
            return ProposedSetting(column, f"its name ends in id; never NULL in {count:,} records")
    for column in whole:
        if count > 1 and len({str(value) for value in values[column]}) == count:
            return ProposedSetting(column, f"different in each of {count:,} records")
    return None


def _sequence(values: Mapping[str, list[Any]], times: list[str]) -> ProposedSetting | None:
    ordered = [c for c, v in values.items() if c in times or _all(v, _is_whole)]
    for part in _SEQUENCE:
        for column in ordered:
            if part in _words(column):
                return ProposedSetting(
                    column, "by its name; it orders the events of a record: check"
                )
    for column in times:
        return ProposedSetting(
            column, "the only kind of order in the sample is a time: check for ties"
        )
    return None


def _timestamp(times: list[str]) -> ProposedSetting | None:
    ranked = sorted(
        times, key=lambda c: min((n for n, p in enumerate(_TIME) if p in _words(c)), default=99)
    )
    return ProposedSetting(ranked[0], "a time in each record") if ranked else None


def _words(column: str) -> list[str]:
    return re.findall(r"[a-z]+", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", column).lower())


def _is_money(column: str) -> bool:
    return not _MONEY.isdisjoint(_words(column))


def _all(values: list[Any], test: Any) -> bool:
    return bool(values) and all(value is not None and test(value) for value in values)


def _is_scalar(value: Any) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool) and value != ""


def _is_whole(value: Any) -> bool:
    return _is_scalar(value) and _WHOLE.fullmatch(str(value)) is not None


def _is_number(value: Any) -> bool:
    return not isinstance(value, bool) and (
        isinstance(value, int | float) or re.fullmatch(r"-?\d+(\.\d{1,4})?", str(value)) is not None
    )


def _is_time(value: Any) -> bool:
    if isinstance(value, datetime | date):
        return True
    if not isinstance(value, str) or not _ISO.fullmatch(value):
        return False
    try:
        datetime.fromisoformat(value)
    except ValueError:
        return False
    return True


def _zone(values: list[Any]) -> ProposedSetting | None:
    """The type of a column of times; None for one whose file declares it."""
    if not all(isinstance(value, str) for value in values):
        return None
    zoned = all(datetime.fromisoformat(value).tzinfo is not None for value in values)
    return _ZONED if zoned else _NO_ZONE


#: Records that are looked at.
MOST: Final = 1000
_FORMATS: Final = {
    ".json": "json", ".jsonl": "json", ".ndjson": "json", ".csv": "csv", ".parquet": "parquet",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class FileSample:
    """The first records of a file, and its format as a task names it."""

    format: str
    records: list[dict[str, Any]]


def read_sample(file: Path) -> FileSample:
    """Read the first records of a file of JSON lines, CSV or Parquet.

    Raises:
        ConfigError: the file does not exist, has another format, or cannot be read.
    """
    kind = _FORMATS.get(file.suffix.lower())
    if kind is None:
        raise NO_SETTINGS_FROM_FILE(
            where=str(file),
            reason="its name does not end in .json, .jsonl, .ndjson, .csv or .parquet",
        )
    try:
        records = {"json": _json, "csv": _csv, "parquet": _parquet}[kind](file)
    except OSError as error:
        raise NO_SETTINGS_FROM_FILE(where=str(file), reason=error.strerror or str(error)) from error
    except (ValueError, csv.Error) as error:
        raise NO_SETTINGS_FROM_FILE(where=str(file), reason=str(error)) from error
    if not records or not any(records):
        raise NO_SETTINGS_FROM_FILE(where=str(file), reason="it holds no records")
    return FileSample(kind, records)


def task_text(sample: FileSample, name: str, schema: str, pattern: str) -> str:
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
    rows = [(f"      {_name(column)}: {c.value}", c.reason) for column, c in made.columns.items()]
    return [("    columns:", None), *rows]


def _listed(setting: str, choice: ProposedSetting) -> _Line:
    return f"    {setting}: [{_name(choice.value)}]", choice.reason


def _name(column: str) -> str:
    """A name in YAML; anything but a plain word is quoted, and so is `no`."""
    plain = column.isascii() and column.isidentifier()
    words = {"y", "n", "yes", "no", "on", "off", "true", "false", "null"}
    return column if plain and column.lower() not in words else json.dumps(column)


def _json(file: Path) -> list[dict[str, Any]]:
    with file.open(encoding="utf-8-sig") as lines:
        records = [json.loads(line) for line in itertools.islice(lines, MOST) if line.strip()]
    if not all(isinstance(record, dict) for record in records):
        raise ValueError("a line is not an object")
    return records


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
    from polynya.formats.records.columnar import exact_batches

    with file.open("rb") as content:
        batch = next(exact_batches(content, MOST), None)
    return [] if batch is None else batch.to_pylist()


def init(
    folder: Path | None = None,
    *,
    name: str | None = None,
    empty: bool = False,
    from_file: Annotated[Path | None, Parameter(name="--from")] = None,
    yes: bool = False,  # noqa: ARG001 - accepted so that scripts can pass it to every command
    context: Context,
) -> int:
    """Create a project with one task, sample data, and completion for editors.

    With `--from` the task is for files like that one: Polynya proposes keys, order, time, deletes
    and types from its first 1,000 records, each with its reason in the task file, and copies the
    file to the task's landing folder. It may be JSON lines, CSV or Parquet.

    For example: `polynya init shop --from orders.csv`.

    Args:
        folder: folder of the project; default `--project`, else here. Created if it is missing.
        name: name of the project; default the folder's name.
        empty: no task and no data.
        from_file: a landed file to propose a task from.
        yes: answer every question with yes; there are none.
    """
    target = folder or context.options.project
    project = check_name(name, what="project name") if name else _name_of(target)
    if empty and from_file is not None:
        raise WRONG_USAGE("`--empty` and `--from` exclude each other")
    files = project_files(project, example=not empty and from_file is None)
    copied: Path | None = None
    if from_file is not None:
        task, copied = _task_of(from_file, project)
        files = {"polynya.yml": files.pop("polynya.yml"), **task, **files}
    essential = [file for file in files if file.split("/")[0] in ESSENTIAL]
    _refuse_overwriting(target, [*essential, *([str(copied)] if copied else [])])
    # A repository has a .gitignore and editor settings of its own: those stay as they are.
    kept = [file for file in files if (target / file).exists()]
    written = [file for file in files if file not in kept]
    _write(target, {file: files[file] for file in written})
    if from_file is not None and copied is not None:
        _copy(from_file, target / copied)
        written.append(str(copied))
    context.output.result(
        "project",
        {"name": project, "directory": target.resolve(), "files": written, "kept": kept},
        f"created project {project} in {target} ({len(written)} files)",
    )
    if kept:
        context.output.note(f"left as they were: {', '.join(kept)}")
    place = "" if target == Path() else f" --project {target}"
    context.output.note(f"next: polynya validate{place}, then polynya run --once{place}")
    return ExitCode.OK


def proposed_project(file: Path, folder: Path) -> None:
    """Write the project that is proposed for a file into a folder, without the file."""
    project = _name_of(file.parent)
    task, _ = _task_of(file, project)
    _write(folder, {"polynya.yml": project_files(project, example=False)["polynya.yml"], **task})


def _task_of(file: Path, schema: str) -> tuple[dict[str, str], Path]:
    """The task that is proposed for a file, and where the file goes, below the project."""
    name = _name_of(Path(file.stem))
    text = task_text(read_sample(file), name, schema, f"*{file.suffix}")
    return {f"tasks/{name}.yml": text}, Path("landing", name, file.name)


def _copy(file: Path, to: Path) -> None:
    try:
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, to)
    except OSError as error:
        raise _not_writable(to.parent, error) from error


def _name_of(folder: Path) -> str:
    """Make a project name of a folder's name: other characters become `_`."""
    name = re.sub(r"[^A-Za-z0-9_]+", "_", folder.resolve().name).strip("_") or "project"
    return (f"_{name}" if name[0].isdigit() else name)[:128]


def _refuse_overwriting(folder: Path, files: list[str]) -> None:
    present = [file for file in [*files, *PROJECT_FILES] if (folder / file).exists()]
    if present:
        shown = ", ".join(dict.fromkeys(present))
        raise FILES_IN_THE_WAY(where=str(folder), files=shown)


def _write(folder: Path, files: dict[str, str]) -> None:
    try:
        for path, text in files.items():
            file = folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            # "x": what appears between the check and here is not overwritten either.
            with file.open("x", encoding="utf-8") as stream:
                stream.write(text)
    except OSError as error:
        raise _not_writable(folder, error) from error


def _not_writable(folder: Path, error: OSError) -> ConfigError:
    return FILES_IN_THE_WAY(
        f"cannot write {error.filename}: {error.strerror}",
        where=str(folder),
        fix="choose a folder that you may write to",
    )
