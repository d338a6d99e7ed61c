"""`polynya init`: a project that runs as it is, or a task proposed from a sample file."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Annotated, Final

from cyclopts import Parameter

from polynya.cli.context import Context
from polynya.cli.exit_codes import ExitCode
from polynya.cli.proposals import proposals, proposals_of_files
from polynya.model.error_catalogue.configuration import FILES_IN_THE_WAY, WRONG_USAGE
from polynya.model.errors import ConfigError
from polynya.model.json_schema import SCHEMA_FILES, schema_text
from polynya.model.loader import PROJECT_FILES
from polynya.model.names import check_name
from polynya.store.object_store import ObjectStore

SCHEMA_FOLDER: Final = ".polynya/schema"
ESSENTIAL: Final = ("polynya.yml", "tasks", "connections", "landing")
"""Files and folders of the project itself; what is in the way there is never kept silently."""

_PROJECT: Final = """\
# yaml-language-server: $schema=.polynya/schema/project.v1.json
apiVersion: polynya/v1
kind: project
name: {name}
targets:
  local: {{landing: {landing}, warehouse: ./warehouse}}
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
            f"{SCHEMA_FOLDER}/automation.v1.json": ["automations/*.yml", "automations/*.yaml"],
            f"{SCHEMA_FOLDER}/tests.v1.json": ["tests/*.yml", "tests/*.yaml"],
            f"{SCHEMA_FOLDER}/connection.v1.json": ["connections/*.yml", "connections/*.yaml"],
            f"{SCHEMA_FOLDER}/bindings.v1.json": ["bindings/*.yml", "bindings/*.yaml"],
            f"{SCHEMA_FOLDER}/notification.v1.json": [
                "notifications/*.yml",
                "notifications/*.yaml",
            ],
            f"{SCHEMA_FOLDER}/access.v1.json": ["access.yml", "access.yaml"],
        },
        "json.schemas": [
            {"fileMatch": ["polynya.json"], "url": f"./{SCHEMA_FOLDER}/project.v1.json"},
            {"fileMatch": ["tasks/*.json"], "url": f"./{SCHEMA_FOLDER}/task.v1.json"},
            {
                "fileMatch": ["automations/*.json"],
                "url": f"./{SCHEMA_FOLDER}/automation.v1.json",
            },
            {"fileMatch": ["tests/*.json"], "url": f"./{SCHEMA_FOLDER}/tests.v1.json"},
            {
                "fileMatch": ["connections/*.json"],
                "url": f"./{SCHEMA_FOLDER}/connection.v1.json",
            },
            {"fileMatch": ["bindings/*.json"], "url": f"./{SCHEMA_FOLDER}/bindings.v1.json"},
            {
                "fileMatch": ["notifications/*.json"],
                "url": f"./{SCHEMA_FOLDER}/notification.v1.json",
            },
            {"fileMatch": ["access.json"], "url": f"./{SCHEMA_FOLDER}/access.v1.json"},
        ],
    }
    shown = {
        "tasks/users.yml": _TASK,
        "tests/users.yml": _TESTS,
        "landing/users/0001.json": _events(),
    }
    return {
        "polynya.yml": _PROJECT.format(name=name, landing="./landing"),
        **(shown if example else {}),
        ".gitignore": _GITIGNORE,
        ".vscode/settings.json": json.dumps(editor, indent=2) + "\n",
        ".vscode/extensions.json": '{"recommendations": ["redhat.vscode-yaml"]}\n',
        **{f"{SCHEMA_FOLDER}/{file}": schema_text(file) for file in SCHEMA_FILES},
    }


def _events() -> str:
    rows = (dict(zip(_COLUMNS, event, strict=True)) for event in _EVENTS)
    return "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)


