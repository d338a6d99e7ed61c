"""The user data of a node, as the template has it, run on a machine that it may change."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import pytest

from polynya.cli.main import main as polynya
from polynya.lake.spark.jars import jar_paths
from polynya.model.error_catalogue.cluster import CONFIGURATION_MISSING
from polynya_constructs.cluster.instance_types import Architecture
from polynya_constructs.packaging.archive import write_archive
from polynya_constructs.packaging.package import Dependencies, published_key
from stacks.trial import failed_boot, release_of
from tests.aws import REGION, aws_server, client
from tests.stacks.conftest import STAND_IN
from tests.stacks.house_rules import resources
from tests.stacks.intrinsics import Intrinsics
from tests.stacks.machine.metadata import INSTANCE, metadata_service
from tests.stacks.machine.node import Booted, Machine, can_layer
from tests.stacks.synthesis import Assembly

ROOT = Path(__file__).resolve().parents[2]
NODE = ROOT / "constructs" / "polynya_constructs" / "nodes" / "files"
ASSETS = "cdk-hnb659fds-assets-123456789012-eu-central-1"
CLUSTER = "polynya-clustered-cheap"
PROJECT = """apiVersion: polynya/v1
kind: project
name: shop
targets:
  node: {{landing: /srv/landing, warehouse: /srv/warehouse, config: "s3://{bucket}/project"}}
