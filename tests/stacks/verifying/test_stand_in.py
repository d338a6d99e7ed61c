"""`make verify-deploy` on the stand-in: whole, as far as that goes, and with a failure in it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from stacks.settings.loader import load_deployment
from stacks.settings.stage import StageConfig
from stacks.verify.__main__ import SystemClock, verify
from tests.stacks.house_rules import Template
from tests.stacks.synthesis import ROOT
from tests.stacks.verifying.stand_in import StandIn, stand_in, synthesized

pytestmark = [pytest.mark.synth, pytest.mark.filterwarnings("ignore:Tried to parse")]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[StageConfig, dict[str, Template]]:
    dev = load_deployment(ROOT / "config", environment={}).stage("dev")
    return synthesized(dev, tmp_path_factory.mktemp("verify"))


@pytest.fixture
def world(made: tuple[StageConfig, dict[str, Template]]) -> Iterator[StandIn]:
    with stand_in(*made) as edge:
        yield edge


def results(report: str) -> dict[str, list[str]]:
    """Result, how real it was, seconds and what was seen of each step."""
    lines = [line.strip("|").split(" | ") for line in report.splitlines() if line.startswith("| ")]
    steps = [[cell.strip() for cell in cells] for cells in lines if len(cells) == 6]
    return {name: cells for name, *cells in steps if name != "step"}


def test_the_whole_run_creates_tries_and_removes(
    world: StandIn, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert verify(world, world.stage, SystemClock(), tmp_path, confirmed=True) == 0

    report = (tmp_path / "report.md").read_text()
    assert capsys.readouterr().out.endswith(f"\n{report}\n")
    said = results(report)
    passed = {name for name, (ending, *_) in said.items() if ending == "passed"}
    assert passed == {
        "account", "package", "deploy", "push", "land", "wake", "interrupt", "replace", "empty",
        "destroy", "left",
    }  # fmt: skip
    assert {name for name, (ending, *_) in said.items() if ending == "skipped"} == {
        "guard", "live", "edit", "resume", "unfault",
    }  # fmt: skip
    # Nothing here claims to be real, and what was skipped says why.
    assert not any(how == "real" for _, how, *_ in said.values())
    assert said["live"][1].startswith("not possible: no machine boots")
    assert said["land"][3].startswith("5 files")
    assert world.client("s3").list_buckets()["Buckets"] == [
        bucket
        for bucket in world.client("s3").list_buckets()["Buckets"]
        if "assets" in bucket["Name"]
    ]


@pytest.mark.slow
def test_a_failure_in_the_middle_is_reported_and_still_leaves_nothing(
    world: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_group: str) -> None:
        raise RuntimeError("AccessDenied: SetDesiredCapacity")

    monkeypatch.setattr(world, "landed", refused)

    assert verify(world, world.stage, SystemClock(), tmp_path, confirmed=True) == 1

    said = results((tmp_path / "report.md").read_text())
    assert said["land"][0] == "FAILED"
    assert said["land"][3] == "RuntimeError: AccessDenied: SetDesiredCapacity"
    assert said["wake"][0] == said["replace"][0] == "skipped"
    assert [said[name][0] for name in ("empty", "destroy", "left")] == ["passed"] * 3
    # What had landed before was deleted first.
    assert int(said["empty"][3].split()[0]) >= 4
    assert world.client("cloudformation").describe_stacks()["Stacks"] == []
