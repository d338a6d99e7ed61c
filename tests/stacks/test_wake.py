"""What wakes an empty cluster before anything lands: records on their way in a stream."""

from __future__ import annotations

import pytest

from tests.stacks.house_rules import resources
from tests.stacks.synthesis import Assembly

pytestmark = pytest.mark.synth


def test_records_on_their_way_start_the_function_that_wakes(assembly: Assembly) -> None:
    """Of the two delivery streams, the one that holds records for longer than an alarm is late."""
    template = assembly.templates["clustered/Cluster-cheap"]
    alarms = resources(template, "AWS::CloudWatch::Alarm").values()
    (alarm,) = [each for each in alarms if "are on their way" in each["AlarmDescription"]]
    by_id = {query["Id"]: query for query in alarm["Metrics"]}
    counted = by_id["stream0"]["MetricStat"]["Metric"]

    assert (counted["Namespace"], counted["MetricName"]) == ("AWS/Kinesis", "IncomingRecords")
    assert counted["Dimensions"] == [{"Name": "StreamName", "Value": "orders"}]
    assert set(by_id) == {"expr_1", "desired", "stream0"}
    assert (alarm["DatapointsToAlarm"], alarm["EvaluationPeriods"]) == (1, 5)
    (action,) = alarm["AlarmActions"]
    function = action["Fn::GetAtt"][0]
    assert template["Resources"][function]["Properties"]["Handler"] == "wake.handler.handle"
    # CloudWatch may start it for this alarm of this account, and for no other.
    (permission,) = [
        each
        for each in resources(template, "AWS::Lambda::Permission").values()
        if each["Principal"] == "lambda.alarms.cloudwatch.amazonaws.com"
    ]
    assert permission["SourceAccount"] == {"Ref": "AWS::AccountId"}
    assert "SourceArn" in permission


def test_records_on_their_way_keep_the_last_node(assembly: Assembly) -> None:
    """Else it would end, and be started again, for as long as a stream trickles."""
    template = assembly.templates["clustered/Cluster-cheap"]
    expressions = [
        query["Expression"]
        for alarm in resources(template, "AWS::CloudWatch::Alarm").values()
        for query in alarm.get("Metrics", [])
        if "Expression" in query
    ]
    assert expressions.count("FILL(landed, 0) + FILL(stream0, 0)") == 1
    # And are a second way to wake, should the function fail.
    assert expressions.count("IF(FILL(age, 0) > 120, 1, 0) + FILL(stream0, 0)") == 1


def test_a_stage_without_such_a_stream_pays_no_alarm(assembly: Assembly) -> None:
    alarms = resources(assembly.templates["dev/Cluster-main"], "AWS::CloudWatch::Alarm").values()

    assert not any("are on their way" in each["AlarmDescription"] for each in alarms)