"""
Boot = Callable[..., Booted]

pytestmark = [
    pytest.mark.synth,
    pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="nodes have Python 3.11"),
]


def user_data(assembly: Assembly, stack: str) -> str:
    """The script of the launch template of a stack, with what CloudFormation would fill in."""
    template = assembly.templates[stack]
    (launched,) = [
        resource["Properties"]["LaunchTemplateData"]
        for resource in template["Resources"].values()
        if resource["Type"] == "AWS::EC2::LaunchTemplate"
    ]
    return Intrinsics(assembly.templates).resolve(launched["UserData"]["Fn::Base64"], stack)


def published(assembly: Assembly, stack: str) -> list[tuple[dict[str, Any], str]]:
    """Source and key of each file that a deployment of a stack publishes."""
    (manifest,) = assembly.directory.rglob(f"*{stack}*.assets.json")
    files = json.loads(manifest.read_text())["files"].values()
    return [
        (file["source"] | {"folder": manifest.parent}, destination["objectKey"])
        for file in files
        for destination in file["destinations"].values()
    ]


@pytest.fixture
def boot(assembly: Assembly, tmp_path: Path) -> Iterator[Boot]:
    """Boots a node of the cluster `cheap`; `damage` changes one of its assets before."""
    if not can_layer():
        pytest.skip("a machine to boot needs the right to mount")
    with aws_server(ASSETS) as s3, metadata_service(CLUSTER) as metadata:
        for source, key in published(assembly, "Clustercheap"):
            if source.get("path", "").endswith(".tar"):
                path = str(source["folder"] / source["path"])
                client("s3", s3).upload_file(path, ASSETS, key)
        archive = Dependencies.of(ROOT, assembly.packages, Architecture.ARM64).built()
        client("s3", s3).upload_file(str(archive.path), ASSETS, published_key(archive.sha256))

        def run(commands: str, *, script: str | None = None, **extra: str) -> Booted:
            machine = Machine(tmp_path, metadata, s3, extra)
            return machine.run(script or user_data(assembly, "clustered/Cluster-cheap"), commands)

        run.s3, run.endpoint = client("s3", s3), s3
        yield run


def test_a_node_boots_to_a_running_agent_and_drains(boot: Boot) -> None:
    node = boot(
        "$BOOT && systemctl is-active polynya-agent && cp /var/lib/polynya/agent.json $SHARED/first"
        " && $BOOT && cp /var/lib/polynya/agent.json $SHARED/second"
        " && cp /etc/polynya/{cloudwatch.json,agent.env} $SHARED"
        " && cp /etc/systemd/system/polynya-agent.service $SHARED"
        " && curl -sX DELETE $AWS_EC2_METADATA_SERVICE_ENDPOINT"
        " && until grep -x drained /var/log/polynya/drain.log; do sleep 0.2; done"
        " && ls /var/lib/polynya >$SHARED/left && echo all-well"
    )

    assert node.printed.splitlines()[-1] == "all-well", node.printed
    started = json.loads(node.file("first"))
    agent, config, place, *options = started["arguments"]
    assert (agent, config, options[:-3], options[-2:]) == (
        "agent", "--config",
        ["--work", "/var/lib/polynya", "--metrics", "emf",
         "--coordination", place.replace("/project", "/coordination"), "--stream"],
        ["--tasks-of", "cheap"],
    )  # fmt: skip
    assert re.fullmatch(r"s3://\S*configurationbucket\S*/project", place)
    assert started["user"] != 0
    assert started["environment"]["POLYNYA_NODE_ID"] == INSTANCE
    assert started["environment"]["POLYNYA_CLUSTER"] == CLUSTER
    assert started["environment"]["POLYNYA_LIFECYCLE"] == "spot"
    assert {
        "AWS_METADATA_SERVICE_TIMEOUT=2",
        "AWS_METADATA_SERVICE_NUM_ATTEMPTS=5",
        "AWS_EC2_METADATA_V1_DISABLED=true",
    } < set(node.file("agent.env").splitlines())
    # The second boot found everything and left the agent alone; its hook was completed once.
    assert node.file("first") == node.file("second")
    assert node.calls == ["ready CONTINUE", "drain CONTINUE"]
    assert "drained" in node.file("left").split()
    assert node.file("polynya-agent.service") == (NODE / "polynya-agent.service").read_text()
    streams = json.loads(node.file("cloudwatch.json"))["logs"]["logs_collected"]["files"]
    assert [one["log_stream_name"] for one in streams["collect_list"]] == [
        f"{INSTANCE}/{log}" for log in ("boot", "agent", "drain", "health")
    ]  # fmt: skip


@pytest.mark.slow
def test_the_instance_of_the_gateway_boots_to_a_network_agent(
    boot: Boot, assembly: Assembly
) -> None:
    script = user_data(assembly, "clustered/Gateway")
    node = boot(
        "$BOOT && systemctl is-active polynya-network-agent"
        " && cp /var/lib/polynya/agent.json $SHARED/first && echo all-well",
        script=script,
    )

    assert node.printed.splitlines()[-1] == "all-well", node.printed
    verb, name, own, updates, folder, *options = json.loads(node.file("first"))["arguments"]
    assert (verb, name, own) == ("network-agent", "--name", CLUSTER)
    assert (updates, folder) == ("--updates", "/var/lib/polynya/network-agent")
    assert options[:3] == ["--metrics", "emf", "--coordination"]
    assert options[4:] == [
        "--cluster", "polynya-clustered-cheap", "--cluster", "polynya-clustered-steady",
        "--cluster", "polynya-clustered-asleep",
    ]  # fmt: skip
    assert node.calls == []
    assert "java" not in script


ACCESS = """apiVersion: polynya/v1
kind: access
url: https://polynya.example.com
roles: {owner: [ann@example.com]}
"""


@pytest.mark.slow
def test_the_instance_of_a_server_boots_to_a_server_that_answers_with_tls(
    boot: Boot, assembly: Assembly, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The real server, on what the boot unpacked; first nothing was pushed, then it follows."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    script = user_data(assembly, "clustered/Server").replace("8181", str(port))
    (bucket,) = re.findall(r"^CONFIG='?s3://(\S+)/project'?$", script, re.MULTILINE)
    boot.s3.create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": REGION})
    monkeypatch.setenv("AWS_ENDPOINT_URL", boot.endpoint)
    monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)
    project = tmp_path / "shop"
    assert polynya(["init", str(project)]) == 0
    text = PROJECT.format(bucket=bucket).replace("node:", "prod:")
    (project / "polynya.yml").write_text(text)
    (project / "access.yml").write_text(ACCESS)
    pushed = threading.Timer(
        8, lambda: polynya(["config", "push", "--project", str(project), "--target", "prod"])
    )
    pushed.start()
    url = f"https://127.0.0.1:{port}"

    node = boot(
        "mkdir -m 777 /srv/landing /srv/warehouse && $BOOT"
        f" && until curl -sfk {url}/health >$SHARED/health; do sleep 0.2; done"
        f" && curl -sk -H 'Host: polynya.example.com' {url}/api/v1/project >$SHARED/refused"
        " && until grep -m 1 'ServerAnswers\":1' /var/log/polynya/probe.log; do sleep 0.2; done"
        " && cp /etc/polynya/{cloudwatch.json,server.env} /var/log/polynya/*.log $SHARED"
        " && stat -c '%a %G' /etc/polynya/server-key.pem && ls /var/lib/polynya/project"
        " && echo all-well",
        script=script,
        AWS_ENDPOINT_URL=boot.endpoint,
        POLYNYA_PROBE_EVERY="1",
    )
    pushed.join()

    assert node.printed.splitlines()[-1] == "all-well", node.printed
    assert node.file("health") == "ok\n"
    assert json.loads(node.file("refused"))["code"] == "POLYNYA-ACC-001"
    told = [json.loads(line) for line in node.file("server.log").splitlines() if line[0] == "{"]
    assert {one["code"] for one in told if one["type"] == "error"} == {"POLYNYA-BKT-006"}
    assert [one["url"] for one in told if one["type"] == "api.served"] == [
        f"https://0.0.0.0:{port}"
    ]
    assert "640 polynya" in node.printed
    assert {"access.yml", "polynya.yml", "tasks"} < set(node.printed.splitlines())
    probes = [json.loads(line) for line in node.file("probe.log").splitlines()]
    assert (probes[0]["ServerAnswers"], probes[-1]["ServerAnswers"]) == (0, 1)
    assert probes[0]["Server"] == "polynya-clustered-server"
    assert "POLYNYA_CLUSTER=polynya-clustered-cheap" in node.file("server.env").splitlines()
    streams = json.loads(node.file("cloudwatch.json"))["logs"]["logs_collected"]["files"]
    assert [one["log_stream_name"] for one in streams["collect_list"]][-2:] == [
        f"{INSTANCE}/server", f"{INSTANCE}/probe",
    ]  # fmt: skip
    assert node.calls == []


@pytest.mark.slow
def test_a_server_starts_beside_the_network_agent_with_a_cluster_of_its_own(
    boot: Boot, assembly: Assembly
) -> None:
    script = user_data(assembly, "borrowed/Gateway")
    (bucket,) = re.findall(r"^SERVER_CONFIG='?s3://(\S+)/project'?$", script, re.MULTILINE)
    boot.s3.create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": REGION})

    node = boot(
        "$BOOT && until grep -m 1 BKT-006 /var/log/polynya/server.log; do sleep 0.2; done"
        " && systemctl is-active polynya-network-agent && systemctl is-active polynya-probe"
        " && cp /etc/polynya/{server,agent}.env /var/lib/polynya/agent.json $SHARED"
        " && echo all-well",
        script=script,
        AWS_ENDPOINT_URL=boot.endpoint,
    )

    assert node.printed.splitlines()[-1] == "all-well", node.printed
    assert json.loads(node.file("agent.json"))["arguments"][0] == "network-agent"
    server, agent = (node.file(f"{name}.env").splitlines() for name in ("server", "agent"))
    assert "POLYNYA_CLUSTER=polynya-borrowed-quick" in server
    assert f"POLYNYA_CLUSTER={CLUSTER}" in agent
    assert not any(line.startswith("POLYNYA_COORDINATION") for line in agent)


@pytest.mark.slow
def test_a_node_whose_agent_stays_down_is_to_be_replaced(boot: Boot) -> None:
    node = boot(
        "$BOOT && systemctl stop polynya-agent && set -a && . /etc/polynya/agent.env"
        " && POLYNYA_HEALTH_SECONDS=1 /opt/polynya/bin/health"
    )

    assert node.calls == ["ready CONTINUE", "poweroff"]
    assert "the agent was down for 1 seconds" in node.printed


def test_what_the_watcher_of_an_agent_says(tmp_path: Path) -> None:
    """Three states of a minute each, with stand-ins for systemd and the switch."""
    script = tmp_path / "systemctl"
    script.write_text(SYSTEMCTL.format(folder=tmp_path))
    script.chmod(0o755)
    (tmp_path / "restarts").write_text("1")
    (tmp_path / "active").touch()
    environment = {
        "PATH": f"{tmp_path}:{os.environ['PATH']}", "POLYNYA_CLUSTER": "main",
        "POLYNYA_CODE": "0123456789abcdef", "POLYNYA_HEALTH_EVERY": "1",
        "POLYNYA_HEALTH_SECONDS": "4",
    }  # fmt: skip
    health = subprocess.Popen(
        ["bash", str(NODE / "health")], env=environment, stdout=subprocess.PIPE, text=True
    )
    assert health.stdout is not None
    time.sleep(2.5)
    (tmp_path / "restarts").write_text("4")
    often = json.loads(health.stdout.readline())
    (tmp_path / "restarts").write_text("1")
    (tmp_path / "active").unlink()
    down = [json.loads(line) for line in health.stdout if line.startswith('{"_aws"')][-1]

    assert health.wait(timeout=30) == 0
    assert (tmp_path / "off").exists()
    assert (often["Cluster"], often["Code"], often["FailingAgents"], often["restarts"]) == (
        "main", "0123456789abcdef", 1, 3,
    )  # fmt: skip
    metric = often["_aws"]["CloudWatchMetrics"][0]
    assert (metric["Namespace"], metric["Dimensions"]) == ("Polynya", [["Cluster", "Code"]])
    assert [one["Name"] for one in metric["Metrics"]] == ["FailingAgents"]
    assert down["down_seconds"] >= 2


SYSTEMCTL = """#!/bin/bash
case $1 in
  is-active) test -e {folder}/active ;;
  show) cat {folder}/restarts ;;
  poweroff) touch {folder}/off ;;
