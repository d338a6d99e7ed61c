"""One synthesis for all tests of the stacks: starting the CDK library costs some seconds."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from polynya_constructs.cluster.instance_types import Architecture
from tests.absent import absent
from tests.stacks.deploy_to_moto import DeployedStage, deployed_stage
from tests.stacks.synthesis import Assembly, made_up_stages, small_package, synthesize

STAND_IN = Path(__file__).parent / "machine" / "site-packages"


@pytest.fixture(scope="session")
def assembly(tmp_path_factory: pytest.TempPathFactory) -> Assembly:
    """The stages and the pipeline of `config/`, and the stages that are made up."""
    if shutil.which("node") is None:
        absent("the CDK library needs Node.js, without which no gate of the stacks can be run")
    packages = tmp_path_factory.mktemp("packages")
    small_package(packages, STAND_IN, Architecture.ARM64)
    return synthesize(tmp_path_factory.mktemp("cdk.out"), packages=packages, extra=made_up_stages())


@pytest.fixture(scope="module")
def deployed(assembly: Assembly) -> Iterator[DeployedStage]:
    """The stage with clusters and every engine, in a stand-in for AWS."""
    with deployed_stage(assembly.templates, "clustered") as stage:
        yield stage
