"""The region of a stage that names none is the one to which the CDK's command line deploys."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from polynya.model.errors import ConfigError
from stacks import images
from stacks.region import environment_region, stage_region
from stacks.settings.loader import Deployment
from stacks.settings.stage import StageConfig
from tests.absent import absent
from tests.lab.chosen import slow
from tests.stacks.synthesis import ROOT

PROFILES = """[default]
region = eu-west-3
[profile dev]
region = eu-south-1
[profile bare]
output = json
"""
FIRST, SECOND = "eu-north-1", "eu-west-2"
CASES: dict[str, tuple[dict[str, str], str | None]] = {
    "all": ({"AWS_REGION": FIRST, "AWS_DEFAULT_REGION": SECOND, "AWS_PROFILE": "dev"}, FIRST),
    "the region": ({"AWS_REGION": FIRST}, FIRST),
    "the default region": ({"AWS_DEFAULT_REGION": SECOND, "AWS_PROFILE": "dev"}, SECOND),
    "a profile": ({"AWS_PROFILE": "dev"}, "eu-south-1"),
    "a profile without region": ({"AWS_PROFILE": "bare"}, "eu-west-3"),
    "nothing": ({"AWS_CONFIG_FILE": "/nowhere"}, None),
}
NAMES = ("AWS_REGION", "AMAZON_REGION", "AWS_DEFAULT_REGION", "AMAZON_DEFAULT_REGION",
         "AWS_PROFILE", "AWS_DEFAULT_PROFILE")  # fmt: skip


@pytest.fixture(params=CASES)
def expected(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> str | None:
    """The region of an environment, which this process has meanwhile."""
    (tmp_path / "config").write_text(PROFILES)
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    variables, region = CASES[request.param]
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    return region


def stage(**settings: str) -> StageConfig:
    head = {"apiVersion": "polynya/v1", "kind": "stage", "name": "dev"}
    return StageConfig.model_validate({**head, **settings})


@pytest.mark.parametrize(
    # Each starts the command line of the CDK.
    "expected",
    [one if one in {"all", "nothing"} else slow(one) for one in CASES],
    indirect=True,
)
def test_package_and_images_go_where_the_command_line_deploys(
    expected: str | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert environment_region() == expected
    # The command line tells the app where it deploys to; without a region it takes the first.
    assert deployed_region(tmp_path) == (expected or "us-east-1")
    asked: list[str] = []
    monkeypatch.setattr(images, "load_deployment", lambda _: Deployment((stage(),), None))
    monkeypatch.setattr(
        images, "newest", lambda session, _: asked.append(session.region_name) or {}
    )
    assert images.main(["--stage", "dev"]) == (0 if expected else 2)
    assert asked == ([expected] if expected else [])


def test_without_a_region_nothing_is_uploaded(
    monkeypatch: pytest.MonkeyPatch, expected: str | None
) -> None:
    assert stage_region(stage(region="eu-central-2")) == "eu-central-2"
    if expected:
        assert stage_region(stage()) == expected
        return
    with pytest.raises(ConfigError) as raised:
        stage_region(stage())
    assert raised.value.code == "POLYNYA-STG-006"
    assert "config/dev.yml" in str(raised.value)


def deployed_region(folder: Path) -> str:
    """The region that the CDK's command line hands to an app."""
    cli = ROOT / "node_modules" / ".bin" / "cdk"
    if shutil.which("node") is None or not cli.exists():
        absent("the CDK's command line needs Node.js, and `make synth` installs it")
    out = folder / "region"
    environment = {
        **os.environ,
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
        "CDK_DISABLE_CLI_TELEMETRY": "1",
        "HOME": str(folder),
    }
    app = f"printf %s $CDK_DEFAULT_REGION >{out}; exit 1"
    command = [cli, "--no-notices", "list", "--app", app]
    subprocess.run(command, cwd=folder, env=environment, check=False, capture_output=True)
    return out.read_text()
