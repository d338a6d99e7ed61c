"""`make verify-deploy STAND_IN=1`: the same steps on a stand-in for AWS, as far as that goes.

The stand-in holds what the templates ask for. What it cannot do is not acted: a step that needs it
is skipped, and the report says why. A real agent runs on this machine in place of a node.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3
import pytest

from polynya_constructs.cluster.instance_types import Architecture
from polynya_constructs.functions.wake.handler import look, wake
from polynya_constructs.packaging.package import Archive
from stacks.publish import publish
from stacks.settings.loader import Deployment, load_deployment
from stacks.settings.stage import StageConfig
from stacks.verify.__main__ import SystemClock, verify
from stacks.verify.edge import Outputs
from stacks.verify.steps import Fidelity
from stacks.verify.throwaway import NAME, write_stage
from tests.aws import REGION, aws_server, client
from tests.oracle.packs.driver import ROOT, command, environment
from tests.stacks.deploy_to_moto import ASSETS, deploy
from tests.stacks.house_rules import Template
from tests.stacks.synthesis import small_package, synthesize_deployment

_NO_NODE = "no machine boots in the stand-in, and no agent was asked for"
_MOTO = "moto in place of AWS"
STOOD_IN = {
    "account": _MOTO,
    "package": "an empty archive, and moto's S3",
    "deploy": "moto loads the templates that were synthesized; it skips what it does not know",
    "push": "the real command, on moto's S3",
    "land": "the real capture, on moto's S3",
    "wake": "the function's code, called here: moto delivers no event of S3",
    "live": "the real agent and engine on this machine; moto's S3 and Glue",
    "edit": "the same",
    "interrupt": "moto ends the instance, and the agent is told as systemd would tell it",
    "replace": "moto's group",
    "resume": "the real agent and engine on this machine; moto's S3 and Glue",
    "empty": _MOTO,
    "destroy": _MOTO,
    "left": _MOTO,
}
NOT_POSSIBLE = {
    "guard": "moto enforces no bucket policy; tests/stacks/iam judges it",
    "unfault": "there is no Fault Injection Service here",
}
NEEDS_NODE = {"live", "edit", "resume"}


class StandIn:
    """A moto server in the place of an account."""

    account: str | None = None
    region = REGION

    def __init__(
        self,
        endpoint: str,
        stage: StageConfig,
        templates: dict[str, Template],
        node: AgentHere | None = None,
    ) -> None:
        self.endpoint: str | None = endpoint
        self.stage, self._templates, self._node = stage, templates, node
        self._outputs: dict[str, dict[str, str]] = {}
        self._address = endpoint

    def fidelity(self, step: str) -> tuple[Fidelity, str]:
        if step in NOT_POSSIBLE:
            return Fidelity.NOT_POSSIBLE, NOT_POSSIBLE[step]
        if step in NEEDS_NODE and self._node is None:
            return Fidelity.NOT_POSSIBLE, _NO_NODE
        return Fidelity.STOOD_IN, STOOD_IN[step]

    def client(self, service: str) -> Any:
        return client(service, self._address)

    def publish(self) -> str:
        here = {"LocationConstraint": REGION}
        self.client("s3").create_bucket(Bucket=ASSETS, CreateBucketConfiguration=here)
        with tempfile.NamedTemporaryFile() as file:
            path = Path(file.name)
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            return publish(boto3.Session(), self.stage, Archive("0" * 64, path, digest))

    def up(self) -> Outputs:
        parts = [path.removeprefix(f"{NAME}/") for path in self._templates]
        parts.sort(key=lambda part: part not in {"Network", "Storage"})
        for part in parts:
            template = self._templates[f"{NAME}/{part}"]
            name = f"polynya-{NAME}-{part.lower()}"
            self._outputs[part] = deploy(self.client, name, template)
        return self._outputs

    def down(self) -> None:
        if self._node:
            self._node.stop()
        self._delete_what_moto_forgets()
        cloudformation = self.client("cloudformation")
        for part in reversed(self._outputs):
            cloudformation.delete_stack(StackName=f"polynya-{NAME}-{part.lower()}")

    def _delete_what_moto_forgets(self) -> None:
        """Route tables and flow logs, as its CloudFormation does not; databases, made beside it."""
        ec2, glue = self.client("ec2"), self.client("glue")
        vpc = self._outputs["Network"]["VpcId"]
        logs = ec2.describe_flow_logs(Filters=[{"Name": "resource-id", "Values": [vpc]}])
        ec2.delete_flow_logs(FlowLogIds=[each["FlowLogId"] for each in logs["FlowLogs"]])
        tables = ec2.describe_route_tables(Filters=[{"Name": "vpc-id", "Values": [vpc]}])
        for table in tables["RouteTables"]:
            if not any(each.get("Main") for each in table["Associations"]):
                for each in table["Associations"]:
                    ec2.disassociate_route_table(AssociationId=each["RouteTableAssociationId"])
                ec2.delete_route_table(RouteTableId=table["RouteTableId"])
        for database in glue.get_databases()["DatabaseList"]:
            glue.delete_database(Name=database["Name"])

    def landed(self, group: str) -> None:
        autoscaling = self.client("autoscaling")
        wake(autoscaling, look(autoscaling, group))
        if self._node:
            self._node.start(self._outputs["Storage"]["ConfigurationBucketName"])

    def rows(self, view: str) -> int | None:
        assert self._node
        return self._node.rows(view)

    def interrupt(self, instance: str) -> None:
        if self._node:
            self._node.stop()
        self.client("autoscaling").terminate_instance_in_auto_scaling_group(
            InstanceId=instance, ShouldDecrementDesiredCapacity=False
        )

    def forget_faults(self) -> None:
        raise AssertionError("it is not possible, so nothing asks for it")


class AgentHere:
    """The agent in a process of its own, where a node would be, and queries beside it."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._project = folder, folder / "project"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, configuration: str) -> None:
        if self._process and self._process.poll() is None:
            return
        line = command(
            "agent", "--poll-seconds", "1", "--config", f"s3://{configuration}/project",
            "--target", NAME, "--work", str(self._folder / "work"),
        )  # fmt: skip
        with (self._folder / "agent.jsonl").open("ab") as sink:
            self._process = subprocess.Popen(
                line, env=environment(), cwd=ROOT, stdout=sink, stderr=sink, start_new_session=True
            )

    def stop(self) -> None:
        """Drain it, as systemd does."""
        if self._process and self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGTERM)
            try:
                self._process.wait(100)
            except subprocess.TimeoutExpired:
                os.killpg(self._process.pid, signal.SIGKILL)

    def rows(self, view: str) -> int | None:
        # A query knows the tasks of its project: those that are in force, an edit included.
        self._run("config", "pull")
        done = self._run("query", f"SELECT count(*) AS n FROM {view}", "--json", "--quiet")
        if done.returncode:
            return None
        (answer,) = [json.loads(each) for each in done.stdout.splitlines() if each]
        return int((answer["rows"][0] if "rows" in answer else answer)["n"])

    def _run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        line = command(*arguments, "--project", str(self._project))
        return subprocess.run(
            line, env=environment(), cwd=ROOT, capture_output=True, text=True, check=False
        )


