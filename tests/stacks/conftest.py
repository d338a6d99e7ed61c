"""One synthesis for all tests of the stacks: starting the CDK library costs some seconds."""

from __future__ import annotations

import os
import shutil

import pytest

from tests.stacks.synthesis import Assembly, made_up_stages, synthesize


@pytest.fixture(scope="session")
def assembly(tmp_path_factory: pytest.TempPathFactory) -> Assembly:
    """The stages and the pipeline of `config/`, and the stages that are made up."""
    if shutil.which("node") is None:
        if "CI" in os.environ:
            pytest.fail("without Node.js no gate of the stacks can be run")
        pytest.skip("the CDK library needs Node.js; where CI is set this is a failure")
    return synthesize(tmp_path_factory.mktemp("cdk.out"), extra=made_up_stages())
