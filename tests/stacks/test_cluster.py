"""Cluster, gateway and consumption stacks by intent."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from random import Random
from typing import Any

import pytest

from polynya.cluster.control.leader_document import LeaderDocumentWriter
from polynya.cluster.control.own_landing import LANDING, OwnLanding
from polynya.cluster.coordination.member_state import MemberState
from polynya.cluster.coordination.store import DocumentStore
from polynya.testing.fakes import FakeClock, MemoryObjectStore
from tests.stacks.house_rules import kinds
from tests.stacks.synthesis import CLUSTERS, Assembly

pytestmark = pytest.mark.synth


@dataclass(frozen=True)
class Template:
    """A synthesized template."""

    resources: dict[str, dict[str, Any]]

    def all(self, kind: str) -> list[dict[str, Any]]:
        """Properties of the resources of a type, such as `EC2::LaunchTemplate`."""
        return [
            resource.get("Properties", {})
            for resource in self.resources.values()
            if resource["Type"] == f"AWS::{kind}"
        ]

    def one(self, kind: str) -> dict[str, Any]:
        (found,) = self.all(kind)
        return found

    def statements(self) -> list[dict[str, Any]]:
        """Of all policies of roles."""
        return [
            statement
            for policy in self.all("IAM::Policy")
            for statement in policy["PolicyDocument"]["Statement"]
        ]


@pytest.fixture(scope="module")
def templates(assembly: Assembly) -> dict[str, Template]:
    """The stacks of the stage that has clusters, by their names in it."""
    return {
        path.removeprefix("clustered/"): Template(template["Resources"])
        for path, template in assembly.templates.items()
        if path.startswith("clustered/")
    }


@pytest.fixture(params=["Cluster-cheap", "Cluster-steady"])
def cluster(templates: dict[str, Template], request: pytest.FixtureRequest) -> Template:
    return templates[request.param]


@pytest.fixture
def low_cost(templates: dict[str, Template]) -> Template:
    return templates["Cluster-cheap"]


@pytest.mark.parametrize("stack", ["Cluster-cheap", "Gateway"])
def test_an_instance_answers_to_nobody(templates: dict[str, Template], stack: str) -> None:
    template = templates[stack]
    launched = template.one("EC2::LaunchTemplate")["LaunchTemplateData"]

    assert launched["MetadataOptions"]["HttpTokens"] == "required"
    assert launched["MetadataOptions"]["HttpPutResponseHopLimit"] == 1
    assert "KeyName" not in launched
    (volume,) = launched["BlockDeviceMappings"]
    assert (volume["Ebs"]["Encrypted"], volume["Ebs"]["VolumeType"]) == (True, "gp3")
    network = template.one("EC2::SecurityGroup")
    assert "SecurityGroupIngress" not in network
    assert template.all("EC2::SecurityGroupIngress") == []
    assert [rule["ToPort"] for rule in network["SecurityGroupEgress"]] == [443]


def test_the_group_mixes_spot_and_on_demand_and_replaces_the_new_node_first(
    templates: dict[str, Template],
) -> None:
    group = templates["Cluster-steady"].one("AutoScaling::AutoScalingGroup")

    assert group["MixedInstancesPolicy"]["InstancesDistribution"] == {
        "OnDemandAllocationStrategy": "prioritized",
        "OnDemandBaseCapacity": 1,
        "OnDemandPercentageAboveBaseCapacity": 0,
        "SpotAllocationStrategy": "price-capacity-optimized",
    }
    assert (group["MinSize"], group["MaxSize"]) == ("2", "6")
    assert "DesiredCapacity" not in group  # it would undo scaling at each deploy
    assert group["CapacityRebalance"] is True
    assert group["MetricsCollection"] == [{"Granularity": "1Minute"}]
    assert len(group["VPCZoneIdentifier"]) == 3


def test_a_deploy_refreshes_nodes_without_ever_being_smaller(
    templates: dict[str, Template],
) -> None:
    steady = templates["Cluster-steady"]
    (policy,) = [r["UpdatePolicy"] for r in steady.resources.values() if "UpdatePolicy" in r]
    refresh = policy["AutoScalingInstanceRefresh"]

    assert refresh["Strategy"] == "Rolling"
    assert refresh["Preferences"]["MinHealthyPercentage"] == 100
    assert refresh["Preferences"]["ScaleInProtectedInstances"] == "Refresh"
    # Nor does it set bounds back that a schedule has changed.
    assert policy["AutoScalingScheduledAction"] == {"IgnoreUnmodifiedGroupSizeProperties": True}


def test_hooks_wait_for_a_ready_node_and_for_a_drained_one(cluster: Template) -> None:
    group = cluster.one("AutoScaling::AutoScalingGroup")
    hooks = {hook["LifecycleHookName"]: hook for hook in group["LifecycleHookSpecificationList"]}

    assert hooks["ready"]["DefaultResult"] == "ABANDON"
    assert hooks["drain"]["LifecycleTransition"] == "autoscaling:EC2_INSTANCE_TERMINATING"


@pytest.mark.parametrize(
    ("cluster_stack", "tracking", "changes"),
    [("Cluster-cheap", [], [[1], [1]]), ("Cluster-steady", [90], [[2, 4]])],
)
def test_a_strategy_becomes_its_policies(
    templates: dict[str, Template],
    cluster_stack: str,
    tracking: list[int],
    changes: list[list[int]],
) -> None:
    policies = templates[cluster_stack].all("AutoScaling::ScalingPolicy")

    targets = [
        policy["TargetTrackingConfiguration"]
        for policy in policies
        if policy["PolicyType"] == "TargetTrackingScaling"
    ]
    assert [target["TargetValue"] for target in targets] == tracking
    for target in targets:
        *inputs, result = target["CustomizedMetricSpecification"]["Metrics"]
        assert [metric["MetricStat"]["Period"] for metric in inputs] == [60, 60]
        # Each node tells the backlog of its own datasets; of nodes AWS tells the number.
        assert [metric["MetricStat"]["Stat"] for metric in inputs] == ["Sum", "Average"]
        assert result["Expression"].endswith("backlog / IF(nodes > 0, nodes, 1))")
    steps = [p["StepAdjustments"] for p in policies if "StepAdjustments" in p]
    assert sorted([step["ScalingAdjustment"] for step in one] for one in steps) == changes
    # One node at a time, and the next one not before figures of the smaller group are there.
    assert all(target["DisableScaleIn"] for target in targets)
    (removal,) = [policy for policy in policies if policy["PolicyType"] == "SimpleScaling"]
    assert (removal["ScalingAdjustment"], removal["Cooldown"]) == (-1, "300")


def test_bounds_change_by_the_clock_and_a_forecast_may_only_be_looked_at(
    low_cost: Template, templates: dict[str, Template]
) -> None:
    actions = low_cost.all("AutoScaling::ScheduledAction")
    (policy,) = [
        policy
        for policy in templates["Cluster-steady"].all("AutoScaling::ScalingPolicy")
        if policy["PolicyType"] == "PredictiveScaling"
    ]

    assert [(a["Recurrence"], a["TimeZone"], a["MinSize"]) for a in actions] == [
        ("0 7 * * 1-5", "Europe/Berlin", 1),
        ("0 19 * * *", "Europe/Berlin", 0),
    ]
    assert not any("DesiredCapacity" in action or "MaxSize" in action for action in actions)
    forecast = policy["PredictiveScalingConfiguration"]
    assert (forecast["Mode"], forecast["SchedulingBufferTime"]) == ("ForecastOnly", 540)
    assert [metric["TargetValue"] for metric in forecast["MetricSpecifications"]] == [60]


def test_no_node_is_protected_from_scaling_in(cluster: Template) -> None:
    """What a node leaves behind is taken up by another one: a node may always end."""
    group = cluster.one("AutoScaling::AutoScalingGroup")

    assert not group.get("NewInstancesProtectedFromScaleIn", False)


def test_every_alarm_that_scales_looks_at_one_minute_values(cluster: Template) -> None:
    for alarm in cluster.all("CloudWatch::Alarm"):
        for metric in alarm.get("Metrics", []):
            assert metric.get("Period", 60) == 60
            assert metric.get("MetricStat", {"Period": 60})["Period"] == 60


def written_by_a_leader_of(cluster: str) -> str:
    """Path of the document in which a leader names the prefixes of its tasks."""
    store = MemoryObjectStore()
    writer = LeaderDocumentWriter(
        DocumentStore(store, cluster, Random(1)), FakeClock(), OwnLanding, LANDING
    )
    writer.know(OwnLanding(bucket="landing"))
    writer(MemberState("n1.aa", leading=True))
    (written,) = store.list()
    return written.path


def test_an_empty_group_is_woken_by_what_lands(
    low_cost: Template, templates: dict[str, Template], assembly: Assembly
) -> None:
    (wake,) = [f for f in low_cost.all("Lambda::Function") if f["Handler"] == "wake.handler.handle"]
    (landed,) = [
        rule for rule in low_cost.all("Events::Rule")
        if rule.get("EventPattern", {}).get("source") == ["aws.s3"]
    ]  # fmt: skip
    variables = wake["Environment"]["Variables"]
    name = variables["GROUP_NAME"]
    assert name == "polynya-clustered-cheap"
    # Where a node of the group writes it, by the options of its boot.
    assert variables["OWN_LANDING_KEY"] == f"coordination/{written_by_a_leader_of(name)}"
    assert "configurationbucket" in variables["CONFIGURATION_BUCKET"]["Ref"]
    assert landed["EventPattern"]["detail-type"] == ["Object Created"]
    data, tasks = landed["EventPattern"]["detail"]["$or"]
    assert "landingbucket" in json.dumps(data)
    # A filter that saves runs of the function, which knows the prefixes of the tasks.
    folders = ("orders/", "web/clicks/", "web/orders/")
    assert data["object"] == {"key": [{"prefix": folder} for folder in folders]}
    # Not the function itself: 100,000 objects would be as many runs, each with a look.
    (queue,) = [target["Arn"]["Fn::GetAtt"][0] for target in landed["Targets"]]
    batches = low_cost.one("Lambda::EventSourceMapping")
    assert batches["EventSourceArn"] == {"Fn::GetAtt": [queue, "Arn"]}
    assert (batches["BatchSize"], batches["ScalingConfig"]) == (10_000, {"MaximumConcurrency": 2})
    assert batches["MaximumBatchingWindowInSeconds"] == 20
    assert tasks["object"] == {"key": [{"prefix": "project/"}]}
    told = [b.get("NotificationConfiguration") for b in templates["Storage"].all("S3::Bucket")]
    assert told.count({"EventBridgeConfiguration": {"EventBridgeEnabled": True}}) == 2
    # Nobody pays for events who does not need them, nor for metrics of requests.
    assert "EventBridge" not in json.dumps(assembly.templates["prod/Storage"])
    assert "MetricsConfigurations" not in json.dumps(assembly.templates["clustered/Storage"])


def test_nodes_have_paid_metrics_only_for_a_forecast(templates: dict[str, Template]) -> None:
    def monitored(stack: str) -> bool:
        data = templates[stack].one("EC2::LaunchTemplate")["LaunchTemplateData"]
        return bool(data["Monitoring"]["Enabled"])

    assert monitored("Cluster-steady")
    assert not monitored("Cluster-cheap")
    assert not monitored("Gateway")


def test_the_key_of_notifications_goes_with_its_stack(cluster: Template) -> None:
    """It costs a dollar a month, and encrypts nothing that is left."""
    (key,) = [each for each in cluster.resources.values() if each["Type"] == "AWS::KMS::Key"]

    assert (key["DeletionPolicy"], key["UpdateReplacePolicy"]) == ("Delete", "Delete")


def test_nodes_wait_for_slow_credentials(cluster: Template) -> None:
    data = cluster.one("EC2::LaunchTemplate")["LaunchTemplateData"]
    script = json.dumps(data["UserData"])
    assert "AWS_METADATA_SERVICE_TIMEOUT=2" in script
    assert "AWS_METADATA_SERVICE_NUM_ATTEMPTS=5" in script
    # The SDK would try version 1 for ten seconds, and fail where old credentials would do.
    assert "AWS_EC2_METADATA_V1_DISABLED=true" in script


def test_events_that_the_function_does_not_take_wake_an_empty_group(low_cost: Template) -> None:
    (alarm,) = [
        alarm for alarm in low_cost.all("CloudWatch::Alarm")
        if "FILL(unhandled, 0))" in json.dumps(alarm.get("Metrics", []))
    ]  # fmt: skip
    (policy,) = [
        policy for policy in low_cost.all("AutoScaling::ScalingPolicy")
        if policy.get("AdjustmentType") == "ExactCapacity"
    ]  # fmt: skip

    assert (alarm["Threshold"], alarm["DatapointsToAlarm"], alarm["EvaluationPeriods"]) == (0, 1, 5)
    # Not all that lands, of which the function knows what is for others: what it does not take.
    (age,) = [one["MetricStat"]["Metric"] for one in alarm["Metrics"] if one["Id"] == "age"]
    assert (age["Namespace"], age["MetricName"]) == ("AWS/SQS", "ApproximateAgeOfOldestMessage")
    assert "IF(FILL(age, 0) > 120, 1, 0)" in json.dumps(alarm["Metrics"])
    assert [step["ScalingAdjustment"] for step in policy["StepAdjustments"]] == [1]


def test_a_missing_figure_changes_nothing(cluster: Template) -> None:
    """Arithmetic takes it for 0; each expression that scales looks for it first."""
    scaling = [
        metric["Expression"]
        for policy in cluster.all("AutoScaling::ScalingPolicy")
        for metric in policy.get("TargetTrackingConfiguration", {})
        .get("CustomizedMetricSpecification", {}).get("Metrics", [])
        if "Expression" in metric
    ] + [
        metric["Expression"]
        for alarm in cluster.all("CloudWatch::Alarm") if "AlarmName" not in alarm
        for metric in alarm.get("Metrics", []) if "Expression" in metric
    ]  # fmt: skip

    assert scaling
    for expression in scaling:
        assert expression.startswith(
            (
                "IF(FILL(backlog, -1) >= 0 AND FILL(nodes, -1) >",
                "IF(FILL(desired, 1) > 0, 0, ",
                "FILL(landed, 0) + ",  # what is not counted has not arrived
                "IF(FILL(age, 0) > 120, 1, 0)",
            )
        ), expression


def test_the_fallback_runs_the_tested_code_every_minute_and_on_the_event(
    cluster: Template,
) -> None:
    (function,) = [f for f in cluster.all("Lambda::Function") if "fallback" in f["Handler"]]
    rules = [r for r in cluster.all("Events::Rule") if "Spot fallback" in r["Description"]
             or "a launch of" in r["Description"]]  # fmt: skip

    name = function["Environment"]["Variables"]["GROUP_NAME"]
    assert {rule.get("ScheduleExpression") for rule in rules} == {"rate(1 minute)", None}
    (pattern,) = [rule["EventPattern"] for rule in rules if "EventPattern" in rule]
    assert pattern == {
        "source": ["aws.autoscaling"],
        "detail-type": ["EC2 Instance Launch Unsuccessful"],
        "detail": {"AutoScalingGroupName": [name]},
    }


def test_rights_are_for_this_group_and_these_buckets(low_cost: Template) -> None:
    everything = {
        action
        for statement in low_cost.statements()
        if statement["Resource"] == "*"
        for action in listed(statement["Action"])
    }
    own = [s for s in low_cost.statements() if s.get("Sid") == "OwnGroup"]

    # Each of these takes no resource; whatever else appears here needs one.
    assert everything == {
        "autoscaling:DescribeAutoScalingGroups", "autoscaling:DescribeScalingActivities",
        "cloudwatch:GetMetricStatistics",
        "ec2:DescribeInstances", "ec2:RunInstances", "ssm:UpdateInstanceInformation",
        "ssmmessages:CreateControlChannel", "ssmmessages:CreateDataChannel",
        "ssmmessages:OpenControlChannel", "ssmmessages:OpenDataChannel",
    }  # fmt: skip
    assert len(own) == 5
    for statement in own:
        assert (
            json.dumps(statement["Resource"])
            .rstrip(']}"')
            .endswith("autoScalingGroupName/polynya-clustered-cheap")
        )
    passed = [s for s in low_cost.statements() if "iam:" in json.dumps(s["Action"])]
    (to_ec2,) = passed  # Auto Scaling asks for it of who updates the group
    assert to_ec2["Condition"] == {"StringEquals": {"iam:PassedToService": "ec2.amazonaws.com"}}


def listed(actions: str | list[str]) -> list[str]:
    return [actions] if isinstance(actions, str) else actions


def test_people_are_told_when_figures_are_missing(cluster: Template) -> None:
    alarms = {
        re.sub(r"^polynya-clustered-[a-z]+-", "", alarm["AlarmName"]).partition("-")[0]: alarm
        for alarm in named(cluster)
    }

    assert set(alarms) == {
        "AgentsFail", "LateData", "SilentNodes", "MissingNodes", "LongShortage", "FallbackFails",
        "FallbackIdle", "FiguresFail", "FiguresIdle", "Suspended", "Quarantine",
        *["StreamBehind"] * ("StreamBehind" in alarms),
        *["MirrorStale"] * ("MirrorStale" in alarms),
        *["SourcesUnseen"] * ("SourcesUnseen" in alarms),
    }  # fmt: skip
    for name in ("SilentNodes", "FallbackIdle", "FiguresIdle"):
        assert alarms[name]["TreatMissingData"] == "breaching"
    assert all(alarm["AlarmActions"] and alarm["OKActions"] for alarm in alarms.values())


def named(template: Template) -> list[dict[str, Any]]:
    """The alarms for people; those of scaling policies have no name of their own."""
    return [alarm for alarm in template.all("CloudWatch::Alarm") if "AlarmName" in alarm]


def test_log_groups_forget(cluster: Template) -> None:
    assert {group["RetentionInDays"] for group in cluster.all("Logs::LogGroup")} == {30}


def test_one_network_agent_on_demand(templates: dict[str, Template]) -> None:
    group = templates["Gateway"].one("AutoScaling::AutoScalingGroup")

    assert (group["MinSize"], group["MaxSize"]) == ("1", "1")
    assert "MixedInstancesPolicy" not in group
    # Nothing waits for its boot: docs/network-agent.md says so.
    assert "LifecycleHookSpecificationList" not in group
    assert not templates["Gateway"].all("AutoScaling::LifecycleHook")
    assert "landing" not in json.dumps(templates["Gateway"].statements()).lower()


def test_an_alarm_for_each_cluster_when_the_network_agent_is_disconnected(
    templates: dict[str, Template],
) -> None:
    alarms = named(templates["Gateway"])

    assert [alarm["Dimensions"] for alarm in alarms] == [
        [{"Name": "Cluster", "Value": f"polynya-clustered-{name}"}] for name in CLUSTERS
    ]
    assert {alarm["TreatMissingData"] for alarm in alarms} == {"breaching"}
    assert all(alarm["AlarmActions"] and alarm["OKActions"] for alarm in alarms)


def test_engines_are_private_encrypted_and_idle_for_nothing(
    templates: dict[str, Template], assembly: Assembly
) -> None:
    engines = templates["Consumption"]

    workgroup = engines.one("RedshiftServerless::Workgroup")
    assert workgroup["PubliclyAccessible"] is False
    assert workgroup["EnhancedVpcRouting"] is True
    assert (workgroup["BaseCapacity"], workgroup["MaxCapacity"]) == (8, 32)
    namespace = engines.one("RedshiftServerless::Namespace")
    assert namespace["ManageAdminPassword"] is True
    assert "AdminUserPassword" not in namespace
    spark = engines.one("EMRServerless::Application")
    assert spark["AutoStopConfiguration"] == {"Enabled": True, "IdleTimeoutMinutes": 10}
    assert "InitialCapacity" not in spark
    stream, reading = engines.all("KinesisFirehose::DeliveryStream")
    source = reading["KinesisStreamSourceConfiguration"]["KinesisStreamARN"]
    assert source == "arn:aws:kinesis:eu-central-1:123456789012:stream/orders"
    encryption = stream["DeliveryStreamEncryptionConfigurationInput"]
    assert encryption["KeyType"] == "CUSTOMER_MANAGED_CMK"
    landing = stream["ExtendedS3DestinationConfiguration"]
    assert (landing["Prefix"], landing["CompressionFormat"]) == ("web/clicks/", "GZIP")
    assert landing["ErrorOutputPrefix"].startswith("firehose-errors/web/clicks/")
    assert engines.one("QuickSight::DataSource")["Type"] == "ATHENA"
    inbound = [group.get("SecurityGroupIngress") for group in engines.all("EC2::SecurityGroup")]
    assert inbound == [None, None]
    assert set(kinds(assembly, "dev/Consumption")) == {
        "AWS::S3::Bucket", "AWS::S3::BucketPolicy", "AWS::Athena::WorkGroup",
        "AWS::IAM::ManagedPolicy",
    }  # fmt: skip


def test_lake_formation_takes_no_right_from_anybody(templates: dict[str, Template]) -> None:
    engines = templates["Consumption"]
    settings = engines.one("LakeFormation::DataLakeSettings")

    assert engines.one("LakeFormation::Resource")["HybridAccessEnabled"] is True
    assert settings["MutationType"] == "APPEND"
    assert "cfn-exec-role" in json.dumps(settings["Admins"])
    for kind in ("CreateDatabaseDefaultPermissions", "CreateTableDefaultPermissions"):
        (open_to,) = settings[kind]
        principal = open_to["Principal"]["DataLakePrincipalIdentifier"]
        assert (open_to["Permissions"], principal) == (["ALL"], "IAM_ALLOWED_PRINCIPALS")
    analyst = {"DataLakePrincipalIdentifier": "arn:aws:iam::123456789012:role/analyst"}
    grants = engines.all("LakeFormation::PrincipalPermissions")
    granted = [grant["Permissions"] for grant in grants if grant["Principal"] == analyst]
    assert granted == [["DESCRIBE"], ["DESCRIBE", "SELECT"]] * 4


def test_athena_enforces_its_limit_and_its_encrypted_results(
    templates: dict[str, Template],
) -> None:
    settings = templates["Consumption"].one("Athena::WorkGroup")["WorkGroupConfiguration"]

    assert settings["EnforceWorkGroupConfiguration"] is True
    assert settings["BytesScannedCutoffPerQuery"] == 100_000_000_000
    results = settings["ResultConfiguration"]
    assert results["EncryptionConfiguration"]["EncryptionOption"] == "SSE_KMS"
