"""The whole way on S3 and Glue, against a server on this machine that stands in for AWS.

What it cannot show: the server's Glue takes an update that is based on an old version of a table,
so that nothing is proven here about two owners. `tests/lake/apply/test_two_owners.py`
proves it on JDBC.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog.glue import GlueCatalog

from tests.aws import REGION, aws_server, client
from tests.lab.commands import INTERPRETED_THERE
from tests.projects import aws_project, write_project

pytestmark = pytest.mark.spark

# Glue has no upper case; views keep it.
USERS = """\
apiVersion: polynya/v1
kind: storage
name: users
schema: Shop
landing: {path: users, format: json}
datasets:
  - name: Users
    path: "**/*"
    keys: [userId]
    sequence_by: [n]
    history: true
    apply_as_deletes: "op = 'D'"
"""
# One process, so that one JVM: commands in turn. Between run and query the views of the session
# are dropped, as a new session has none.
COMMANDS = """\
import json
import sys
from polynya.cli.main import main
from polynya.lake.apply import fast
from polynya.lake.errors import aws_error
from polynya.lake.spark.api import SparkSession
from polynya.lake.read.catalog_views import drop_views

from polynya.store.aws.s3 import S3ObjectStore
from polynya.model.config.aws import AwsAccess
from polynya.model.names import S3Location

folder, endpoint = sys.argv[1:]
def polynya(*words):
    code = main([*words, "--json", "--project", folder])
    assert code == 0, (words, code)

fold = fast.fold_in_memory
def told(*parts):
    found = fold(*parts)
    print(json.dumps({"type": "way", "query": found is None}))
    return found
fast.fold_in_memory = told

polynya("run", "--once", "--apply", "always")
landing = S3ObjectStore(S3Location("acme-landing", "in"), AwsAccess(endpoint=endpoint))
landing.put("users/4.json", b'{"userId": 1, "name": "c", "n": 3}')
polynya("run", "--once", "--apply", "always")
names = ["Shop.Users", "Shop.Users__history", "Shop.Users__changes"]
drop_views(SparkSession.getActiveSession(), names)
polynya("query", "SELECT userId, name FROM Shop.Users ORDER BY userId")
polynya("history", "Shop.Users", "userId=2")
polynya("verify")

nowhere = "CREATE TABLE polynya.shop_internal.x (a INT) USING iceberg LOCATION 's3://acme-nowhere/x'"
try:
    SparkSession.getActiveSession().sql(nowhere)
except Exception as error:
    print(json.dumps({"type": "java", "code": aws_error(error).code}))