esac
"""


@pytest.mark.slow
@pytest.mark.spark
def test_a_node_runs_the_tasks_that_were_pushed_to_its_bucket(
    boot: Boot, assembly: Assembly, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The real agent with Spark, on what the boot unpacked; tables are on the node's disk."""
    script = user_data(assembly, "clustered/Cluster-cheap")
    script = with_jars(boot, script, tmp_path)
    script = script.replace("READY_SECONDS=360", "READY_SECONDS=120")
    script = script.replace("AGENT_OPTIONS='", "AGENT_OPTIONS='--target node ")
    (bucket, stream) = re.findall(r"s3://(\S+)/project'|--stream (\S+)", script)
    configuration = {"LocationConstraint": REGION}
    boot.s3.create_bucket(Bucket=bucket[0], CreateBucketConfiguration=configuration)
    client("kinesis", boot.endpoint).create_stream(StreamName=stream[1], ShardCount=1)
    project = tmp_path / "shop"
    assert polynya(["init", str(project)]) == 0
    (project / "polynya.yml").write_text(PROJECT.format(bucket=bucket[0]))
    monkeypatch.setenv("AWS_ENDPOINT_URL", boot.endpoint)
    monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)
    assert polynya(["config", "push", "--project", str(project), "--target", "node"]) == 0
    landed = (project / "landing" / "users" / "0001.json").read_text()

    node = boot(
        "mkdir -p /srv/landing/users && cat >/srv/landing/users/0001.json <<'END'\n"
        f"{landed}\nEND\n"
        "mkdir -m 777 /srv/warehouse"
        " && $BOOT && tail -f /var/log/polynya/agent.log | grep -m 1 batch.copied"
        " && systemctl stop polynya-agent && tail -n 1 /var/log/polynya/agent.log",
        script=script,
        TEST_REAL_AGENT="yes",
        AWS_ENDPOINT_URL=boot.endpoint,
    )

    *_, copied, stopped = (json.loads(line) for line in node.printed.splitlines() if line[0] == "{")
    assert (copied["type"], copied["rows_out"]) == ("batch.copied", len(landed.splitlines()))
    assert (stopped["type"], stopped["reason"]) == ("agent.stopped", "SIGTERM")
    assert node.calls == ["ready CONTINUE"]