def init(
    folder: Path | None = None,
    *,
    name: str | None = None,
    empty: bool = False,
    from_place: Annotated[str | None, Parameter(name="--from")] = None,
    tables: tuple[str, ...] = (),
    password_env: str | None = None,
    yes: bool = False,  # noqa: ARG001 - accepted so that scripts can pass it to every command
    context: Context,
) -> int:
    """Create a project with one task, sample data, and completion for editors.

    With `--from` the project has a task for each family of files that the place holds: files whose
    names differ in numbers and dates only. Polynya looks at up to 16 MB of each family, all over
    the files, and proposes dialect, encoding, header, types, keys, order, time and deletes, each
    with its reason in the task file. Then it reads what it looked at with these settings, and says
    how many records would be copied, quarantined or replaced by key. Local files are copied to the
    landing folder; files on S3 stay where they are.

    Files may be CSV, JSON, Excel (.xlsx), Parquet, ORC or Avro, also compressed with gzip,
    Zstandard, bzip2, xz or Snappy, or in a ZIP archive.

    From the URL of a database Polynya looks into the catalog, and proposes a connection, a capture
    of its tables, and a task that makes tables of what lands. It says what a run would load, and
    which settings and rights the server lacks, with the statement to run. It asks for the password
    and never writes it: the project reads it from a variable of the environment.

    From `kafka://[USER@]HOST:PORT/TOPIC` Polynya reads about 2,000 messages, the oldest and the
    newest of each partition, commits no offset and joins no group. It proposes a landing of the
    topic and a task that makes its table. After the address may follow `?registry=URL` (of
    schemas), `tls=true`, and `mechanism=PLAIN` for a login other than `SCRAM-SHA-512`. It needs
    Java.

    For example: `polynya init shop --from postgresql://ann@db.example.com/shop`.

    Args:
        folder: folder of the project; default `--project`, else here. Created if it is missing.
        name: name of the project; default the folder's name.
        empty: no task and no data.
        from_place: a file, a folder, a glob in quotes, `s3://BUCKET/PREFIX`,
            `postgresql://USER@HOST/DATABASE` (`mysql://`, `mariadb://`), or
            `kafka://HOST:PORT/TOPIC` to propose tasks from.
        tables: patterns of tables of the database, such as `public.*`; default: all.
        password_env: variable of the environment with the password of the server; without it
            Polynya asks.
        yes: answer every question with yes; there are none.
    """
    target = folder or context.options.project
    project = check_name(name, what="project name") if name else _name_of(target)
    if empty and from_place is not None:
        raise WRONG_USAGE("`--empty` and `--from` exclude each other")
    if from_place is None and (tables or password_env):
        raise WRONG_USAGE("`--tables` and `--password-env` belong to `--from` with a database")
    files = project_files(project, example=not empty and from_place is None)
    made = None
    if from_place is not None:
        made = proposals(context, from_place, project, tables=tables, password_env=password_env)
        files["polynya.yml"] = _PROJECT.format(name=project, landing=made.landing)
        files = {"polynya.yml": files.pop("polynya.yml"), **made.files, **files}
    copied = {} if made is None else made.copies
    essential = [file for file in files if file.split("/")[0] in ESSENTIAL]
    _refuse_overwriting(target, [*essential, *copied])
    # A repository has a .gitignore and editor settings of its own: those stay as they are.
    kept = [file for file in files if (target / file).exists()]
    written = [file for file in files if file not in kept]
    _write(target, {file: files[file] for file in written})
    if made is not None and made.store is not None:
        for path, stored in copied.items():
            _copy(made.store, stored, target / path)
        written += copied
    result: dict[str, object] = {
        "name": project,
        "directory": target.resolve(),
        "files": written,
        "kept": kept,
    }
    if made is not None:
        result |= made.data
    context.output.result(
        "project", result, f"created project {project} in {target} ({len(written)} files)"
    )
    for note in () if made is None else made.notes:
        context.output.note(note)
    if kept:
        context.output.note(f"left as they were: {', '.join(kept)}")
    place = "" if target == Path() else f" --project {target}"
    first = "" if made is None else made.before
    preview = "polynya validate" if made is None else made.look
    context.output.note(f"next: {first}{preview}{place}, then polynya run --once{place}")
    return ExitCode.OK


def proposed_project(file: Path, folder: Path) -> None:
    """Write the project that is proposed for a file into a folder, without the file."""
    project = _name_of(file.parent)
    made = proposals_of_files(str(file), project)
    text = project_files(project, example=False)["polynya.yml"]
    _write(folder, {"polynya.yml": text, **made.files})


def _copy(store: ObjectStore, path: str, to: Path) -> None:
    try:
        to.parent.mkdir(parents=True, exist_ok=True)
        with store.open(path) as file, to.open("xb") as copy:
            shutil.copyfileobj(file, copy, 1 << 20)
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
