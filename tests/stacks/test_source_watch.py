"""What looks at the sources of an empty cluster, as it is deployed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from polynya_constructs.cluster.source_watch import sources_key
from tests.stacks.house_rules import resources
from tests.stacks.scaling.cloudwatch import Metrics
from tests.stacks.scaling.policies import value_of_alarm
from tests.stacks.synthesis import Assembly

pytestmark = pytest.mark.synth

FED, PLAIN, STEADY = "clustered/Cluster-asleep", "dev/Cluster-main", "prod/Cluster-main"


def functions(assembly: Assembly, stack: str) -> dict[str, dict[str, Any]]:
    """The functions of a stack by what is called in them."""
    found = resources(assembly.templates[stack], "AWS::Lambda::Function").values()
    return {function["Handler"]: function for function in found}


def test_an_empty_cluster_is_looked_at_each_minute(assembly: Assembly) -> None:
    template = assembly.templates[PLAIN]
    (rule,) = [
        rule
        for rule in resources(template, "AWS::Events::Rule").values()
        if "looks at the sources" in rule["Description"]
    ]
    (target,) = rule["Targets"]

    called = template["Resources"][target["Arn"]["Fn::GetAtt"][0]]["Properties"]
    assert (rule["ScheduleExpression"], rule["State"]) == ("rate(1 minute)", "ENABLED")
    assert called["Handler"] == "wake.sources.handle"
    # A look ends before the next one begins.
    assert called["Timeout"] < 60
    environment = called["Environment"]["Variables"]
    assert environment["SOURCES_KEY"] == sources_key(environment["GROUP_NAME"])


def test_a_cluster_without_brokers_and_databases_has_nothing_in_its_network(
    assembly: Assembly,
) -> None:
    assert "wake.probe.handle" not in functions(assembly, PLAIN)
    assert "PROBE_FUNCTION" not in json.dumps(functions(assembly, PLAIN))


def test_a_cluster_that_always_has_a_node_is_not_looked_at(assembly: Assembly) -> None:
    assert not {"wake.sources.handle", "wake.probe.handle"} & functions(assembly, STEADY).keys()


def test_what_looks_in_the_network_stands_where_nodes_do(assembly: Assembly) -> None:
    """So who lets nodes in lets it in, and it gets nowhere else."""
    probe = functions(assembly, FED)["wake.probe.handle"]
    template = assembly.templates[FED]
    (launch,) = resources(template, "AWS::EC2::LaunchTemplate").values()

    (group,) = probe["VpcConfig"]["SecurityGroupIds"]
    assert group in launch["LaunchTemplateData"]["SecurityGroupIds"]
    assert len(probe["VpcConfig"]["SubnetIds"]) >= 2
    assert probe["Timeout"] < functions(assembly, FED)["wake.sources.handle"]["Timeout"]


def test_only_the_function_outside_reads_secrets_and_only_the_other_one_logs_in_at_brokers(
    assembly: Assembly,
) -> None:
    statements = {
        role: {
            action
            for one in policy["PolicyDocument"]["Statement"]
            for action in ([one["Action"]] if isinstance(one["Action"], str) else one["Action"])
        }
        for policy in resources(assembly.templates[FED], "AWS::IAM::Policy").values()
        for role in [policy["Roles"][0]["Ref"]]
    }
    (outside,) = [each for role, each in statements.items() if role.startswith("SourcesRole")]
    (inside,) = [each for role, each in statements.items() if role.startswith("SourcesProbeRole")]

    assert "secretsmanager:GetSecretValue" in outside - inside
    assert {"kafka-cluster:Connect", "kafka-cluster:DescribeTopic"} <= inside - outside
    # No function reads what a node would land.
    assert not {"kafka-cluster:ReadData", "kinesis:GetRecords"} & (inside | outside)
    assert "autoscaling:SetDesiredCapacity" not in inside


def alarm_of(assembly: Assembly) -> dict[str, Any]:
    alarms = resources(assembly.templates[FED], "AWS::CloudWatch::Alarm").values()
    (alarm,) = [each for each in alarms if each.get("AlarmName", "").endswith("-SourcesUnseen")]
    return alarm


@pytest.mark.parametrize(
    ("runs", "errors", "unseen", "on"),
    [
        (1, 0, None, False),
        (1, 0, 1, True),
        (1, 1, None, True),
        (None, None, None, True),
    ],
    ids=["all is seen", "brokers do not answer", "the look fails", "it does not run"],
)
def test_the_alarm_is_on_when_for_a_quarter_of_an_hour_not_all_was_seen(
    runs: int | None, errors: int | None, unseen: int | None, on: bool, assembly: Assembly
) -> None:
    alarm, metrics = alarm_of(assembly), Metrics()
    by_id = {query["Id"]: query["MetricStat"]["Metric"] for query in alarm["Metrics"][1:]}
    values = {"runs": runs, "errors": errors, "unseen": unseen}
    for minute in range(30):
        for name, value in values.items():
            if value is not None:
                of = {one["Name"]: one["Value"] for one in by_id[name]["Dimensions"]}
                of = {key: json.dumps(each) for key, each in of.items()}
                metrics.put(by_id[name]["Namespace"], by_id[name]["MetricName"], of, minute, value)
    for metric in by_id.values():
        for one in metric["Dimensions"]:
            one["Value"] = json.dumps(one["Value"])

    assert (value_of_alarm(alarm, metrics, 29) is not None) is on