def with_jars(boot: Boot, script: str, folder: Path) -> str:
    """The script that fetches dependencies in which the jars are the real ones."""
    jars = folder / "jars"
    jars.mkdir()
    for path in jar_paths(groups=("core", "aws")):
        os.link(path, jars / Path(path).name)
    sha256 = write_archive(folder / "real.tar", {"site-packages": STAND_IN, "jars": jars})
    (key,) = re.findall(r"^DEPENDENCIES_URL='?s3://[^/]+/(\S+?)'?$", script, re.MULTILINE)
    boot.s3.upload_file(str(folder / "real.tar"), ASSETS, key)
    return re.sub(r"(?m)^(DEPENDENCIES_SHA256=).*$", rf"\g<1>{sha256}", script)


def test_a_damaged_archive_is_refused_and_the_node_given_back(
    boot: Boot, assembly: Assembly
) -> None:
    script = user_data(assembly, "clustered/Cluster-cheap")
    (key,) = re.findall(r"^DEPENDENCIES_URL='?s3://[^/]+/(\S+?)'?$", script, re.MULTILINE)
    content = bytearray(boot.s3.get_object(Bucket=ASSETS, Key=key)["Body"].read())
    content[1000] ^= 1
    boot.s3.put_object(Bucket=ASSETS, Key=key, Body=bytes(content))

    node = boot("$BOOT; ls -R /opt/polynya/dependencies >$SHARED/left; ls /etc/systemd/system")

    assert "FAILED: the dependencies at s3://" in node.printed
    assert "it was not unpacked" in node.printed
    assert "polynya-agent.service" not in node.printed
    assert "site-packages" not in node.file("left")
    assert node.calls == ["create-log-stream", "put-log-events", "ready ABANDON", "poweroff"]
    # Under its code: two minutes for the alarm of a deploy, one boot for who starts nodes.
    (code,) = re.findall(r"^CODE_SHA256=(\w{16})", script, re.MULTILINE)
    metrics = [line["_aws"]["CloudWatchMetrics"][0]["Metrics"] for line in node.logged]
    assert [[one["Name"] for one in each] for each in metrics] == [
        ["FailingAgents"], ["FailingAgents", "FailedBoots"],
    ]  # fmt: skip
    assert {(line["Cluster"], line["Code"]) for line in node.logged} == {
        ("polynya-clustered-cheap", code)
    }
    report = failed_boot(json.dumps(node.logged[-1]))
    assert (report.step, report.counted) == ("verifying the dependencies", True)
    assert report.reason.startswith("the dependencies at s3://")
    release = release_of(datetime.now(UTC), script)
    assert (release.code, release.configuration) == (code, (ANY, "project/"))
    assert f"LOG_GROUP='{release.log_group}'\n" in script
    (function,) = [
        one for one in resources(assembly.templates["clustered/Cluster-cheap"],
                                 "AWS::Lambda::Function").values()
        if one.get("Handler") == "figures.handler.handle"
    ]  # fmt: skip
    assert function["Environment"]["Variables"]["CODE"] == code


