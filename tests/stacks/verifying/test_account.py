"""The edge of a real account: which commands it gives to the CDK, and what those then read."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

import app
from stacks.settings.loader import Deployment, load_deployment
from stacks.verify.__main__ import SystemClock, main
from stacks.verify.account import Account
from stacks.verify.run import StepError
from stacks.verify.throwaway import write_stage
from tests.stacks.synthesis import ROOT

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
    dev = load_deployment(ROOT / "config", environment={}).stage("dev")
    return Account(write_stage(dev, tmp_path / "config"), SystemClock(), tmp_path)


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
