"""A cluster with `maximum` above 1, deployed into a stand-in for AWS: two nodes, and one that dies.

The agents have the options that the boot script of the stage gives them, and agree in the
configuration bucket of the stage.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from pyiceberg.catalog.glue import GlueCatalog

from polynya.cli.main import main
from polynya_constructs.cluster.object_events import own_landing_key
from polynya_constructs.functions.wake.own_landing import OwnLandingReader
from tests.aws import REGION, glue_that_checks_versions, s3_whose_conditions_hold
from tests.e2e.agents import Agent, running_agent
from tests.projects import write_project
from tests.stacks.at_work.test_agent_at_work import PROJECT
from tests.stacks.deploy_to_moto import DeployedStage
from tests.stacks.synthesis import Assembly
from tests.stacks.test_boot import user_data

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:Tried to parse"),
]

TABLES = ("one", "two", "three", "four")
TASK = """\
apiVersion: polynya/v1
kind: storage
name: logs
schema: shop_clustered
landing: {path: logs, format: json}
apply: {max_pending_rows: 1, min_fraction: 0}
datasets:
""" + "".join(f'  - {{name: {name}, path: "{name}/*", mode: append_only}}\n' for name in TABLES)


def owners(agents: dict[str, Agent]) -> dict[str, str]:
    """The node that claimed each unit last, by what the nodes say."""
    claims = sorted(
        (line["at"], line["subject"], node)
        for node, agent in agents.items()
        for line in agent.said()
        if line["type"] == "unit.claimed"
    )
    return {unit: node for _, unit, node in claims}


def awaited(what: str, condition: Callable[[], bool], agents: dict[str, Agent]) -> None:
    deadline = time.monotonic() + 300
    while not condition():
        said = {node: agent.output.read_text("utf-8")[-1500:] for node, agent in agents.items()}
        assert time.monotonic() < deadline, f"not yet: {what}\n{said}"
        time.sleep(0.2)


def test_two_nodes_share_the_tasks_and_one_that_is_killed_is_replaced_by_the_other(
    deployed: DeployedStage,
    assembly: Assembly,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    storage, s3 = deployed.outputs["Storage"], deployed.client("s3")
    group = deployed.outputs["Cluster-cheap"]["GroupName"]
    (asked,) = deployed.client("autoscaling").describe_auto_scaling_groups(
        AutoScalingGroupNames=[group]
    )["AutoScalingGroups"]
    assert asked["MaxSize"] > 1
    monkeypatch.setenv("AWS_ENDPOINT_URL", deployed.endpoint)
    monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)
    project = tmp_path / "project"
    project.mkdir()
    write_project(project, project=PROJECT.format(endpoint=deployed.endpoint, **storage), logs=TASK)
    wanted: dict[str, list[int]] = {name: [] for name in TABLES}

    def land(name: str) -> None:
        number = len(wanted[name]) + 1
        wanted[name].append(number)
        s3.put_object(
            Bucket=storage["LandingBucketName"],
            Key=f"in/logs/{name}/{number:04}.json",
            Body=json.dumps({"id": number}).encode(),
        )

    def land_all() -> None:
        for name in TABLES:
            land(name)

    def copied(agents: dict[str, Agent]) -> dict[str, int]:
        found = dict.fromkeys(TABLES, 0)
        for agent in agents.values():
            for line in agent.said():
                if line["type"] == "batch.copied":
                    found[line["subject"].removeprefix("shop_clustered.")] += line["rows_in"]
        return found

    assert main(["config", "push", "--project", str(project)]) == 0, capsys.readouterr().err
    land_all()
    place = f"s3://{storage['ConfigurationBucketName']}/coordination"
    options = [*_boot_options(assembly, storage), "--cluster", group, "--imds", "off"]
    options += ["--config", f"s3://{storage['ConfigurationBucketName']}/shop"]
    with (
        glue_that_checks_versions(),
        s3_whose_conditions_hold(),
        running_agent(tmp_path, *options, "--work", str(tmp_path / "w1"), node="n1") as first,
        running_agent(tmp_path, *options, "--work", str(tmp_path / "w2"), node="n2") as second,
    ):
        agents = {"n1": first, "n2": second}
        awaited("each node has units", lambda: set(owners(agents).values()) == {"n1", "n2"}, agents)
        awaited("all is copied", lambda: min(copied(agents).values()) == 1, agents)

        victim = owners(agents)["shop_clustered.one"]
        survivor = agents["n2" if victim == "n1" else "n1"]
        theirs = {unit for unit, node in owners(agents).items() if node == victim}
        land_all()
        os.killpg(agents[victim].process.pid, signal.SIGKILL)
        agents[victim].process.wait()
        land_all()
        began = time.monotonic()

        awaited("the other has all", lambda: victim not in owners(agents).values(), agents)
        moved = time.monotonic() - began
        claims = {
            line["subject"]: line["epoch"]
            for line in survivor.said()
            if line["type"] == "unit.claimed" and line["subject"] in theirs
        }
        assert claims.keys() == theirs
        assert min(claims.values()) > 1
        # What the dead node had committed and not told of is not copied twice.
        awaited(
            "the other goes on where the tables stand",
            lambda: all(_reached(survivor, unit) for unit in theirs),
            agents,
        )
        where = ["--coordination", place, "--cluster", group]
        code = main(["cluster", "status", "--json", *where, "--project", str(project)])
        status = json.loads(capsys.readouterr().out.splitlines()[-1])
        assert (status["status"], status["units"]) == ("Running", {"owned": len(TABLES)}), code
        assert status["nodes"]["ready"] == 1
        # The function that wakes the group reads what a node wrote.
        written = storage["ConfigurationBucketName"], own_landing_key(group)
        own = OwnLandingReader(written, storage["LandingBucketName"])(lambda: s3)
        keys = ("in/logs/one/0001.json", "in/web/0001.json")
        assert [own.has(key) for key in keys] == [True, False], own
        awaited("all that landed is there", lambda: _rows(deployed) == wanted, agents)
        os.killpg(survivor.process.pid, signal.SIGTERM)
        assert survivor.process.wait(100) == 0
        print(f"kill until the other owned all {moved:.1f} s")

    # Nothing came twice afterwards, either.
    assert _rows(deployed) == wanted


def _boot_options(assembly: Assembly, storage: dict[str, str]) -> list[str]:
    """What the boot script of the cluster gives the agent, with the names of the stand-in."""
    script = user_data(assembly, "clustered/Cluster-cheap")
    found = re.search(r"^AGENT_OPTIONS='(.*)'$", script, re.MULTILINE)
    assert found is not None
    options = shlex.split(found[1])
    bucket, stream = storage["ConfigurationBucketName"], storage["WorkloadStreamName"]
    options[options.index("--coordination") + 1] = f"s3://{bucket}/coordination"
    options[options.index("--stream") + 1] = stream
    return options


def _reached(agent: Agent, unit: str) -> bool:
    """Whether it has copied a batch of a unit since it claimed it."""
    claimed = False
    for line in agent.said():
        claimed = claimed or (line["type"] == "unit.claimed" and line["subject"] == unit)
        if claimed and line["type"] == "batch.copied" and line["subject"] == unit:
            return True
    return False


def _rows(stage: DeployedStage) -> dict[str, list[int]]:
    """The rows of each table, duplicates and all, as a reader that is not ours finds them."""
    properties = {
        "glue.endpoint": stage.endpoint,
        "s3.endpoint": stage.endpoint,
        "client.region": REGION,
    }
    catalog = GlueCatalog("any", **properties)
    found = {}
    for name in TABLES:
        table = catalog.load_table(("shop_clustered_internal", f"{name}_internal"))
        ids = table.scan(selected_fields=("id",)).to_arrow().column("id").to_pylist()
        found[name] = sorted(one for one in ids if one is not None)
    return found
