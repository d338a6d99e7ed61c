"""A run whose files are reached with the credentials that the catalog gives for each table."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.aws import aws_server
from tests.projects import USERS, write_project
from tests.rest_catalogs import (
    CREDENTIAL_VARIABLE,
    Answer,
    Exchange,
    Forward,
    proxy,
    reference_server,
    rest_project,
    vending,
)

pytestmark = pytest.mark.slow

_POLYNYA = "import sys; from polynya.cli.main import main; sys.exit(main())"


def polynya(project: Path, *arguments: str) -> str:
    line = [sys.executable, "-c", _POLYNYA, *arguments, "-p", str(project)]
    done = subprocess.run(line, capture_output=True, text=True, env=dict(os.environ), timeout=500)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_spark_and_readers_use_the_credentials_of_the_catalog(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CREDENTIAL_VARIABLE, "me:a-secret-of-tests")
    place, refused = "s3://acme-lake/tables", list[str]()

    def guarded(exchange: Exchange, forward: Forward) -> Answer:
        sent = {name.lower(): value for name, value in exchange.headers.items()}
        is_of_table = "tables/shop_internal" in exchange.path
        if is_of_table and "Credential=VENDED/" not in sent.get("authorization", ""):
            refused.append(exchange.path)
            return Answer(403, b"<Error><Code>AccessDenied</Code></Error>")
        return forward(exchange)

    with aws_server("acme-lake") as endpoint, proxy(endpoint) as store:
        store.fault = guarded
        properties = {
            "io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
            "s3.endpoint": endpoint, "s3.path-style-access": "true",
            "client.region": "eu-central-1", "http-client.type": "urlconnection",
        }  # fmt: skip
        with (
            reference_server(tmp_path / "server", place, properties) as server,
            proxy(server.uri) as way,
        ):
            way.fault = vending
            more = (
                "      vended_credentials: true\n"
                f'    aws: {{region: eu-central-1, endpoint: "{store.uri}"}}\n'
            )
            text = rest_project(way.uri, place, more)
            project = write_project(tmp_path, project=text, users=USERS)
            landed = project / "landing/users"
            landed.mkdir(parents=True)
            record = {"userId": 1, "sequenceNum": 1, "operation": "INSERT", "name": "Ann"}
            (landed / "1.json").write_text(json.dumps(record))

            polynya(project, "run", "--once")
            answer = polynya(project, "query", "SELECT name FROM shop.users", "--output", "csv")

    assert answer.splitlines()[-1] == '"Ann"'
    assert refused == []
