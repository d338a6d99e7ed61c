"""Small project folders for the tests of all packages."""

from __future__ import annotations

from pathlib import Path

PROJECT = """\
apiVersion: polynya/v1
kind: project
name: shop
targets:
  local: {landing: ./landing, warehouse: ./warehouse}
"""

USERS = """\
apiVersion: polynya/v1
kind: storage
name: users
schema: shop
landing: {path: users, format: json}
datasets:
  - name: users
    keys: [userId]
    sequence_by: [sequenceNum]
    apply_as_deletes: "operation = 'DELETE'"
"""

CLICKS = """\
apiVersion: polynya/v1
kind: streaming_landing
name: clicks
source:
  kafka:
    bootstrap_servers: broker:9092
    topics: [clicks, "orders-%"]
    properties: {security.protocol: SSL}
content: {type: json}
"""

_AWS_PROJECT = """\
apiVersion: polynya/v1
kind: project
name: shop
targets:
  dev:
    landing: s3://acme-landing/in
    warehouse: s3://acme-lake/tables
    config: s3://acme-config/shop
    catalog: glue
    aws: {{region: {region}, endpoint: "{endpoint}"}}
"""

_POSTGRES_PROJECT = """\
apiVersion: polynya/v1
kind: project
name: shop
targets:
  local:
    landing: ./landing
    warehouse: {warehouse}
    catalog:
      uri: {uri}
      user: "${{env:POLYNYA_TEST_DB_USER}}"
      password: "${{env:POLYNYA_TEST_DB_PASSWORD}}"
"""

BANK = """\
apiVersion: polynya/v1
kind: storage
name: bank
schema: bank
landing: {path: bank, format: debezium}
include: ["w.*"]
defaults: {history: true}
"""


def write_project(folder: Path, *, project: str = PROJECT, **tasks: str) -> Path:
    """Write a project folder with one file per task; `users=USERS` becomes tasks/users.yml."""
    (folder / "tasks").mkdir(parents=True, exist_ok=True)
    (folder / "polynya.yml").write_text(project, encoding="utf-8")
    for name, text in tasks.items():
        (folder / "tasks" / f"{name}.yml").write_text(text, encoding="utf-8")
    return folder


def aws_project(endpoint: str, region: str = "eu-central-1") -> str:
    """A project file with a target on AWS, or on what answers at the endpoint in its place."""
    return _AWS_PROJECT.format(endpoint=endpoint, region=region)


def postgres_project(uri: str, warehouse: str = "./warehouse", *, endpoint: str = "") -> str:
    """A project file whose catalog is in PostgreSQL, and whose warehouse may be in a store."""
    text = _POSTGRES_PROJECT.format(uri=uri, warehouse=warehouse)
    return text + (
        f'    aws: {{region: eu-central-1, endpoint: "{endpoint}"}}\n' if endpoint else ""
    )
