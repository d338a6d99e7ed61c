"""`make verify-deploy STAND_IN=1`: a real agent in the place of the node, and the demo capture."""

from __future__ import annotations

from pathlib import Path

import pytest

from stacks.settings.loader import load_deployment
from stacks.verify.__main__ import SystemClock, verify
from tests.stacks.synthesis import ROOT
from tests.stacks.verifying.stand_in import NOT_POSSIBLE, AgentHere, stand_in, synthesized
from tests.stacks.verifying.test_stand_in import results

pytestmark = [
    pytest.mark.spark, pytest.mark.slow, pytest.mark.filterwarnings("ignore:Tried to parse"),
]  # fmt: skip


def test_the_capture_becomes_tables_an_edit_counts_and_another_agent_continues(
    tmp_path: Path,
) -> None:
    dev = load_deployment(ROOT / "config", environment={}).stage("dev")
    stage, templates = synthesized(dev, tmp_path)

    with stand_in(stage, templates, AgentHere(tmp_path)) as world:
        assert verify(world, stage, SystemClock(), tmp_path, confirmed=True) == 0

    said = results((tmp_path / "report.md").read_text())
    assert {name for name, (ending, *_) in said.items() if ending != "passed"} == set(NOT_POSSIBLE)
    assert said["live"][3] == "verify_bank.accounts: 561, verify_bank.lines: 112"
    assert said["resume"][3].endswith("and one more")
