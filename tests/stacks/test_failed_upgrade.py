"""A deploy whose new nodes do not work goes back by itself."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.stacks.house_rules import Template
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


def test_the_function_that_holds_launches_knows_the_new_code_while_the_group_refreshes(
    assembly: Assembly,
) -> None:
    """A refresh waits for launches; who resumes them may not wait for the refresh."""
    template = assembly.templates["clustered/Cluster-steady"]
    (function,) = [
        name
        for name, one in template["Resources"].items()
        if one["Type"] == "AWS::Lambda::Function"
        and one["Properties"].get("Handler") == "figures.handler.handle"
    ]
    (group,) = [name for name, one in template["Resources"].items() if "UpdatePolicy" in one]

    (policy,) = [
        name
        for name, one in template["Resources"].items()
        if one["Type"] == "AWS::AutoScaling::ScalingPolicy" and group in waits_for(template, name)
    ][:1]
    assert group in waits_for(template, policy)  # which is how waiting is seen here
    assert group not in waits_for(template, function)


def test_nodes_of_a_release_are_told_by_the_number_of_their_template(assembly: Assembly) -> None:
    """The function compares it with that of nodes, which is never `$Latest`."""
    for cluster in ("cheap", "steady"):
        template = assembly.templates[f"clustered/Cluster-{cluster}"]
        (group,) = [one for one in template["Resources"].values() if "UpdatePolicy" in one]
        launched = group["Properties"]["MixedInstancesPolicy"]["LaunchTemplate"]
        version = launched["LaunchTemplateSpecification"]["Version"]
        assert version["Fn::GetAtt"][1] == "LatestVersionNumber"


def waits_for(template: Template, name: str) -> set[str]:
    """The resources that CloudFormation changes before this one."""
    found: set[str] = set()
    left = [name]
    while left:
        resource = template["Resources"][left.pop()]
        new = {one for one in referred(resource) if one in template["Resources"]} - found
        found |= new
        left += new
    return found


def referred(value: Any) -> set[str]:
    """The logical ids in a part of a template, in which only a reference spells one out."""
    if isinstance(value, dict):
        return {one for each in value.values() for one in referred(each)}
    if isinstance(value, list):
        return {one for each in value for one in referred(each)}
    # `Fn::GetAtt` may be written `NAME.Attribute`, and `Fn::Sub` has `${NAME}` in its text.
    return set(re.findall(r"\w+", value)) if isinstance(value, str) else set()
