"""Any stage file may follow any other: no stack takes away what another one still reads."""

from __future__ import annotations

import copy
import itertools
import json
import re

import pytest

from tests.stacks.house_rules import Template
from tests.stacks.synthesis import Assembly

pytestmark = pytest.mark.synth

# Between them: every strategy, own boot and ours, none to two clusters, every engine and none, what
# exists and what is made, a stream and none.
STAGES = ("dev", "prod", "borrowed", "removable", "clustered", "halfway")


def of_stage(templates: dict[str, Template], stage: str) -> dict[str, Template]:
    """The stacks of a stage, as they were if it had the name of every other one."""
    return {
        path.removeprefix(f"{stage}/"): json.loads(
            re.sub(rf"polynya([-/]){stage}\b", r"polynya\1STAGE", json.dumps(template))
        )
        for path, template in templates.items()
        if path.startswith(f"{stage}/")
    }


def given(stage: dict[str, Template]) -> set[str]:
    """What the stacks of a stage export, or write as a parameter."""
    found = set()
    for template in stage.values():
        outputs = template.get("Outputs", {}).values()
        found |= {str(out["Export"]["Name"]) for out in outputs if "Export" in out}
        found |= {
            resource["Properties"]["Name"]
            for resource in template["Resources"].values()
            if resource["Type"] == "AWS::SSM::Parameter"
        }
    return found


def used(stage: dict[str, Template]) -> set[str]:
    """What the stacks of a stage import, or read as a parameter of the project."""
    found = set(re.findall(r'"Fn::ImportValue": "([^"]+)"', json.dumps(stage)))
    for template in stage.values():
        for parameter in template.get("Parameters", {}).values():
            # What a cluster launches stays as long as its stack, which no edit of the file ends.
            name = str(parameter.get("Default"))
            if name.startswith("/polynya/") and "/cluster/" not in name:
                found.add(name)
    return found


def taken_away(before: dict[str, Template], after: dict[str, Template]) -> set[str]:
    """What the stacks of `before` use of each other and `after` no longer gives."""
    return used(before) - given(after)


@pytest.fixture(scope="module")
def stages(assembly: Assembly) -> dict[str, dict[str, Template]]:
    return {stage: of_stage(assembly.templates, stage) for stage in STAGES}


def test_no_edit_of_a_stage_file_deadlocks(stages: dict[str, dict[str, Template]]) -> None:
    assert any(len(used(stage)) >= 5 for stage in stages.values())
    for before, after in itertools.product(stages, stages):
        assert taken_away(stages[before], stages[after]) == set(), f"{before} -> {after}"


def test_nothing_is_exported(assembly: Assembly) -> None:
    """CloudFormation would refuse to change the value of an export that somebody imports."""
    for path, template in assembly.templates.items():
        assert "Fn::ImportValue" not in json.dumps(template), path
        assert not any("Export" in out for out in template.get("Outputs", {}).values()), path


def test_a_value_that_goes_with_its_reader_is_caught(
    stages: dict[str, dict[str, Template]],
) -> None:
    before, after = stages["clustered"], copy.deepcopy(stages["halfway"])
    resources = after["Storage"]["Resources"]
    (stream,) = [n for n, r in resources.items() if "workload-stream" in str(r["Properties"])
                 and r["Type"] == "AWS::SSM::Parameter"]  # fmt: skip
    del resources[stream]

    assert taken_away(before, after) == {"/polynya/STAGE/workload-stream-arn"}


def test_an_export_that_is_dropped_is_caught() -> None:
    exported = {"A": {"Resources": {}, "Outputs": {"X": {"Export": {"Name": "a:X"}}}}}
    reader = {"Type": "T", "Properties": {"P": {"Fn::ImportValue": "a:X"}}}
    imports = {"B": {"Resources": {"R": reader}}}

    assert taken_away({**exported, **imports}, {"A": {"Resources": {}}}) == {"a:X"}