@pytest.mark.slow
@pytest.mark.parametrize(
    ("says", "counted"),
    [("a new error", True), (f'{{"code":"{CONFIGURATION_MISSING.code}"}}', False)],
    ids=["of the release", "nothing was pushed"],
)
def test_an_agent_that_never_gets_ready_gives_the_node_back(
    says: str, counted: bool, boot: Boot, assembly: Assembly
) -> None:
    script = user_data(assembly, "clustered/Cluster-cheap")
    patient = "READY_SECONDS=360\n"
    assert patient in script

    node = boot(
        "$BOOT; echo ended with $?",
        script=script.replace(patient, "READY_SECONDS=2\n"),
        TEST_NEVER_READY="yes",
        TEST_SAYS=says,
    )

    assert "FAILED: the agent was not ready after 2 seconds" in node.printed
    assert "the agent starts" in node.printed  # the end of its log is in that of the boot
    assert "ended with 1" in node.printed
    assert node.calls == ["create-log-stream", "put-log-events", "ready ABANDON", "poweroff"]
    # A first push makes it work: no reason to hold the launches of the group.
    metrics = [line["_aws"]["CloudWatchMetrics"][0]["Metrics"] for line in node.logged]
    names = [one["Name"] for each in metrics for one in each]
    assert names == ["FailingAgents", "FailingAgents", *["FailedBoots"] * counted]
    report = failed_boot(json.dumps(node.logged[-1]))
    assert (report.step, report.counted) == ("starting the agent", counted)
    # With the last error of the agent.
    code = "" if counted else f" {CONFIGURATION_MISSING.code}"
    assert report.reason == f"the agent was not ready after 2 seconds{code}"


