"""The templates load into a stand-in for AWS, which then has what the runtime needs."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from polynya.model.config.aws import AwsAccess
from polynya.store.aws.server_instance import server_instance
from polynya_constructs.functions.spot_fallback.decision import Action
from polynya_constructs.functions.spot_fallback.handler import reconcile
from tests.aws import REGION, aws_clients
from tests.stacks.deploy_to_moto import DeployedStage, NotLoadedError, deploy

pytestmark = [pytest.mark.synth, pytest.mark.filterwarnings("ignore:Tried to parse")]

GROUP = "polynya-clustered-steady"


def test_the_network_is_there(deployed: DeployedStage) -> None:
    ec2, network = deployed.client("ec2"), deployed.outputs["Network"]

    in_vpc = [{"Name": "vpc-id", "Values": [network["VpcId"]]}]
    subnets = ec2.describe_subnets(Filters=in_vpc)["Subnets"]
    assert {s["SubnetId"] for s in subnets} == set(network["PrivateSubnetIds"].split(","))
    assert len({s["AvailabilityZone"] for s in subnets}) == 3
    assert [s["CidrBlock"] for s in subnets] == ["10.40.0.0/20", "10.40.16.0/20", "10.40.32.0/20"]
    endpoints = ec2.describe_vpc_endpoints(Filters=in_vpc)["VpcEndpoints"]
    assert sorted(e["VpcEndpointType"] for e in endpoints) == ["Gateway", *["Interface"] * 11]


def test_what_holds_data_is_there(deployed: DeployedStage) -> None:
    s3, storage = deployed.client("s3"), deployed.outputs["Storage"]

    for name in ("LandingBucketName", "ConfigurationBucketName", "WarehouseBucketName"):
        encryption = s3.get_bucket_encryption(Bucket=storage[name])
        (rule,) = encryption["ServerSideEncryptionConfiguration"]["Rules"]
        by_default = rule["ApplyServerSideEncryptionByDefault"]
        assert by_default["KMSMasterKeyID"] == storage["DataKeyArn"]
    kinesis = deployed.client("kinesis")
    stream = kinesis.describe_stream_summary(StreamName=storage["WorkloadStreamName"])
    assert stream["StreamDescriptionSummary"]["OpenShardCount"] == 1
    databases = deployed.client("glue").get_databases()["DatabaseList"]
    assert {database["Name"] for database in databases} == {
        "shop_clustered", "shop_clustered_internal",
        "sales_clustered", "sales_clustered_internal",
    }  # fmt: skip


def test_a_cluster_has_its_group_its_nodes_and_its_hooks(deployed: DeployedStage) -> None:
    assert deployed.outputs["Cluster-steady"]["GroupName"] == GROUP
    autoscaling = deployed.client("autoscaling")

    answer = autoscaling.describe_auto_scaling_groups(AutoScalingGroupNames=[GROUP])
    (group,) = answer["AutoScalingGroups"]
    assert (group["MinSize"], group["MaxSize"], len(group["Instances"])) == (2, 6, 2)
    policy = group["MixedInstancesPolicy"]
    assert len(policy["LaunchTemplate"]["Overrides"]) == 6
    assert policy["InstancesDistribution"]["OnDemandBaseCapacity"] == 1
    hooks = autoscaling.describe_lifecycle_hooks(AutoScalingGroupName=GROUP)["LifecycleHooks"]
    assert {hook["LifecycleHookName"] for hook in hooks} == {"ready", "drain"}
    template = policy["LaunchTemplate"]["LaunchTemplateSpecification"]["LaunchTemplateId"]
    versions = deployed.client("ec2").describe_launch_template_versions(LaunchTemplateId=template)
    launched = versions["LaunchTemplateVersions"][0]["LaunchTemplateData"]
    assert launched["MetadataOptions"]["HttpTokens"] == "required"
    morning, evening = autoscaling.describe_scheduled_actions()["ScheduledUpdateGroupActions"]
    assert (morning["MinSize"], evening["MinSize"]) == (1, 0)


def test_the_fallback_reads_the_group_that_the_template_made(deployed: DeployedStage) -> None:
    names = [f["Handler"] for f in deployed.client("lambda").list_functions()["Functions"]]
    rules = deployed.client("events").list_rules()["Rules"]
    assert names.count("spot_fallback.handler.handle") == 3
    # And the figures without nodes, for each of the three clusters; two of them may be empty.
    assert names.count("figures.handler.handle") == 3
    assert names.count("wake.sources.handle") == 2
    assert len([r for r in rules if r.get("ScheduleExpression") == "rate(1 minute)"]) == 8

    clients = deployed.client("autoscaling"), deployed.client("ec2")
    decision = reconcile(*clients, GROUP, 1, datetime.now(UTC))

    assert (decision.action, decision.intention.base) == (Action.KEEP, 1)


def test_the_gateway_is_one_instance_and_people_have_a_policy(deployed: DeployedStage) -> None:
    gateway = deployed.outputs["Gateway"]["GroupName"]
    groups = deployed.client("autoscaling").describe_auto_scaling_groups(
        AutoScalingGroupNames=[gateway]
    )["AutoScalingGroups"]
    assert [len(group["Instances"]) for group in groups] == [1]
    policy = deployed.outputs["Consumption"]["QueryPolicyArn"]
    assert deployed.client("iam").get_policy(PolicyArn=policy)["Policy"]["AttachmentCount"] == 0


def test_the_console_finds_the_server_behind_its_load_balancer(deployed: DeployedStage) -> None:
    bucket = deployed.outputs["Storage"]["ConfigurationBucketName"]
    access = AwsAccess(REGION, deployed.endpoint)

    found = server_instance(f"s3://{bucket}/project", access)

    assert found is not None
    assert (found.port, found.is_balanced) == (8181, True)
    (balancer,) = deployed.client("elbv2").describe_load_balancers()["LoadBalancers"]
    assert balancer["DNSName"] == deployed.outputs["Server"]["ServerAddress"]
    assert balancer["Scheme"] == "internal"
    assert server_instance(f"s3://{bucket}/other", access) is None


@pytest.mark.parametrize("kind", ["AWS::DAX::Cluster", "AWS::Glue::Crawler"])
def test_a_type_that_moto_skips_in_silence_is_an_error(kind: str) -> None:
    template: dict[str, Any] = {"Resources": {"Planted": {"Type": kind, "Properties": {}}}}

    with aws_clients() as client, pytest.raises(NotLoadedError, match=rf"Planted \({kind}\)"):
        deploy(client, "planted", template)
