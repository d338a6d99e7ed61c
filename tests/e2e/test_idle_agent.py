"""What an idle agent asks of S3, counted by a server on this machine that stands in for AWS.

And how soon it sees what lands, when S3 tells it.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from werkzeug.serving import WSGIRequestHandler

from polynya_constructs.functions.wake import hints
from tests.aws import REGION, aws_server, client
from tests.e2e.agents import running_agent
from tests.projects import aws_project, write_project

pytestmark = [pytest.mark.spark, pytest.mark.slow]

TABLES = [f"t{number}" for number in range(10)]
TASK = """\
apiVersion: polynya/v1
kind: storage
name: logs
schema: shop
landing: {path: logs, format: json}
datasets:
""" + "".join(f'  - {{name: {name}, path: "{name}/*", mode: append_only}}\n' for name in TABLES)


def test_idle_agent_with_ten_tables_lists_its_landing_zone_a_few_times_a_minute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests: Counter[tuple[str, str, bool]] = Counter()

    def count(self: Any, *_: Any) -> None:
        bucket = self.path.lstrip("/").partition("?")[0].partition("/")[0]
        requests[bucket, self.command, "list-type=2" in self.path] += 1

    monkeypatch.setattr(WSGIRequestHandler, "log_request", count)
    with aws_server("acme-landing", "acme-lake", "acme-nodes") as endpoint:
        s3 = client("s3", endpoint)
        for name in TABLES:
            s3.put_object(Bucket="acme-landing", Key=f"in/logs/{name}/1.json", Body=b'{"n": 1}')
        project = tmp_path / "project"
        project.mkdir()
        write_project(project, project=aws_project(endpoint), logs=TASK)
        options = ["--config", str(project), "--work", str(tmp_path / "work")]
        options += ["--coordination", "s3://acme-nodes/coordination"]
        monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
        with running_agent(tmp_path, *options) as agent:
            for name in TABLES:
                agent.says("batch.copied", f"shop.{name}")
            time.sleep(75)
            requests.clear()
            time.sleep(60)
            idle = Counter(requests)
            new = {"Bucket": "acme-landing", "Key": "in/logs/t3/2.json", "Body": b'{"n": 2}'}
            took = agent.does(lambda: s3.put_object(**new), "batch.copied", "shop.t3")

    print(f"copied after {took:.0f} s; {sorted(idle.items())}")
    # Two looks of the one task.
    assert idle["acme-landing", "GET", True] <= 4
    # Coordination too: less than one list a second in total.
    assert sum(number for (_, _, is_list), number in idle.items() if is_list) <= 60
    assert took <= 60


def test_idle_agent_copies_what_lands_within_seconds_of_a_hint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with aws_server("acme-landing", "acme-lake", "acme-nodes") as endpoint:
        monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
        # The function finds its region and credentials as Lambda hands them over.
        for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
            monkeypatch.setenv(name, REGION)
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.setenv(name, "test")
        s3, kinesis = client("s3", endpoint), client("kinesis", endpoint)
        kinesis.create_stream(StreamName="load", ShardCount=1)
        for name, value in {
            "GROUP_NAME": "acme", "LANDING_BUCKET": "acme-landing",
            "CONFIGURATION_BUCKET": "acme-nodes", "OWN_LANDING_KEY": "coordination/acme/landing",
            "STREAM_ARN": kinesis.describe_stream_summary(StreamName="load")[
                "StreamDescriptionSummary"
            ]["StreamARN"],
        }.items():  # fmt: skip
            monkeypatch.setenv(name, value)
        s3.put_object(Bucket="acme-landing", Key="in/logs/t3/1.json", Body=b'{"n": 1}')
        project = tmp_path / "project"
        project.mkdir()
        write_project(project, project=aws_project(endpoint), logs=TASK)
        options = ["--config", str(project), "--work", str(tmp_path / "work"), "--stream", "load"]
        options += ["--coordination", "s3://acme-nodes/coordination", "--cluster", "acme"]

        def lands(number: int) -> None:
            """An object, and the event by which S3 tells the function of it."""
            key = f"in/logs/t3/{number}.json"
            s3.put_object(Bucket="acme-landing", Key=key, Body=b'{"n": 2}')
            event = {"detail": {"bucket": {"name": "acme-landing"}, "object": {"key": key}}}
            told = hints.handle({"Records": [{"body": json.dumps(event)}]}, None)
            assert told == {"action": "told of 1 beginnings of keys"}

        took = []
        with running_agent(tmp_path, *options) as agent:
            agent.says("batch.copied", "shop.t3")
            for number in (2, 3, 4):
                # Long enough for looks that are 30 s apart.
                time.sleep(65)
                took.append(agent.does(lambda: lands(number), "batch.copied", "shop.t3"))  # noqa: B023

    print("copied after " + ", ".join(f"{seconds:.1f} s" for seconds in took))
    # A node reads the stream every 2 s or a little more, and a unit has its turn every 2 s.
    assert max(took) <= 10
