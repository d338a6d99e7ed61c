"""The files of a new project. They run as they are and are meant to be edited."""

from __future__ import annotations

import json
from typing import Final

from polynya.model.reading.json_schema import SCHEMA_FILES, schema_text

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
