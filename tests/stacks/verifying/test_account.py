"""The edge of a real account: which commands it gives to the CDK, and what those then read."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import app
from polynya.model.error_catalogue.cluster import PACKAGE_ELSEWHERE
from polynya_constructs.cluster.instance_types import Architecture
from stacks.settings.cluster import NetworkAgentSettings
from stacks.settings.loader import Deployment, load_deployment
from stacks.settings.stage import StageConfig
from stacks.verify import account as verified
from stacks.verify.__main__ import SystemClock, main
from stacks.verify.account import Account
from stacks.verify.run import StepError
from stacks.verify.throwaway import write_stage
from tests.stacks.synthesis import BOOT, ROOT

pytestmark = pytest.mark.synth


class Commands:
    """Stands in for processes: notes the commands, and ends with a code."""

    def __init__(self, code: int = 0) -> None:
        self.given: list[list[str]] = []
        self.code = code

    def run(self, command: list[str], **_options: Any) -> subprocess.CompletedProcess[str]:
        self.given.append(command)
        if "--outputs-file" in command:
            written = {"polynya-verify-storage": {"LandingBucketName": "l"},
                       "polynya-verify-cluster-main": {"GroupName": "g"}}  # fmt: skip
            Path(command[command.index("--outputs-file") + 1]).write_text(json.dumps(written))
        return subprocess.CompletedProcess(command, self.code, "", "")


@pytest.fixture
def account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Account:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    return Account(throw_away(tmp_path), SystemClock(), tmp_path)


def test_only_the_throw_away_stage_is_deployed_and_destroyed_with_its_data(
    account: Account, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands = Commands()
    monkeypatch.setattr(subprocess, "run", commands.run)

    assert account.up() == {
        "Storage": {"LandingBucketName": "l"},
        "Cluster-main": {"GroupName": "g"},
    }
    account.down()

    for command, verb in zip(commands.given, ("deploy", "destroy"), strict=True):
        assert command[4:6] == [verb, "verify/*"]
        assert f"polynya:configuration={tmp_path / 'config'}" in command
        assert "polynya:removeDataOnDestroy=verify" in command
    monkeypatch.setattr(subprocess, "run", Commands(1).run)
    with pytest.raises(StepError, match="`cdk destroy` failed"):
        account.down()


def test_the_trial_is_where_the_command_line_deploys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-3")
    monkeypatch.setenv("AWS_REGION", "eu-north-1")

    there = Account(throw_away(tmp_path), SystemClock(), tmp_path)

    assert there.region == there.client("s3").meta.region_name == "eu-north-1"


def test_the_trial_builds_what_its_network_agent_boots_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = {"architecture": "x86_64", "boot": BOOT}
    stage = throw_away(tmp_path)
    (cluster,) = stage.clusters
    stage = stage.model_copy(
        update={
            "clusters": (cluster.model_copy(update=own),),
            "network_agent": NetworkAgentSettings(),
        }
    )
    built: list[Architecture] = []
    monkeypatch.setattr(verified, "build_dependencies", lambda *given: built.append(given[2]))
    monkeypatch.setattr(verified, "archives", lambda *_: [])

    Account(stage, SystemClock(), tmp_path).publish()

    assert built == [Architecture.ARM64]


def throw_away(folder: Path) -> StageConfig:
    """The stage that a trial like `dev` deploys."""
    dev = load_deployment(ROOT / "config", environment={}).stage("dev")
    return write_stage(dev, folder / "config")


def test_the_app_reads_the_folder_that_the_command_names(
    account: Account, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert account.endpoint is None
    context = {"polynya:configuration": str(tmp_path / "config")}
    whole = app.cdk.App
    # The command line hands the context on in the environment of the CDK's own process.
    monkeypatch.setattr(app.cdk, "App", lambda: whole(context=context))
    built: list[Deployment] = []

    class Nothing:
        def synth(self) -> None:
            pass

    def build(_app: object, deployment: Deployment) -> Nothing:
        built.append(deployment)
        return Nothing()

    monkeypatch.setattr(app, "build_app", build)

    assert app.main() == 0
    (deployment,) = built
    assert [stage.name for stage in deployment.stages] == ["verify"]
    assert deployment.stages[0].remove_data


def test_a_deploy_ends_before_cloudformation_when_the_package_is_elsewhere(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = app.cdk.App
    context = {app.DEPLOYED_CONTEXT: "dev"}
    monkeypatch.setattr(app.cdk, "App", lambda: whole(context=context))
    monkeypatch.setattr(app, "build_app", lambda *_: SimpleNamespace(synth=lambda: None))

    def elsewhere(_directory: Path, stage: str) -> None:
        raise PACKAGE_ELSEWHERE(stack="polynya-dev", bucket="assets", key="a.tar", stage=stage)

    monkeypatch.setattr(app, "check_packages", elsewhere)

    assert app.main() == 4
    said = capsys.readouterr().err
    assert "POLYNYA-STG-007" in said
    assert "make publish STAGE=dev" in said


def test_without_a_confirmation_nothing_is_done(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    commands = Commands()
    monkeypatch.setattr(subprocess, "run", commands.run)

    assert main(["--stage", "dev"]) == 2

    said = capsys.readouterr().out
    assert "nothing was done" in said
    assert "add YES=1" in said
    assert commands.given == []
    # What the page shows.
    page = (ROOT / "docs" / "deploy.md").read_text()
    assert said.partition("\n\n")[0] in page