"""


@dataclass(frozen=True)
class Done:
    """What a run of all commands printed, and where it wrote."""

    folder: Path
    endpoint: str
    lines: list[dict[str, Any]]

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [line for line in self.lines if line.get("type") == kind]


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Done]:
    folder = tmp_path_factory.mktemp("aws")
    with aws_server("acme-landing", "acme-lake", "acme-config") as endpoint:
        write_project(folder, project=aws_project(endpoint), users=USERS)
        land(endpoint, "users/1.json", [{"userId": k, "name": "a", "n": 1} for k in (1, 2, 3)])
        changes = [{"userId": 2, "name": "b", "n": 2}, {"userId": 3, "n": 2, "op": "D"}]
        land(endpoint, "users/2026/2.json", changes)
        # No path, and a valid key: it must not be lost without a word.
        land(endpoint, "users//3.json", [{"userId": 9, "name": "x", "n": 1}])
        ran = subprocess.run(
            [sys.executable, "-c", COMMANDS, str(folder), endpoint],
            env={**os.environ, **INTERPRETED_THERE},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert ran.returncode == 0, ran.stdout + ran.stderr[-3000:]
        yield Done(folder, endpoint, [json.loads(line) for line in ran.stdout.splitlines()])


def land(endpoint: str, path: str, rows: list[dict[str, Any]]) -> None:
    body = "\n".join(map(json.dumps, rows)).encode()
    client("s3", endpoint).put_object(Bucket="acme-landing", Key=f"in/{path}", Body=body)


def test_landed_objects_become_live_tables(done: Done) -> None:
    copied, _ = done.of("batch.copied")
    assert (copied["rows_in"], copied["rows_out"], copied["rows_quarantined"]) == (6, 5, 1)
    assert [line for line in done.lines if "type" not in line] == [
        {"userId": 1, "name": "c"},
        {"userId": 2, "name": "b"},
    ]
    versions = [row for row in done.of("version") if "userId" in row]
    assert [row["name"] for row in versions] == ["a", "b"]
    [verified] = done.of("dataset.verified")
    assert verified["ok"]
    # The second one finds what it changes in objects, without Spark.
    assert done.of("way")[-1] == {"type": "way", "query": False}
    # What Java says of AWS is told as what Python says.
    assert done.of("java") == [{"type": "java", "code": "POLYNYA-AWS-004"}]


def test_athena_finds_the_views_in_the_catalog(done: Done) -> None:
    assert done.of("views.failed") == []
    assert done.of("views.published")[0]["views"] == [
        "shop.users", "shop.users__changes", "shop.users__current_stored",
        "shop.users__history", "shop.users__history_stored",
    ]  # fmt: skip
    found = client("glue", done.endpoint).get_tables(DatabaseName="shop")["TableList"]
    assert {table["TableType"] for table in found} == {"VIRTUAL_VIEW"}
    columns = {table["Name"]: table["StorageDescriptor"]["Columns"] for table in found}
    assert {"Name": "userid", "Type": "bigint"} in columns["users"]


def test_another_reader_sees_the_table(done: Done) -> None:
    catalog = GlueCatalog(
        "any", **{"glue.endpoint": done.endpoint, "s3.endpoint": done.endpoint,
                  "client.region": REGION},
    )  # fmt: skip
    table = catalog.load_table(("shop_internal", "users_internal"))
    rows = table.scan(row_filter="hdr__partition = 'current'").to_arrow().to_pylist()

    assert {(row["userId"], row["name"]) for row in rows} == {(1, "c"), (2, "b")}
    assert all(
        task.file.file_path.startswith("s3://acme-lake/tables/")
        for task in table.scan().plan_files()
    )


def test_commands_without_a_jvm(done: Done, capsys: pytest.CaptureFixture[str]) -> None:
    from polynya.cli.main import main

    def said(*words: str) -> tuple[int, list[dict[str, Any]]]:
        code = main([*words, "--json", "--project", str(done.folder)])
        return code, [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    code, lines = said("status")
    assert (code, lines[-1]["current_rows"], lines[-1]["rows_in"]) == (0, 2, 7)
    code, lines = said("quarantine", "list")
    assert [line["file"] for line in lines if "file" in line] == ["users//3.json"]

    code, lines = said("doctor")
    checks = {line["name"]: line["status"] for line in lines if line["type"] == "check"}
    wanted = ("aws identity", "landing", "config", "warehouse", "catalog", "views")
    assert (code, {checks[name] for name in wanted}) == (0, {"ok"})
    left = client("s3", done.endpoint).list_objects_v2(Bucket="acme-lake", Prefix="tables/_")
    assert left["KeyCount"] == 0


def test_doctor_without_a_network_names_what_it_could_not_reach(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from polynya.cli.main import main

    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "x")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
    # A port that nobody listens on.
    write_project(tmp_path, project=aws_project("http://127.0.0.1:9"), users=USERS)

    code = main(["doctor", "--json", "--project", str(tmp_path)])

    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    failed = [line for line in lines if line["type"] == "check" and line["status"] == "fail"]
    assert code == 4
    assert {line["name"] for line in failed} == {"landing", "config", "warehouse", "catalog"}
    # Nodes without internet do not reach it, and do not need it.
    assert {line["name"] for line in lines if line.get("status") == "warn"} >= {"aws identity"}
    assert all("check the network" in line["fix"] for line in failed)