def test_user_data_fits_and_names_exactly_what_is_fetched(assembly: Assembly) -> None:
    cheap, steady = (
        user_data(assembly, f"clustered/Cluster-{name}") for name in ("cheap", "steady")
    )

    assert len(cheap.encode()) < 16_384
    own = "--target prod --tasks-of steady"
    options = rf"^AGENT_OPTIONS='--coordination s3://\S+/coordination --stream \S+ {own}'$"
    assert re.search(options, steady, re.MULTILINE)
    assert "/teams/sales'\n" in steady
    keys = set(re.findall(r"s3://[^/]+/(\S+?)'?$", cheap, re.MULTILINE))
    code = {key for _, key in published(assembly, "Clustercheap") if key.endswith(".tar")}
    archive = Dependencies.of(ROOT, assembly.packages, Architecture.ARM64).built()
    assert {key for key in keys if key.endswith(".tar")} == {*code, published_key(archive.sha256)}


def test_without_the_package_nothing_can_be_deployed(assembly: Assembly) -> None:
    (maker,) = [
        source["executable"]
        for source, _ in published(assembly, "Clustersteady")
        if "executable" in source
    ]

    done = subprocess.run(maker, capture_output=True, text=True, check=False)

    assert done.returncode == 1
    assert done.stdout == ""
    assert "error[POLYNYA-STG-004]: the package of x86_64 nodes is not built" in done.stderr
    assert "fix: make package ARCH=x86_64" in done.stderr


def test_systemd_accepts_the_units(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("there is no systemd-analyze here")

    def verify(name: str, **changed: str) -> str:
        # It looks for the programs that a unit starts; on this machine there are none of them.
        text = re.sub(r"/opt/polynya/bin/\w+", "/bin/true", (NODE / name).read_text())
        for old, new in changed.items():
            text = text.replace(old, new)
        (tmp_path / name).write_text(text)
        command = ["systemd-analyze", "verify", "--man=no", tmp_path / name]
        said = subprocess.run(command, capture_output=True, text=True, check=False).stderr
        return "".join(line for line in said.splitlines() if "polynya-" in line)

    assert verify("polynya-agent.service") == ""
    assert verify("polynya-drain.service") == ""
    assert verify("polynya-health.service") == ""
    assert verify("polynya-server.service") == ""
    assert verify("polynya-probe.service") == ""
    assert "KillMood" in verify("polynya-agent.service", KillMode="KillMood")