def synthesized(like: StageConfig, folder: Path) -> tuple[StageConfig, dict[str, Template]]:
    """The throw-away stage of a stage, and its templates."""
    stage = write_stage(like, folder / "config")
    small_package(folder / "packages", folder / "config", Architecture.ARM64)
    only = Deployment((stage,), None)
    assembly = synthesize_deployment(
        folder / "cdk.out", only, packages=folder / "packages", removable=NAME
    )
    return stage, assembly.templates


@contextmanager
def stand_in(
    stage: StageConfig, templates: dict[str, Template], node: AgentHere | None = None
) -> Iterator[StandIn]:
    """An empty stand-in; `node` is where an agent runs in the place of one."""
    with aws_server() as endpoint, pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", endpoint)
        patch.setenv("AWS_DEFAULT_REGION", REGION)
        try:
            yield StandIn(endpoint, stage, templates, node)
        finally:
            if node:
                node.stop()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it; nothing needs to be confirmed, for nothing is created."""
    parser = argparse.ArgumentParser(prog="make verify-deploy STAND_IN=1", description=__doc__)
    parser.add_argument("--stage", required=True, help="the stage that the trial is like")
    parser.add_argument("--yes", action="store_true", help="nothing here needs it")
    like = load_deployment(ROOT / "config").stage(parser.parse_args(arguments).stage)
    folder = ROOT / "build" / "verify" / "stand-in"
    shutil.rmtree(folder, ignore_errors=True)  # an agent would go on with the run before
    folder.mkdir(parents=True)
    stage, templates = synthesized(like, folder)
    with stand_in(stage, templates, AgentHere(folder)) as edge:
        return verify(edge, stage, SystemClock(), folder, confirmed=True)


if __name__ == "__main__":
    sys.exit(main())
