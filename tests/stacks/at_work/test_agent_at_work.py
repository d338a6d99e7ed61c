"""A stage that was deployed from its templates, and the real agent at work in it.

What `docs/deploy.md` tells: synthesize, deploy (into a stand-in for AWS), push the configuration,
start the agent, land files, query, edit a task in the bucket.
"""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog.glue import GlueCatalog

from polynya.cli.main import main
from tests.aws import REGION
from tests.e2e.agents import running_agent
from tests.oracle.packs.driver import CliDriver
from tests.projects import write_project
from tests.stacks.deploy_to_moto import DeployedStage

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore:Tried to parse")]

PROJECT = """\
apiVersion: polynya/v1
kind: project
name: shop
targets:
  prod:
    landing: s3://{LandingBucketName}/in
    warehouse: s3://{WarehouseBucketName}/tables
    config: s3://{ConfigurationBucketName}/shop
    catalog: glue
    aws: {{region: eu-central-1, endpoint: "{endpoint}"}}
"""
# The stage has the databases of this schema.
USERS = """\
apiVersion: polynya/v1
kind: storage
name: users
schema: shop_clustered
landing: {path: users, format: json}
datasets:
  - {name: users, path: "**/*", keys: [id], sequence_by: [n], apply_as_deletes: "op = 'D'",
     optional_columns: [op]}
"""
HISTORY = '  - {name: logins, path: "**/*", keys: [id], sequence_by: [n], history: true}\n'


@pytest.mark.slow
def test_the_agent_makes_live_tables_of_what_lands_and_takes_up_an_edited_task(
    deployed: DeployedStage,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    storage, s3 = deployed.outputs["Storage"], deployed.client("s3")
    configuration = storage["ConfigurationBucketName"]
    monkeypatch.setenv("AWS_ENDPOINT_URL", deployed.endpoint)
    monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)
    project = tmp_path / "project"
    project.mkdir()
    write_project(
        project, project=PROJECT.format(endpoint=deployed.endpoint, **storage), users=USERS
    )

    def land(name: str, *rows: dict[str, Any]) -> None:
        body = "\n".join(map(json.dumps, rows)).encode()
        s3.put_object(Bucket=storage["LandingBucketName"], Key=f"in/users/{name}", Body=body)

    land("1.json", {"id": 1, "name": "Ann", "n": 1}, {"id": 2, "name": "Ben", "n": 1})
    assert main(["config", "push", "--project", str(project)]) == 0, capsys.readouterr().err

    options = [
        *("--config", f"s3://{configuration}/shop", "--work", str(tmp_path / "work")),
        *("--stream", storage["WorkloadStreamName"]),
        *("--metrics", "emf", "--metrics-file", str(tmp_path / "metrics.jsonl")),
    ]
    with running_agent(tmp_path, *options) as agent:
        agent.says("batch.copied", "shop_clustered.users")
        agent.does(
            lambda: land("2.json", {"id": 1, "n": 2, "op": "D"}, {"id": 3, "name": "Cy", "n": 2}),
            "batch.copied", "shop_clustered.users",
        )  # fmt: skip

        edited = {"Key": "shop/current/tasks/users.yml", "Body": (USERS + HISTORY).encode()}
        took = agent.does(
            lambda: s3.put_object(Bucket=configuration, **edited),
            "batch.copied", "shop_clustered.logins",
        )  # fmt: skip

        os.killpg(agent.process.pid, signal.SIGTERM)
        assert agent.process.wait(100) == 0
        print(f"edit in the bucket to rows {took:.1f} s")

    assert main(["config", "pull", "--project", str(project)]) == 0
    users, logins = CliDriver().query(
        project,
        ["SELECT id, name FROM shop_clustered.users ORDER BY id",
         "SELECT id, name FROM shop_clustered.logins ORDER BY id"],
    )  # fmt: skip
    assert [(row["id"], row["name"]) for row in users] == [(2, "Ben"), (3, "Cy")]
    assert [row["id"] for row in logins] == [1, 2, 3]
    assert landed_in(deployed, "shop_clustered_internal", "logins_internal") == {1, 2, 3}
    # Where the role of the nodes may write, and nowhere else.
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=storage["WarehouseBucketName"])
    keys = [each["Key"] for page in pages for each in page["Contents"]]
    assert {key.split("/")[0] for key in keys} == {"shop_clustered_internal"}
    assert {report["node"] for report in reports(deployed)} == {"n1"}
    metrics = [json.loads(line) for line in (tmp_path / "metrics.jsonl").open()]
    assert {line["_aws"]["CloudWatchMetrics"][0]["Namespace"] for line in metrics} == {"Polynya"}
    assert main(["config", "status", "--json", "--project", str(project)]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["edited"] == {
        "tasks/users.yml": "changed"
    }


def landed_in(stage: DeployedStage, database: str, name: str) -> set[int]:
    """Records of an Iceberg table, as a reader that is not ours finds them in the catalog."""
    properties = {
        "glue.endpoint": stage.endpoint,
        "s3.endpoint": stage.endpoint,
        "client.region": REGION,
    }
    table = GlueCatalog("any", **properties).load_table((database, name))
    ids = table.scan(selected_fields=("id",)).to_arrow().column("id").to_pylist()
    return {key for key in ids if key is not None}


def reports(stage: DeployedStage) -> list[dict[str, Any]]:
    """What nodes put on the workload stream of the stage."""
    kinesis, name = stage.client("kinesis"), stage.outputs["Storage"]["WorkloadStreamName"]
    shards = kinesis.list_shards(StreamName=name)["Shards"]
    records = []
    for shard in shards:
        begin = kinesis.get_shard_iterator(
            StreamName=name, ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON"
        )["ShardIterator"]
        records += kinesis.get_records(ShardIterator=begin)["Records"]
    return [json.loads(record["Data"]) for record in records]
