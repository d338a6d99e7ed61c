"""What tells the nodes of a cluster that something landed."""

from __future__ import annotations

import json
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk.assertions import Template

from stacks.settings.stage import StageConfig
from stacks.storage import StorageStack
from tests.stacks.house_rules import resources
from tests.stacks.synthesis import ROOT, Assembly

pytestmark = pytest.mark.synth

CONTEXT = json.loads((ROOT / "cdk.json").read_text())["context"]


def test_events_reach_the_function_at_once_and_are_soon_forgotten(assembly: Assembly) -> None:
    template = assembly.templates["clustered/Cluster-steady"]
    (function,) = [
        each
        for each in resources(template, "AWS::Lambda::Function").values()
        if each["Handler"] == "wake.hints.handle"
    ]
    variables = function["Environment"]["Variables"]
    (batches,) = resources(template, "AWS::Lambda::EventSourceMapping").values()
    (queue,) = resources(template, "AWS::SQS::Queue").values()
    (rule,) = [
        each
        for each in resources(template, "AWS::Events::Rule").values()
        if each.get("EventPattern", {}).get("source") == ["aws.s3"]
    ]

    assert variables["GROUP_NAME"] == "polynya-clustered-steady"
    assert variables["OWN_LANDING_KEY"] == "coordination/polynya-clustered-steady/landing"
    assert "workloadstreamarn" in variables["STREAM_ARN"]["Ref"]
    assert batches["MaximumBatchingWindowInSeconds"] == 1
    assert queue["MessageRetentionPeriod"] == 60
    # No longer than it is kept, and longer than the function may run.
    assert function["Timeout"] < queue["VisibilityTimeout"] <= 60
    assert "landingbucket" in json.dumps(rule["EventPattern"]["detail"]["bucket"]["name"])


@pytest.mark.parametrize(
    ("cluster", "sends"),
    [
        ({"strategy": "low_latency", "arrival_hints": True}, {"Landing"}),
        ({"strategy": "low_latency"}, set()),
        ({"strategy": "low_cost"}, {"Landing", "Configuration"}),
    ],
)
def test_buckets_send_the_events_that_a_cluster_needs(
    cluster: dict[str, Any], sends: set[str]
) -> None:
    head = {"apiVersion": "polynya/v1", "kind": "stage", "name": "small"}
    stage = StageConfig.model_validate({**head, "clusters": [{"name": "main", **cluster}]})
    storage = StorageStack(
        cdk.App(context=CONTEXT),
        "Storage",
        settings=stage,
        removal_policy=cdk.RemovalPolicy.DESTROY,
    )

    buckets = resources(Template.from_stack(storage).to_json(), "AWS::S3::Bucket")

    assert sends == {
        name
        for name in ("Landing", "Configuration", "Warehouse")
        for logical_id, bucket in buckets.items()
        if logical_id.startswith(name) and "EventBridge" in json.dumps(bucket)
    }


def test_clusters_that_ask_for_no_hints_pay_for_none(assembly: Assembly) -> None:
    for stack in ("clustered/Cluster-cheap", "dev/Cluster-main", "prod/Cluster-main"):
        assert "wake.hints.handle" not in json.dumps(assembly.templates.get(stack, {}))
