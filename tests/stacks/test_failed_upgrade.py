"""A deploy whose new nodes do not work goes back by itself."""

from __future__ import annotations

import json

import pytest

from tests.stacks.synthesis import Assembly

pytestmark = pytest.mark.synth


def test_a_deploy_goes_back_when_agents_of_its_code_fail_and_not_because_those_before_do(
    assembly: Assembly,
) -> None:
    template = assembly.templates["clustered/Cluster-steady"]
    (group,) = [one for one in template["Resources"].values() if "UpdatePolicy" in one]
    preferences = group["UpdatePolicy"]["AutoScalingInstanceRefresh"]["Preferences"]

    ((logical,),) = [one.values() for one in preferences["AlarmSpecification"]["Alarms"]]
    alarm = template["Resources"][logical]["Properties"]
    (code,) = [one["Value"] for one in alarm["Dimensions"] if one["Name"] == "Code"]
    assert (alarm["Namespace"], alarm["MetricName"]) == ("Polynya", "FailingAgents")
    assert alarm["AlarmName"] == f"polynya-clustered-steady-AgentsFail-{code[:8]}"
    assert f"CODE_SHA256={code}" in json.dumps(template)
    assert preferences["BakeTime"] == 600
