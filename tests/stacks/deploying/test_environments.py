"""Every way to say where stages and the pipeline are synthesizes, or is refused with its line."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from polynya.model.errors import ConfigErrors, DependencyError
from polynya_constructs.cluster.instance_types import Architecture
from stacks.fetched import check_packages
from stacks.settings.loader import load_deployment
from tests.absent import absent
from tests.lab.chosen import slow
from tests.stacks.house_rules import resources
from tests.stacks.synthesis import (
    ROOT,
    Assembly,
    findings,
    small_package,
    synthesize_deployment,
    with_pipeline,
)

HERE, THERE = "111111111111", "222222222222"
"""Accounts of stage `dev`, and of a stage that is promoted to another account."""

DEV: Mapping[str, str] = {
    "nowhere": "",
    "region": "region: eu-central-1\n",
    "both": f"account: '{HERE}'\nregion: eu-central-1\n",
}
PROD: Mapping[str, str] = {
    "nowhere": "",
    "same": f"account: '{HERE}'\nregion: eu-central-1\n",
    "region": f"account: '{HERE}'\nregion: eu-west-1\n",
    "account": f"account: '{THERE}'\nregion: eu-central-1\n",
    "both": f"account: '{THERE}'\nregion: eu-west-1\n",
}
PIPELINE: Mapping[str, str | None] = {
    "none": None,
    "nowhere": "",
    "both": f"account: '{HERE}'\nregion: eu-central-1\n",
}
# All pairs of the three, and not all of their combinations; the first three for every push.
PAIRS = [
    ("nowhere", "nowhere", "nowhere"),
    ("region", "account", "both"),
    ("both", "both", "nowhere"),
    ("nowhere", "same", "both"),
    ("nowhere", "region", "none"),
    ("nowhere", "both", "both"),
    ("region", "nowhere", "both"),
    ("region", "same", "none"),
    ("both", "nowhere", "none"),
    ("both", "same", "nowhere"),
    ("both", "region", "nowhere"),
    ("both", "account", "nowhere"),
]
REFUSED = [
    ("nowhere", "account", "account 222222222222 and region eu-central-1, and the account and reg"),
    ("nowhere", "same", "account 111111111111 and region eu-central-1, and the account and region"),
    ("region", "region", "account 111111111111 and region eu-west-1, and the account of the pipel"),
    ("region", "both", "account 222222222222 and region eu-west-1, and the account of the pipelin"),
]  # fmt: skip
SMALL = """apiVersion: polynya/v1
kind: stage
name: {name}
network: {{cidr: 10.{net}.0.0/16}}
stream: {{enabled: false}}
athena: {{enabled: false}}
"""


def files(folder: Path, dev: str, prod: str, pipeline: str) -> Path:
    """A folder `config/` with two small stages, and the pipeline that is shipped."""
    folder = folder / "config"
    folder.mkdir()
    (folder / "dev.yml").write_text(SMALL.format(name="dev", net=40) + DEV[dev])
    (folder / "prod.yml").write_text(SMALL.format(name="prod", net=41) + PROD[prod])
    environment = PIPELINE[pipeline]
    if environment is not None:
        example = (ROOT / "config" / "examples" / "pipeline.yml").read_text()
        (folder / "pipeline.yml").write_text(example + environment)
    return folder


def synthesized(tmp_path: Path, folder: Path) -> Assembly:
    if shutil.which("node") is None:
        absent("the CDK library needs Node.js, without which no gate of the stacks can be run")
    deployment = load_deployment(folder, environment={})
    out = tmp_path / "cdk.out"
    return synthesize_deployment(out, deployment, packages=tmp_path, removable="none")


def errors(assembly: Assembly) -> list[str]:
    return [line for line in findings(assembly.directory) if "Annotation" not in line]


@pytest.mark.parametrize(
    ("dev", "prod", "pipeline"), [*PAIRS[:3], *(slow(*one) for one in PAIRS[3:])]
)
def test_stages_and_pipeline_synthesize_wherever_they_are(
    tmp_path: Path, dev: str, prod: str, pipeline: str
) -> None:
    assembly = synthesized(tmp_path, files(tmp_path, dev, prod, pipeline))

    assert errors(assembly) == []
    assert ("Pipeline" in assembly.templates) == (pipeline != "none")


@pytest.mark.parametrize(("dev", "prod", "said"), REFUSED)
def test_a_pipeline_that_does_not_know_where_it_is_promotes_to_nowhere_else(
    tmp_path: Path, dev: str, prod: str, said: str
) -> None:
    folder = files(tmp_path, dev, prod, "nowhere")

    with pytest.raises(ConfigErrors) as raised:
        load_deployment(folder, environment={})

    (line,) = str(raised.value).splitlines()
    assert line.startswith("config/pipeline.yml:12:5: promotions[1].stage: stage `prod` is in ")
    assert said in line
    assert line.endswith("write `account` and `region` here, or in config/dev.yml")


def test_the_stages_of_the_repository_are_promoted_to_another_account_and_region(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "config"
    folder.mkdir()
    with_pipeline(folder)
    for name, where in (("dev", DEV["both"]), ("prod", PROD["both"])):
        with (folder / f"{name}.yml").open("a") as file:
            file.write(where)
    small_package(tmp_path, ROOT / "config" / "examples", Architecture.ARM64)

    assembly = synthesized(tmp_path, folder)

    assert errors(assembly) == []
    # The other account may fetch what it deploys, and decrypt it.
    for path, account in (("Pipeline", HERE), ("Pipeline-eu-west-1", THERE)):
        for kind in ("AWS::S3::BucketPolicy", "AWS::KMS::Key"):
            policies = str(resources(assembly.templates[path], kind))
            assert f":iam::{account}:role/cdk-hnb659fds-deploy-role-{account}-" in policies, path
    # What is deployed next is looked for where its own templates say.
    asked: list[tuple[str, ...]] = []

    def exists(*address: str) -> bool:
        asked.append(address)
        return False

    with pytest.raises(DependencyError) as raised:
        check_packages(assembly.directory, "prod", exists)
    ((account, region, bucket, key),) = asked
    assert (account, region) == (THERE, "eu-west-1")
    assert bucket == f"cdk-hnb659fds-assets-{THERE}-eu-west-1"
    assert f"stack polynya-prod-cluster-main would find no s3://{bucket}/{key}" in str(raised.value)
    check_packages(assembly.directory, "prod", lambda *_: True)
